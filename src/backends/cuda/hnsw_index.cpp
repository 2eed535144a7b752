// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// See hnsw_index.h. An index outlives the plans over it, so its address names it while there is one.
#include "backends/cuda/hnsw_index.h"

#include <fulcrum/ops/hnsw_search.h>

#include <algorithm>
#include <new>

namespace fulcrum::backends::cuda::hnsw {
namespace {

static_assert(ops::kHnswLinks == 32 && ops::kHnswUpperLinks == 16);
static_assert(static_cast<int>(ops::HnswMetric::l2sq) == 0 && static_cast<int>(ops::HnswMetric::ip) == 1 &&
              static_cast<int>(ops::HnswMetric::cosine) == 2);

const ops::HnswIndex& index_of(const void* prepared) { return *static_cast<const ops::HnswIndex*>(prepared); }

fulcrum_status upload(const void* from, std::int64_t bytes, Scratch& to) {
  FULCRUM_STATUS(to.take(static_cast<std::size_t>(std::max<std::int64_t>(bytes, 1))));
  if (bytes == 0) return done();
  FULCRUM_CUDA(cudaMemcpyAsync(to.as<void>(), from, static_cast<std::size_t>(bytes), cudaMemcpyHostToDevice,
                               stream_of(nullptr)));
  return done();
}

fulcrum_status upload(const ops::HnswIndex& from, DeviceIndex& index) {
  constexpr std::int64_t kWord = sizeof(std::int32_t);
  index.count = from.count;
  index.dimension = from.dimension;
  index.stride = from.stride;
  index.metric = static_cast<int>(from.metric);
  index.entry = from.entry;
  index.top_layer = from.top_layer;
  FULCRUM_STATUS(upload(from.vectors, from.count * from.stride * kWord, index.vectors));
  FULCRUM_STATUS(upload(from.links, from.count * ops::kHnswLinks * kWord, index.lower));
  FULCRUM_STATUS(upload(from.upper_begin, from.count * kWord, index.upper_begin));
  FULCRUM_STATUS(upload(from.upper_links, from.upper_lists * ops::kHnswUpperLinks * kWord, index.upper));
  FULCRUM_CUDA(cudaStreamSynchronize(stream_of(nullptr)));
  return done();
}

}  // namespace

fulcrum_status device_index(const void* prepared, std::shared_ptr<const DeviceIndex>* index) {
  static std::mutex mutex;
  static auto& known = *new std::map<const void*, std::weak_ptr<const DeviceIndex>>;
  const std::lock_guard lock(mutex);
  std::erase_if(known, [](const auto& entry) { return entry.second.expired(); });
  if (const auto found = known.find(prepared); found != known.end()) {
    *index = found->second.lock();
    if (*index) return done();
  }
  try {
    auto made = std::make_shared<DeviceIndex>();
    FULCRUM_STATUS(upload(index_of(prepared), *made));
    known[prepared] = made;
    *index = std::move(made);
  } catch (const std::bad_alloc&) {
    return failed(FULCRUM_OUT_OF_MEMORY, "no host memory for an index on the device");
  }
  return done();
}

std::int64_t places_of(const void* prepared, std::int64_t k, std::int64_t ef, double recall_target) {
  return ops::hnsw_ef(index_of(prepared), k, ef, recall_target);
}

}  // namespace fulcrum::backends::cuda::hnsw
