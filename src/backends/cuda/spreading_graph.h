// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Graphs of activation_spreading in the device's memory: laid out and uploaded by the first plan that needs one, shared
// by all plans over the same graph, gone with the last of them.
#pragma once

#include <memory>

#include "backends/cuda/runtime.h"
#include "backends/cuda/spreading_layout.h"

namespace fulcrum::backends::cuda::spreading {

/// What a layout says of its sizes, and where its parts are on the device.
struct DeviceGraph {
  std::int64_t long_positions = 0, positions = 0;
  std::int64_t shared_parts = 0, shared_hubs = 0, first_shared_hub = 0;
  std::int64_t most_edges = 0;  // of one CTA, as what follows
  std::int32_t most_slices = 0, most_tiles = 0, most_segments = 0, most_hubs = 0, most_parts = 0;
  std::int32_t most_tile_edges = 0;  // of one tile
  std::int32_t most_wanted = 0;      // values that a CTA fetches; 0: edges name positions
  Scratch node_of, sources, weights, slices, segments, tiles, hubs, shares, wanted, wanted_begin;
  bool own() const { return most_wanted > 0; }
};

/// What edges name: positions, or places among the values that their CTA fetches (spreading_own.h). `better`: the
/// latter where it is worth it and fits.
enum class Naming { positions, own, better };

/// Nodes and edges of a prepared graph.
struct GraphSize {
  std::int64_t nodes, edges;
};
GraphSize size_of(const void* prepared);

/// The graph behind `prepared` (a fulcrum::ops::SpreadingGraph) for so many CTAs.
fulcrum_status device_graph(const void* prepared, std::int32_t ctas, Naming naming,
                            std::shared_ptr<const DeviceGraph>* graph);

}  // namespace fulcrum::backends::cuda::spreading
