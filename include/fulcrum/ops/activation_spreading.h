// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// What kernels of activation_spreading share: the graph, the order in which a row is added up (part of the definition:
// a threshold makes one ulp visible), the update of a node, and the scratch memory of a call.
#pragma once

#include <fulcrum/ops.h>

namespace fulcrum::ops {

/// Rows up to this degree are added in stored order, one term after the other.
inline constexpr std::int64_t kSpreadingShortRow = 32;
/// Longer rows add term e to lane e mod 32 and then lanes as a tree of 16, 8, 4, 2, 1; a row longer than a segment is
/// the sum, in order, of its segments, each added in lanes whatever its length. Sums begin at +0.
inline constexpr std::int64_t kSpreadingLanes = 32;
inline constexpr std::int64_t kSpreadingSegment = 4096;
/// Rows of a slice: as many as the widest vector has lanes.
inline constexpr std::int64_t kSpreadingSlice = 16;
/// Pieces begin at multiples of this, so that each word of a bit set belongs to one piece.
inline constexpr std::int64_t kSpreadingWord = 64;
/// And have at most so many rows.
inline constexpr std::int64_t kSpreadingPieceRows = 512;

/// Short rows side by side, longest first: edge `step` of row `lane` is at `at + 16 * step + lane`. Missing edges have
/// weight 0 and source 0 and must be left out of the sum (0 * Inf is not 0).
struct SpreadingSlice {
  std::int64_t at = 0;
  std::int32_t steps = 0;
  std::int32_t row[kSpreadingSlice];     // -1: none
  std::int32_t degree[kSpreadingSlice];  // 0 for none
};

/// Rows [row, row + rows), which no other piece writes: their slices and their long rows.
struct SpreadingPiece {
  std::int64_t row = 0, rows = 0;
  std::int64_t first_slice = 0, slices = 0;
  std::int64_t first_long = 0, longs = 0;
};

/// An immutable, validated graph: row i lists the sources of edges into node i, as stored. The rest follows from that.
struct SpreadingGraph {
  std::int64_t nodes = 0, edges = 0;
  const std::int32_t* row_begin = nullptr;  // [nodes + 1]
  const std::int32_t* source = nullptr;     // [edges]
  const float* weight = nullptr;            // [edges]
  const std::int32_t* out_begin = nullptr;  // [nodes + 1]: edges out of a node, to find who hears of it
  const std::int32_t* out_row = nullptr;    // [edges]
  std::span<const SpreadingPiece> pieces;
  std::span<const SpreadingSlice> slices;
  std::span<const std::int32_t> long_rows;
  const std::int32_t* slice_source = nullptr;
  const float* slice_weight = nullptr;
  std::uint64_t id = 0;  // of this graph alone; its address may be another's later
};

enum class EdgeLists : std::uint8_t { incoming, outgoing };

/// Checks and copies a graph. `begin` has nodes + 1 entries; list i is the edges [begin[i], begin[i + 1]) into node i
/// (incoming) or out of it (outgoing: transposed here, sources ascending). Errors: begin that does not start at 0, go
/// up and end at the number of edges, ends outside of the nodes, weights that are not finite, 2^31 edges or more.
Result<std::shared_ptr<const SpreadingGraph>> make_graph(std::int64_t nodes,
                                                         std::span<const std::int32_t> begin,
                                                         std::span<const std::int32_t> ends,
                                                         std::span<const float> weights, EdgeLists lists);

/// The scalars of a call, rounded as kernels use them.
struct SpreadingRule {
  std::int64_t hops;
  float lambda, theta, cap;
  bool include_source;
  explicit SpreadingRule(const Args& args)
      : hops(args.scalar[0].i),
        lambda(static_cast<float>(args.scalar[1].f)),
        theta(static_cast<float>(args.scalar[2].f)),
        cap(static_cast<float>(args.scalar[3].f)),
        include_source(args.scalar[4].i == 0) {}
};

/// One node after its row was added up: returns what it passes on and adds that to its activation. NaN stays NaN.
inline float spread_to(float sum, const SpreadingRule& rule, float& activation) {
  float c = rule.lambda * sum;
  if ((c < 0 ? -c : c) < rule.theta) c = 0;
  const float room = c >= 0 ? rule.cap - activation : -rule.cap - activation;
  const bool fits = c != c || (c >= 0 ? c < room : c > room);
  const float passed_on = fits ? c : room;
  activation += passed_on;
  return passed_on;
}

/// Edges [begin, end) in 32 lanes and their tree.
inline float sum_in_lanes(const SpreadingGraph& graph, const float* x, std::int64_t begin, std::int64_t end) {
  float lane[kSpreadingLanes] = {};
  for (std::int64_t e = begin; e < end; ++e) {
    const float term = graph.weight[e] * x[graph.source[e]];
    lane[(e - begin) % kSpreadingLanes] += term;
  }
  for (std::int64_t half = kSpreadingLanes / 2; half > 0; half /= 2) {
    for (std::int64_t i = 0; i < half; ++i) lane[i] += lane[i + half];
  }
  return lane[0];
}

/// The sum of one row, in the order of the definition.
inline float sum_of_row(const SpreadingGraph& graph, const float* x, std::int64_t row) {
  const std::int64_t begin = graph.row_begin[row], end = graph.row_begin[row + 1];
  float sum = 0;
  if (end - begin <= kSpreadingShortRow) {
    for (std::int64_t e = begin; e < end; ++e) {
      const float term = graph.weight[e] * x[graph.source[e]];
      sum += term;
    }
    return sum;
  }
  if (end - begin <= kSpreadingSegment) return sum_in_lanes(graph, x, begin, end);
  for (std::int64_t at = begin; at < end; at += kSpreadingSegment) {
    sum += sum_in_lanes(graph, x, at, at + kSpreadingSegment < end ? at + kSpreadingSegment : end);
  }
  return sum;
}

/// Scratch memory of one call. Phase 0 writes the first activations and `active`; phase t is hop t, which reads what
/// hop t - 1 passed on (hop 1: the input) and writes its own; combine() turns `active` into `touched` when few nodes
/// have something to pass on: then the sum of every other row is +0.
struct SpreadingScratch {
  struct Header {
    std::int64_t sparse = 0;  // 1: only rows in `touched` hear of anything
  };
  Header* header;
  std::uint64_t* active;   // bit i: node i passes something on (NaN too); a word belongs to one piece
  std::uint64_t* touched;  // bit i: row i has an active source
  float* passed[2];        // by parity of the hop

  SpreadingScratch(const SpreadingGraph& graph, void* memory);
  static std::int64_t bytes(const SpreadingGraph& graph);
};

/// What runs after each phase. The memory is as the phases left it; its first contents do not matter.
void combine_spreading(const Args& args, int phase, void* scratch);

}  // namespace fulcrum::ops
