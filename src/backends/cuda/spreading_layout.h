// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// How activation_spreading lays a graph out for the device. Nodes get new numbers, their positions: first those with
// long rows, most read first, then the others in slices of 32 rows of about the same degree. Edges are dealt out to
// CTAs in tiles, whose terms are fetched evenly by all threads and then added up row by row. Arithmetic only: tested
// without a device.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <queue>
#include <utility>
#include <vector>

namespace fulcrum::backends::cuda::spreading {

inline constexpr std::int32_t kLanes = 32;
inline constexpr std::int32_t kShortRow = 32;          // up to this degree terms are added in stored order
inline constexpr std::int32_t kSegment = 4096;         // longer rows are sums of segments of this length
inline constexpr std::int32_t kTileEdges = 11 * 1024;  // eleven for each thread of a CTA
inline constexpr std::int32_t kWindow = 1024;          // rows that are sorted by degree
inline constexpr std::int64_t kPositionUnit = 128;     // positions come in multiples: 16 bytes of bits
inline constexpr std::int64_t kEdgeUnit = 4;           // edges of a CTA begin at multiples

/// 32 short rows: edge `step` of row `lane` is edge at + 32 * step + lane of the tile.
struct Slice {
  std::int32_t at, steps;
};

/// A long row, or at most kSegment edges of one: edges [at, at + edges) of the tile.
struct Segment {
  std::int32_t at, edges;
  std::int32_t position;  // of the row
  std::int32_t hub;       // whose part it is: kWhole, kLocal, or the number of a hub that several CTAs share
  std::int32_t part;      // where the sum of a part goes: in the CTA's memory (kLocal) or in everybody's
  std::int32_t unused;
};
inline constexpr std::int32_t kWhole = -1, kLocal = -2;

/// Edges [at, at + edges) of the graph's arrays, segments and slices over them.
struct Tile {
  std::int64_t at;
  std::int32_t edges;
  std::int32_t first_segment, segments;
  std::int32_t first_slice, slices;
  std::int32_t unused;
};

/// A row of several segments: its sums are parts [first, first + segments).
struct Hub {
  std::int32_t first, segments;
  std::int32_t position, unused;
};

/// What a CTA has to do: everything from its own entry to the next one's.
struct Share {
  std::int32_t tile, segment, slice, hub;
  std::int64_t edge;
};

/// Rows as a graph stores them.
struct Rows {
  std::int64_t nodes;
  const std::int32_t* begin;   // [nodes + 1]
  const std::int32_t* source;  // by edge
  const float* weight;
  std::int64_t edges() const { return begin[nodes]; }
  std::int32_t degree(std::int32_t row) const { return begin[row + 1] - begin[row]; }
};

struct Layout {
  std::int64_t long_positions = 0;    // a multiple of 32
  std::int64_t positions = 0;         // a multiple of kPositionUnit
  std::vector<std::int32_t> node_of;  // by position; -1: none
  std::vector<std::int32_t> sources;  // positions; -1: no edge
  std::vector<float> weights;
  std::vector<Slice> slices;  // slice s is the positions from long_positions + 32 s on
  std::vector<Segment> segments;
  std::vector<Tile> tiles;
  std::vector<Hub> hubs;      // of CTAs, their parts counted from 0 in each; then those that CTAs share
  std::vector<Share> shares;  // by CTA, and the end
  std::int64_t shared_parts = 0, shared_hubs = 0, first_shared_hub = 0;
  std::int64_t most_edges = 0;  // of one CTA, as what follows
  std::int32_t most_slices = 0, most_tiles = 0, most_segments = 0, most_hubs = 0, most_parts = 0;
  std::int32_t most_tile_edges = 0;  // of one tile
};

namespace detail {

// In edges: what a row costs beside them. A part of a row that CTAs share is waited for by all.
inline constexpr std::int64_t kSliceCost = 64, kSegmentCost = 64, kSharedCost = 3072;

class Maker {
 public:
  Maker(const Rows& rows, std::int32_t ctas) : rows_(rows), ctas_(ctas) {}

  Layout make() {
    place_nodes();
    measure_slices();
    deal_rows();
    deal_slices();
    for (std::int32_t cta = 0; cta < ctas_; ++cta) fill(cta);
    while (out_.sources.size() % kEdgeUnit != 0) add_no_edge();
    out_.shares.push_back(end());
    share_hubs();
    return std::move(out_);
  }

 private:
  /// Positions of all nodes.
  void place_nodes() {
    std::vector<std::int32_t> longs, shorts;
    for (std::int64_t node = 0; node < rows_.nodes; ++node) {
      const auto row = static_cast<std::int32_t>(node);
      (rows_.degree(row) > kShortRow ? longs : shorts).push_back(row);
    }
    // Values of the first positions are kept at hand: those that are read most.
    std::vector<std::int32_t> readers(static_cast<std::size_t>(rows_.nodes), 0);
    for (std::int64_t e = 0; e < rows_.edges(); ++e) ++readers[static_cast<std::size_t>(rows_.source[e])];
    std::stable_sort(longs.begin(), longs.end(), [&](std::int32_t a, std::int32_t b) {
      return readers[static_cast<std::size_t>(a)] > readers[static_cast<std::size_t>(b)];
    });
    for (std::size_t first = 0; first < shorts.size(); first += kWindow) {
      const std::size_t last = std::min(shorts.size(), first + kWindow);
      std::stable_sort(shorts.begin() + static_cast<std::ptrdiff_t>(first),
                       shorts.begin() + static_cast<std::ptrdiff_t>(last),
                       [&](std::int32_t a, std::int32_t b) { return rows_.degree(a) > rows_.degree(b); });
    }
    const auto up = [](std::size_t count, std::int64_t unit) {
      return (static_cast<std::int64_t>(count) + unit - 1) / unit * unit;
    };
    out_.long_positions = up(longs.size(), kLanes);
    slice_count_ = static_cast<std::int32_t>(up(shorts.size(), kLanes) / kLanes);
    out_.positions = up(static_cast<std::size_t>(out_.long_positions + std::int64_t{slice_count_} * kLanes),
                        kPositionUnit);
    out_.node_of.assign(static_cast<std::size_t>(out_.positions), -1);
    std::copy(longs.begin(), longs.end(), out_.node_of.begin());
    std::copy(shorts.begin(), shorts.end(), out_.node_of.begin() + out_.long_positions);
    position_of_.resize(static_cast<std::size_t>(rows_.nodes));
    for (std::size_t p = 0; p < out_.node_of.size(); ++p) {
      if (out_.node_of[p] >= 0)
        position_of_[static_cast<std::size_t>(out_.node_of[p])] = static_cast<std::int32_t>(p);
    }
    long_count_ = static_cast<std::int32_t>(longs.size());
  }

  const std::int32_t* nodes_of(std::int32_t slice) const {
    return out_.node_of.data() + out_.long_positions + std::int64_t{slice} * kLanes;
  }
  std::int32_t steps_of(std::int32_t slice) const {
    return rows_.degree(nodes_of(slice)[0]);
  }  // the longest row
  std::int64_t cost_of_slice(std::int32_t slice) const {
    return std::int64_t{steps_of(slice)} * kLanes + kSliceCost;
  }

  void measure_slices() {
    for (std::int32_t slice = 0; slice < slice_count_; ++slice) slices_cost_ += cost_of_slice(slice);
    out_.slices.reserve(static_cast<std::size_t>(slice_count_));
  }

  /// Parts of rows, as (edges, position, first edge): each row to the CTA with the least to do, most edges first. A row
  /// that is more than a CTA's share is dealt out in its segments.
  struct Part {
    std::int32_t edges, position;
    std::int64_t from;
    bool shared;
  };
  void deal_rows() {
    of_.resize(static_cast<std::size_t>(ctas_));
    load_.assign(static_cast<std::size_t>(ctas_), 0);
    const std::int64_t much = std::max<std::int64_t>(rows_.edges() / ctas_, kSegment);
    std::vector<Part> parts;
    for (std::int32_t position = 0; position < long_count_; ++position) {
      const std::int32_t degree = rows_.degree(out_.node_of[static_cast<std::size_t>(position)]);
      const bool shared = degree > much && ctas_ > 1;
      const std::int32_t step = shared ? kSegment : degree;
      for (std::int64_t from = 0; from < degree; from += step) {
        parts.push_back(Part{static_cast<std::int32_t>(std::min<std::int64_t>(step, degree - from)), position,
                             from, shared});
      }
    }
    std::stable_sort(parts.begin(), parts.end(),
                     [](const Part& a, const Part& b) { return a.edges > b.edges; });
    using Load = std::pair<std::int64_t, std::int32_t>;
    std::priority_queue<Load, std::vector<Load>, std::greater<>> least;
    for (std::int32_t cta = 0; cta < ctas_; ++cta) least.emplace(0, cta);
    for (const Part& part : parts) {
      const auto [cost, cta] = least.top();
      least.pop();
      of_[static_cast<std::size_t>(cta)].push_back(part);
      load_[static_cast<std::size_t>(cta)] =
          cost + part.edges + kSegmentCost + (part.shared ? kSharedCost : 0);
      least.emplace(load_[static_cast<std::size_t>(cta)], cta);
    }
  }

  /// Neighbouring slices to each CTA, so many that all have about the same to do.
  void deal_slices() {
    std::int64_t left = std::accumulate(load_.begin(), load_.end(), slices_cost_);
    std::int32_t next = 0;
    slice_begin_.assign(1, 0);
    for (std::int32_t cta = 0; cta < ctas_; ++cta) {
      std::int64_t mine = load_[static_cast<std::size_t>(cta)];
      const std::int64_t share = left / (ctas_ - cta);
      while (next < slice_count_ && (cta + 1 == ctas_ || mine + cost_of_slice(next) / 2 < share)) {
        mine += cost_of_slice(next++);
      }
      left -= mine;
      slice_begin_.push_back(next);
    }
  }

  Share end() const {
    return Share{static_cast<std::int32_t>(out_.tiles.size()),
                 static_cast<std::int32_t>(out_.segments.size()),
                 static_cast<std::int32_t>(out_.slices.size()), static_cast<std::int32_t>(out_.hubs.size()),
                 static_cast<std::int64_t>(out_.sources.size())};
  }

  /// The tile that has room for so many more edges.
  Tile& tile_with(std::int32_t edges, bool first) {
    if (first || out_.tiles.back().edges + edges > kTileEdges) {
      const Share at = end();
      out_.tiles.push_back(Tile{at.edge, 0, at.segment, 0, at.slice, 0, 0});
    }
    Tile& tile = out_.tiles.back();
    return tile;
  }
  bool empty(const Share& begin) const { return out_.tiles.size() == static_cast<std::size_t>(begin.tile); }

  void add_edge(std::int64_t edge) {
    out_.sources.push_back(position_of_[static_cast<std::size_t>(rows_.source[edge])]);
    out_.weights.push_back(rows_.weight[edge]);
  }

  void add_no_edge() {
    out_.sources.push_back(-1);
    out_.weights.push_back(0.0F);
  }

  void add_segment(const Share& begin, const Part& part, std::int64_t from, std::int32_t edges,
                   std::int32_t hub, std::int32_t number) {
    Tile& tile = tile_with(edges, empty(begin));
    const std::int64_t first = rows_.begin[out_.node_of[static_cast<std::size_t>(part.position)]] + from;
    for (std::int64_t e = first; e < first + edges; ++e) add_edge(e);
    out_.segments.push_back(Segment{tile.edges, edges, part.position, hub, number, 0});
    tile.edges += edges;
    ++tile.segments;
  }

  void add_slice(const Share& begin, std::int32_t slice) {
    const std::int32_t steps = steps_of(slice), edges = steps * kLanes;
    Tile& tile = tile_with(edges, empty(begin));
    out_.slices.push_back(Slice{tile.edges, steps});
    const std::int32_t* nodes = nodes_of(slice);
    for (std::int32_t step = 0; step < steps; ++step) {
      for (std::int32_t lane = 0; lane < kLanes; ++lane) {
        if (nodes[lane] >= 0 && step < rows_.degree(nodes[lane])) {
          add_edge(std::int64_t{rows_.begin[nodes[lane]]} + step);
        } else {
          add_no_edge();
        }
      }
    }
    tile.edges += edges;
    ++tile.slices;
  }

  /// Everything of one CTA, longest rows first.
  void fill(std::int32_t cta) {
    while (out_.sources.size() % kEdgeUnit != 0) add_no_edge();
    const Share begin = end();
    out_.shares.push_back(begin);
    std::int32_t parts = 0;
    for (const Part& part : of_[static_cast<std::size_t>(cta)]) {
      if (part.shared) {
        add_segment(begin, part, part.from, part.edges, 0, static_cast<std::int32_t>(part.from / kSegment));
        continue;
      }
      if (part.edges <= kSegment) {
        add_segment(begin, part, 0, part.edges, kWhole, 0);
        continue;
      }
      out_.hubs.push_back(Hub{parts, (part.edges - 1) / kSegment + 1, part.position, 0});
      for (std::int32_t from = 0; from < part.edges; from += kSegment) {
        add_segment(begin, part, from, std::min(kSegment, part.edges - from), kLocal, parts++);
      }
    }
    const auto at = static_cast<std::size_t>(cta);
    for (std::int32_t slice = slice_begin_[at]; slice < slice_begin_[at + 1]; ++slice)
      add_slice(begin, slice);
    const Share after = end();
    out_.most_edges =
        std::max(out_.most_edges, (after.edge - begin.edge + kEdgeUnit - 1) / kEdgeUnit * kEdgeUnit);
    out_.most_slices = std::max(out_.most_slices, after.slice - begin.slice);
    out_.most_tiles = std::max(out_.most_tiles, after.tile - begin.tile);
    out_.most_segments = std::max(out_.most_segments, after.segment - begin.segment);
    out_.most_hubs = std::max(out_.most_hubs, after.hub - begin.hub);
    out_.most_parts = std::max(out_.most_parts, parts);
    for (std::int32_t t = begin.tile; t < after.tile; ++t) {
      out_.most_tile_edges = std::max(out_.most_tile_edges, out_.tiles[static_cast<std::size_t>(t)].edges);
    }
  }

  /// Numbers for the hubs that CTAs share, and places for their parts.
  void share_hubs() {
    out_.first_shared_hub = static_cast<std::int64_t>(out_.hubs.size());
    std::vector<std::int32_t> hub_of(static_cast<std::size_t>(long_count_), -1);
    for (Segment& segment : out_.segments) {
      if (segment.hub < 0) continue;
      std::int32_t& hub = hub_of[static_cast<std::size_t>(segment.position)];
      if (hub < 0) {
        hub = static_cast<std::int32_t>(out_.shared_hubs++);
        const std::int32_t degree = rows_.degree(out_.node_of[static_cast<std::size_t>(segment.position)]);
        const std::int32_t segments = (degree - 1) / kSegment + 1;
        out_.hubs.push_back(Hub{static_cast<std::int32_t>(out_.shared_parts), segments, segment.position, 0});
        out_.shared_parts += segments;
      }
      segment.hub = hub;
      segment.part += out_.hubs[static_cast<std::size_t>(out_.first_shared_hub + hub)].first;
    }
  }

  const Rows& rows_;
  std::int32_t ctas_;
  std::int32_t slice_count_ = 0, long_count_ = 0;
  std::int64_t slices_cost_ = 0;
  std::vector<std::int32_t> position_of_, slice_begin_;
  std::vector<std::vector<Part>> of_;
  std::vector<std::int64_t> load_;
  Layout out_;
};

}  // namespace detail

/// The layout for so many CTAs.
inline Layout make_layout(const Rows& rows, std::int32_t ctas) { return detail::Maker(rows, ctas).make(); }

}  // namespace fulcrum::backends::cuda::spreading
