// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// How activation_spreading lays a graph out for the device. Nodes get new numbers, their positions: first those with
// long rows, most read first, then the others in slices of 32 rows of about the same degree, so that a warp reads the
// edges of a slice and writes what its nodes pass on in whole lines. Arithmetic only: tested without a device.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <queue>
#include <utility>
#include <vector>

namespace fulcrum::backends::cuda::spreading {

inline constexpr std::int32_t kLanes = 32;
inline constexpr std::int32_t kShortRow = 32;       // up to this degree terms are added in stored order
inline constexpr std::int32_t kSegment = 4096;      // longer rows are sums of segments of this length
inline constexpr std::int32_t kTileEdges = 8192;    // terms that a CTA gathers before it adds them up
inline constexpr std::int32_t kWindow = 1024;       // rows that are sorted by degree
inline constexpr std::int64_t kPositionUnit = 128;  // positions come in multiples: 16 bytes of bits

struct Edge {
  std::int32_t source;  // a position; -1: none
  float weight;
};

/// 32 short rows: edge `step` of row `lane` is slice_edges[32 * (at + step) + lane].
struct Slice {
  std::int32_t at, steps;
};

/// A long row, or at most kSegment edges of one: long_edges[at, at + edges).
struct Segment {
  std::int32_t at, edges;
  std::int32_t position;  // of the row
  std::int32_t hub;       // the row's number among those of several segments; -1: it has one
  std::int32_t part;      // where the segment's sum goes: the row's parts lie side by side
  std::int32_t unused = 0;
};

/// Segments [first, first + segments), whose edges are long_edges[at, at + edges).
struct Tile {
  std::int32_t first, segments;
  std::int32_t at, edges;
};

/// A row of several segments: its sums are parts [first, first + segments).
struct Hub {
  std::int32_t first, segments;
};

/// Rows as a graph stores them.
struct Rows {
  std::int64_t nodes;
  const std::int32_t* begin;   // [nodes + 1]
  const std::int32_t* source;  // by edge
  const float* weight;
  std::int32_t degree(std::int32_t row) const { return begin[row + 1] - begin[row]; }
};

struct Layout {
  std::int64_t long_positions = 0;    // a multiple of 32
  std::int64_t positions = 0;         // a multiple of kPositionUnit
  std::int64_t parts = 0;             // sums of segments of hubs
  std::vector<std::int32_t> node_of;  // by position; -1: none
  std::vector<Slice> slices;          // slice s is the positions from long_positions + 32 s on
  std::vector<Edge> slice_edges, long_edges;
  std::vector<Segment> segments;
  std::vector<Tile> tiles;
  std::vector<Hub> hubs;
  std::vector<std::int32_t> slice_begin, tile_begin;  // CTA c has slices and tiles [begin[c], begin[c + 1])
  std::int64_t most_slice_edges = 0, most_long_edges = 0;  // of one CTA, as what follows
  std::int32_t most_slices = 0, most_tiles = 0, most_segments = 0;
  std::int32_t most_tile_edges = 0;
};

namespace detail {

// In edges: what a row costs beside them, and how much more an edge of a long row costs, which goes through shared
// memory.
inline constexpr std::int64_t kSliceCost = 96, kSegmentCost = 64;
inline std::int64_t cost_of(const Slice& slice) { return std::int64_t{slice.steps} * kLanes + kSliceCost; }
inline std::int64_t cost_of(const Segment& segment) {
  return std::int64_t{segment.edges} * 5 / 4 + kSegmentCost;
}

/// Positions of all nodes.
inline void place_nodes(const Rows& rows, Layout& layout) {
  std::vector<std::int32_t> longs, shorts;
  for (std::int64_t node = 0; node < rows.nodes; ++node) {
    const auto row = static_cast<std::int32_t>(node);
    (rows.degree(row) > kShortRow ? longs : shorts).push_back(row);
  }
  const auto more = [&](std::int32_t a, std::int32_t b) { return rows.degree(a) > rows.degree(b); };
  // Values of the first positions are kept at hand: those that are read most.
  std::vector<std::int32_t> readers(static_cast<std::size_t>(rows.nodes), 0);
  for (std::int64_t e = 0; e < rows.begin[rows.nodes]; ++e)
    ++readers[static_cast<std::size_t>(rows.source[e])];
  std::stable_sort(longs.begin(), longs.end(), [&](std::int32_t a, std::int32_t b) {
    return readers[static_cast<std::size_t>(a)] > readers[static_cast<std::size_t>(b)];
  });
  for (std::size_t first = 0; first < shorts.size(); first += kWindow) {
    const std::size_t last = std::min(shorts.size(), first + kWindow);
    std::stable_sort(shorts.begin() + static_cast<std::ptrdiff_t>(first),
                     shorts.begin() + static_cast<std::ptrdiff_t>(last), more);
  }
  const auto up = [](std::size_t count, std::int64_t unit) {
    return (static_cast<std::int64_t>(count) + unit - 1) / unit * unit;
  };
  layout.long_positions = up(longs.size(), kLanes);
  const std::int64_t short_positions = up(shorts.size(), kLanes);
  layout.positions = up(static_cast<std::size_t>(layout.long_positions + short_positions), kPositionUnit);
  layout.node_of.assign(static_cast<std::size_t>(layout.positions), -1);
  std::copy(longs.begin(), longs.end(), layout.node_of.begin());
  std::copy(shorts.begin(), shorts.end(), layout.node_of.begin() + layout.long_positions);
  layout.slices.resize(static_cast<std::size_t>(short_positions / kLanes));
}

inline void fill_slices(const Rows& rows, const std::vector<std::int32_t>& position_of, Layout& layout) {
  std::int32_t at = 0;
  for (std::size_t s = 0; s < layout.slices.size(); ++s) {
    const std::int32_t* nodes =
        layout.node_of.data() + layout.long_positions + static_cast<std::int64_t>(s) * kLanes;
    layout.slices[s] = Slice{at, rows.degree(nodes[0])};  // the longest: rows are sorted
    at += layout.slices[s].steps;
  }
  layout.slice_edges.assign(static_cast<std::size_t>(at) * kLanes, Edge{-1, 0.0F});
  for (std::size_t s = 0; s < layout.slices.size(); ++s) {
    const std::int32_t* nodes =
        layout.node_of.data() + layout.long_positions + static_cast<std::int64_t>(s) * kLanes;
    Edge* const to = layout.slice_edges.data() + std::int64_t{layout.slices[s].at} * kLanes;
    for (std::int64_t lane = 0; lane < kLanes && nodes[lane] >= 0; ++lane) {
      const std::int64_t begin = rows.begin[nodes[lane]];
      for (std::int64_t step = 0; step < rows.degree(nodes[lane]); ++step) {
        to[step * kLanes + lane] =
            Edge{position_of[static_cast<std::size_t>(rows.source[begin + step])], rows.weight[begin + step]};
      }
    }
  }
}

/// Segments with `at` still an edge of the graph.
inline std::vector<Segment> cut_rows(const Rows& rows, Layout& layout) {
  std::vector<Segment> segments;
  for (std::int64_t p = 0; p < layout.long_positions && layout.node_of[static_cast<std::size_t>(p)] >= 0;
       ++p) {
    const std::int32_t row = layout.node_of[static_cast<std::size_t>(p)], edges = rows.degree(row);
    const bool is_hub = edges > kSegment;
    const auto hub = is_hub ? static_cast<std::int32_t>(layout.hubs.size()) : -1;
    if (is_hub) {
      layout.hubs.push_back(Hub{static_cast<std::int32_t>(layout.parts), (edges - 1) / kSegment + 1});
    }
    for (std::int64_t from = 0; from < edges; from += kSegment) {
      segments.push_back(Segment{static_cast<std::int32_t>(rows.begin[row] + from),
                                 static_cast<std::int32_t>(std::min<std::int64_t>(kSegment, edges - from)),
                                 static_cast<std::int32_t>(p), hub,
                                 is_hub ? static_cast<std::int32_t>(layout.parts++) : -1});
    }
  }
  return segments;
}

/// Each segment to the CTA with the least to do, most edges first; what each then has is in `load`.
inline void deal_segments(const Rows& rows, const std::vector<std::int32_t>& position_of, std::int32_t ctas,
                          Layout& layout, std::vector<std::int64_t>& load) {
  std::vector<Segment> cut = cut_rows(rows, layout);
  std::stable_sort(cut.begin(), cut.end(),
                   [](const Segment& a, const Segment& b) { return a.edges > b.edges; });
  std::vector<std::vector<Segment>> of(static_cast<std::size_t>(ctas));
  using Load = std::pair<std::int64_t, std::int32_t>;
  std::priority_queue<Load, std::vector<Load>, std::greater<>> least;
  for (std::int32_t c = 0; c < ctas; ++c) least.emplace(0, c);
  for (const Segment& segment : cut) {
    auto [cost, cta] = least.top();
    least.pop();
    of[static_cast<std::size_t>(cta)].push_back(segment);
    least.emplace(cost + cost_of(segment), cta);
    load[static_cast<std::size_t>(cta)] = cost + cost_of(segment);
  }
  layout.tile_begin.assign(1, 0);
  for (const std::vector<Segment>& mine : of) {
    const auto first_edge = static_cast<std::int64_t>(layout.long_edges.size());
    Tile tile{};
    const auto close = [&] {
      if (tile.segments == 0) return;
      layout.tiles.push_back(tile);
      layout.most_tile_edges = std::max(layout.most_tile_edges, tile.edges);
    };
    for (Segment segment : mine) {
      if (tile.segments == 0 || tile.edges + segment.edges > kTileEdges) {
        close();
        tile = Tile{static_cast<std::int32_t>(layout.segments.size()), 0,
                    static_cast<std::int32_t>(layout.long_edges.size()), 0};
      }
      const std::int64_t begin = segment.at;
      segment.at = static_cast<std::int32_t>(layout.long_edges.size());
      for (std::int64_t e = begin; e < begin + segment.edges; ++e) {
        layout.long_edges.push_back(
            Edge{position_of[static_cast<std::size_t>(rows.source[e])], rows.weight[e]});
      }
      layout.segments.push_back(segment);
      ++tile.segments;
      tile.edges += segment.edges;
    }
    close();
    layout.tile_begin.push_back(static_cast<std::int32_t>(layout.tiles.size()));
    layout.most_tiles = std::max(layout.most_tiles, layout.tile_begin.back() - layout.tile_begin.end()[-2]);
    layout.most_segments = std::max(layout.most_segments, static_cast<std::int32_t>(mine.size()));
    layout.most_long_edges =
        std::max(layout.most_long_edges, static_cast<std::int64_t>(layout.long_edges.size()) - first_edge);
  }
}

/// Neighbouring slices to each CTA, so many that all have about the same to do.
inline void deal_slices(std::int32_t ctas, const std::vector<std::int64_t>& load, Layout& layout) {
  std::int64_t left = std::accumulate(load.begin(), load.end(), std::int64_t{0});
  for (const Slice& slice : layout.slices) left += cost_of(slice);
  std::size_t next = 0;
  layout.slice_begin.assign(1, 0);
  for (std::int32_t c = 0; c < ctas; ++c) {
    std::int64_t mine = load[static_cast<std::size_t>(c)], edges = 0;
    const std::int64_t share = left / (ctas - c);
    while (next < layout.slices.size() &&
           (c + 1 == ctas || mine + cost_of(layout.slices[next]) / 2 < share)) {
      mine += cost_of(layout.slices[next]);
      edges += std::int64_t{layout.slices[next++].steps} * kLanes;
    }
    left -= mine;
    layout.slice_begin.push_back(static_cast<std::int32_t>(next));
    layout.most_slices =
        std::max(layout.most_slices, layout.slice_begin.back() - layout.slice_begin.end()[-2]);
    layout.most_slice_edges = std::max(layout.most_slice_edges, edges);
  }
}

}  // namespace detail

/// The layout for so many CTAs.
inline Layout make_layout(const Rows& rows, std::int32_t ctas) {
  Layout layout;
  detail::place_nodes(rows, layout);
  std::vector<std::int32_t> position_of(static_cast<std::size_t>(rows.nodes));
  for (std::size_t p = 0; p < layout.node_of.size(); ++p) {
    if (layout.node_of[p] >= 0) {
      position_of[static_cast<std::size_t>(layout.node_of[p])] = static_cast<std::int32_t>(p);
    }
  }
  std::vector<std::int64_t> load(static_cast<std::size_t>(ctas), 0);
  detail::fill_slices(rows, position_of, layout);
  detail::deal_segments(rows, position_of, ctas, layout, load);
  detail::deal_slices(ctas, load, layout);
  return layout;
}

}  // namespace fulcrum::backends::cuda::spreading
