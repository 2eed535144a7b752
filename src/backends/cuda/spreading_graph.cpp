// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// See spreading_graph.h. A graph outlives the plans over it, so its address names it while there is one.
#include "backends/cuda/spreading_graph.h"

#include <fulcrum/ops/activation_spreading.h>

#include <limits>
#include <map>
#include <mutex>
#include <new>
#include <tuple>
#include <utility>

#include "backends/cuda/spreading_own.h"

namespace fulcrum::backends::cuda::spreading {
namespace {

static_assert(kShortRow == ops::kSpreadingShortRow && kSegment == ops::kSpreadingSegment &&
              kLanes == ops::kSpreadingLanes);

const ops::SpreadingGraph& graph_of(const void* prepared) {
  return *static_cast<const ops::SpreadingGraph*>(prepared);
}

template <class T>
fulcrum_status upload(const std::vector<T>& from, Scratch& to) {
  const std::size_t bytes = from.size() * sizeof(T);
  FULCRUM_STATUS(to.take(bytes > 0 ? bytes : 1));
  if (bytes == 0) return done();
  FULCRUM_CUDA(
      cudaMemcpyAsync(to.as<void>(), from.data(), bytes, cudaMemcpyHostToDevice, stream_of(nullptr)));
  return done();
}

/// Whether a CTA has room for the values that it fetches beside the terms of its tiles.
bool fits(const Layout& layout, const OwnSources& own) {
  constexpr std::int64_t kOthers = 4096;  // parts of hubs, and rounding
  const std::int64_t terms = std::int64_t{layout.most_tiles > 1 ? 2 : 1} * layout.most_tile_edges;
  const std::int64_t values = terms + own.most_wanted + layout.most_parts;
  return 4 * values + kOthers <= device().shared_bytes_per_block;
}

/// `own`: empty where edges name positions.
fulcrum_status upload(const Layout& layout, const OwnSources& own, DeviceGraph& graph) {
  graph.long_positions = layout.long_positions;
  graph.positions = layout.positions;
  graph.shared_parts = layout.shared_parts;
  graph.shared_hubs = layout.shared_hubs;
  graph.first_shared_hub = layout.first_shared_hub;
  graph.most_edges = layout.most_edges;
  graph.most_slices = layout.most_slices;
  graph.most_tiles = layout.most_tiles;
  graph.most_segments = layout.most_segments;
  graph.most_hubs = layout.most_hubs;
  graph.most_parts = layout.most_parts;
  graph.most_tile_edges = layout.most_tile_edges;
  FULCRUM_STATUS(upload(layout.node_of, graph.node_of));
  graph.most_wanted = own.most_wanted;
  FULCRUM_STATUS(upload(graph.own() ? own.source : layout.sources, graph.sources));
  FULCRUM_STATUS(upload(own.wanted, graph.wanted));
  FULCRUM_STATUS(upload(own.begin, graph.wanted_begin));
  FULCRUM_STATUS(upload(layout.weights, graph.weights));
  FULCRUM_STATUS(upload(layout.slices, graph.slices));
  FULCRUM_STATUS(upload(layout.segments, graph.segments));
  FULCRUM_STATUS(upload(layout.tiles, graph.tiles));
  FULCRUM_STATUS(upload(layout.hubs, graph.hubs));
  return upload(layout.shares, graph.shares);
}

fulcrum_status make(const ops::SpreadingGraph& from, std::int32_t ctas, Naming naming, DeviceGraph& graph) {
  // Positions are padded, and edges name them with 31 bits.
  if (from.nodes > std::numeric_limits<std::int32_t>::max() - 4 * kPositionUnit) {
    return failed(FULCRUM_UNSUPPORTED, "a graph of so many nodes has no room for padding");
  }
  const Layout layout = make_layout(Rows{from.nodes, from.row_begin, from.source, from.weight}, ctas);
  OwnSources own;
  if (naming != Naming::positions) own = own_sources(layout);
  if (!fits(layout, own) || (naming == Naming::better && !worth_own(layout, own))) own = {};
  const fulcrum_status status = upload(layout, own, graph);
  // Both go: copies from them must have been read, also those before one that failed.
  const cudaError_t error = cudaStreamSynchronize(stream_of(nullptr));
  FULCRUM_STATUS(status);
  return error == cudaSuccess ? done() : failed(error, "uploading a graph");
}

}  // namespace

GraphSize size_of(const void* prepared) {
  return GraphSize{graph_of(prepared).nodes, graph_of(prepared).edges};
}

fulcrum_status device_graph(const void* prepared, std::int32_t ctas, Naming naming,
                            std::shared_ptr<const DeviceGraph>* graph) {
  static std::mutex mutex;
  using Key = std::tuple<const void*, std::int32_t, Naming>;
  static auto& known = *new std::map<Key, std::weak_ptr<const DeviceGraph>>;
  const std::lock_guard lock(mutex);
  std::erase_if(known, [](const auto& entry) { return entry.second.expired(); });
  const Key key(prepared, ctas, naming);
  if (const auto found = known.find(key); found != known.end()) {
    *graph = found->second.lock();
    if (*graph) return done();
  }
  try {
    auto made = std::make_shared<DeviceGraph>();
    FULCRUM_STATUS(make(graph_of(prepared), ctas, naming, *made));
    known[key] = made;
    *graph = std::move(made);
  } catch (const std::bad_alloc&) {
    return failed(FULCRUM_OUT_OF_MEMORY, "no host memory to lay out a graph for the device");
  }
  return done();
}

}  // namespace fulcrum::backends::cuda::spreading
