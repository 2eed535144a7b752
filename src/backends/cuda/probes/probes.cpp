// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// The table of the device's probes, and what they share. The table is made when it is first asked for, because the
// sizes in it depend on the device.
#include "backends/cuda/probes/probe.h"

#include <time.h>

#include <algorithm>
#include <cstdlib>
#include <mutex>

#include "backends/cuda/parts.h"

namespace fulcrum::backends::cuda {
namespace probes {
namespace {

constexpr int64_t kMiB = int64_t{1} << 20;
constexpr int64_t kLeastArena = 1024 * kMiB;
constexpr int64_t kMostArena = 6144 * kMiB;
constexpr int64_t kArenaStep = 96 * kMiB;  // halves and thirds of it are whole tiles of every kernel

/// What is alive, or what `make` makes now.
template <class T, class Make>
fulcrum_status share(std::shared_ptr<T>& into, const Make& make) {
  static std::mutex mutex;
  static std::weak_ptr<T> alive;
  const std::lock_guard lock(mutex);
  if ((into = alive.lock())) return done();
  auto made = std::make_shared<T>();
  FULCRUM_STATUS(make(*made));
  alive = into = made;
  return done();
}

const fulcrum_probe* table(int64_t* count) {
  static const std::vector<fulcrum_probe> list = [] {
    std::vector<fulcrum_probe> made;
    if (!available()) return made;
    add_memory_probes(made);
    add_compute_probes(made);
    add_gemm_probes(made);
    add_latency_probes(made);
    add_link_probes(made);
    return made;
  }();
  *count = static_cast<int64_t>(list.size());
  return list.data();
}

}  // namespace

double host_now() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

Marks::~Marks() {
  if (begin_) cudaEventDestroy(begin_);
  if (end_) cudaEventDestroy(end_);
}

fulcrum_status Marks::open() {
  FULCRUM_CUDA(cudaEventCreate(&begin_));
  FULCRUM_CUDA(cudaEventCreate(&end_));
  return done();
}

fulcrum_status Marks::begin(cudaStream_t stream) {
  FULCRUM_CUDA(cudaEventRecord(begin_, stream));
  return done();
}

fulcrum_status Marks::end(cudaStream_t stream, double* seconds) {
  FULCRUM_CUDA(cudaEventRecord(end_, stream));
  FULCRUM_CUDA(cudaEventSynchronize(end_));
  float milliseconds = 0;
  FULCRUM_CUDA(cudaEventElapsedTime(&milliseconds, begin_, end_));
  *seconds = 1e-3 * static_cast<double>(milliseconds);
  return done();
}

Block::~Block() {
  if (!data_) return;
  if (place_ == Place::device) cudaFree(data_);
  if (place_ == Place::pinned) cudaFreeHost(data_);
  if (place_ == Place::pageable) std::free(data_);
}

fulcrum_status Block::take(Place place, int64_t bytes) {
  constexpr std::size_t kPage = 4096;
  const auto size = static_cast<std::size_t>(bytes);
  if (place == Place::device) FULCRUM_CUDA(cudaMalloc(&data_, size));
  if (place == Place::pinned) FULCRUM_CUDA(cudaHostAlloc(&data_, size, cudaHostAllocMapped));
  if (place == Place::pageable) data_ = std::aligned_alloc(kPage, size);
  if (!data_) return failed(FULCRUM_OUT_OF_MEMORY, "no host memory for a probe");
  place_ = place;
  bytes_ = bytes;
  return done();
}

fulcrum_status share_arena(std::shared_ptr<Block>& arena) {
  return share(arena, [](Block& block) {
    std::size_t free = 0, total = 0;
    FULCRUM_CUDA(cudaMemGetInfo(&free, &total));
    const int64_t wanted = std::clamp(static_cast<int64_t>(free) / 3, kLeastArena, kMostArena);
    FULCRUM_STATUS(block.take(Place::device, wanted / kArenaStep * kArenaStep));
    FULCRUM_STATUS(fill_with_numbers(block.data(), block.bytes(), Number::f32, stream_of(nullptr)));
    FULCRUM_CUDA(cudaStreamSynchronize(stream_of(nullptr)));
    return done();
  });
}

fulcrum_status share_ends(std::shared_ptr<Ends>& ends) {
  return share(ends, [](Ends& made) {
    FULCRUM_STATUS(made.device_in.take(Place::device, kLargestCopy));
    FULCRUM_STATUS(made.device_out.take(Place::device, kLargestCopy));
    FULCRUM_STATUS(made.pinned_in.take(Place::pinned, kLargestCopy));
    FULCRUM_STATUS(made.pinned_out.take(Place::pinned, kLargestCopy));
    FULCRUM_STATUS(made.pageable.take(Place::pageable, kLargestCopy));
    const cudaStream_t stream = stream_of(nullptr);
    FULCRUM_STATUS(fill_with_numbers(made.device_in.data(), kLargestCopy, Number::f32, stream));
    for (void* to :
         {made.device_out.data(), made.pinned_in.data(), made.pinned_out.data(), made.pageable.data()}) {
      FULCRUM_CUDA(cudaMemcpyAsync(to, made.device_in.data(), kLargestCopy, cudaMemcpyDefault, stream));
    }
    FULCRUM_CUDA(cudaStreamSynchronize(stream));
    return done();
  });
}

}  // namespace probes

void add_probes(fulcrum_backend& table) { table.probes = probes::table; }

}  // namespace fulcrum::backends::cuda
