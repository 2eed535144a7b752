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
#include <utility>

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

fulcrum_status upload(const Layout& layout, DeviceGraph& graph) {
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
  FULCRUM_STATUS(upload(layout.sources, graph.sources));
  FULCRUM_STATUS(upload(layout.weights, graph.weights));
  FULCRUM_STATUS(upload(layout.slices, graph.slices));
  FULCRUM_STATUS(upload(layout.segments, graph.segments));
  FULCRUM_STATUS(upload(layout.tiles, graph.tiles));
  FULCRUM_STATUS(upload(layout.hubs, graph.hubs));
  return upload(layout.shares, graph.shares);
}

fulcrum_status make(const ops::SpreadingGraph& from, std::int32_t ctas, DeviceGraph& graph) {
  // Positions are padded, and edges name them with 31 bits.
  if (from.nodes > std::numeric_limits<std::int32_t>::max() - 4 * kPositionUnit) {
    return failed(FULCRUM_UNSUPPORTED, "a graph of so many nodes has no room for padding");
  }
  const Layout layout = make_layout(Rows{from.nodes, from.row_begin, from.source, from.weight}, ctas);
  const fulcrum_status status = upload(layout, graph);
  // The layout goes: copies from it must have been read, also those before one that failed.
  const cudaError_t error = cudaStreamSynchronize(stream_of(nullptr));
  FULCRUM_STATUS(status);
  return error == cudaSuccess ? done() : failed(error, "uploading a graph");
}

}  // namespace

GraphSize size_of(const void* prepared) {
  return GraphSize{graph_of(prepared).nodes, graph_of(prepared).edges};
}

fulcrum_status device_graph(const void* prepared, std::int32_t ctas,
                            std::shared_ptr<const DeviceGraph>* graph) {
  static std::mutex mutex;
  static auto& known = *new std::map<std::pair<const void*, std::int32_t>, std::weak_ptr<const DeviceGraph>>;
  const std::lock_guard lock(mutex);
  std::erase_if(known, [](const auto& entry) { return entry.second.expired(); });
  const std::pair key(prepared, ctas);
  if (const auto found = known.find(key); found != known.end()) {
    *graph = found->second.lock();
    if (*graph) return done();
  }
  try {
    auto made = std::make_shared<DeviceGraph>();
    FULCRUM_STATUS(make(graph_of(prepared), ctas, *made));
    known[key] = made;
    *graph = std::move(made);
  } catch (const std::bad_alloc&) {
    return failed(FULCRUM_OUT_OF_MEMORY, "no host memory to lay out a graph for the device");
  }
  return done();
}

}  // namespace fulcrum::backends::cuda::spreading
