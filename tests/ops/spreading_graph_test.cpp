// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Graphs of activation_spreading: what is refused, which way edges run, how rows are laid out, what is drawn.
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "ops/support/graph.h"

namespace fulcrum::ops {
namespace {

using Ints = std::vector<std::int32_t>;
using Floats = std::vector<float>;

TEST(SpreadingGraph, RefusesWhatIsNoGraphAndSaysWhy) {
  struct Case {
    std::int64_t nodes;
    Ints begin, ends;
    Floats weights;
    std::string_view says;
  };
  const Case cases[] = {
      {2, {0, 1}, {0}, {1}, "list ends"},
      {2, {0, 1, 2}, {0, 1}, {1}, "weights"},
      {2, {1, 1, 2}, {0, 1}, {1, 1}, "from 1"},
      {2, {0, 1, 3}, {0, 1}, {1, 1}, "to 3"},
      {2, {0, 2, 1}, {0}, {1}, "before it begins"},
      {2, {0, 1, 2}, {0, 2}, {1, 1}, "node 2 of 2"},
      {2, {0, 1, 2}, {0, -1}, {1, 1}, "node -1"},
      {2, {0, 1, 2}, {0, 1}, {1, NAN}, "weight"},
      {2, {0, 1, 2}, {0, 1}, {INFINITY, 1}, "weight"},
      {-1, {0}, {}, {}, "-1 nodes"},
  };
  for (const Case& c : cases) {
    const auto graph = make_graph(c.nodes, c.begin, c.ends, c.weights, EdgeLists::incoming);
    ASSERT_FALSE(graph.ok()) << c.says;
    EXPECT_EQ(graph.error().code, Code::invalid_argument);
    EXPECT_NE(graph.error().message.find(c.says), std::string::npos) << graph.error().message;
  }
}

TEST(SpreadingGraph, OutgoingListsAreTurnedAround) {
  // 0 -> 2 (0.1), 0 -> 1 (0.2), 1 -> 2 (0.3), 2 -> 2 (0.4)
  const auto graph =
      make_graph(3, Ints{0, 2, 3, 4}, Ints{2, 1, 2, 2}, Floats{0.1f, 0.2f, 0.3f, 0.4f}, EdgeLists::outgoing);
  ASSERT_TRUE(graph.ok());
  const SpreadingGraph& g = **graph;
  EXPECT_EQ(Ints(g.row_begin, g.row_begin + 4), (Ints{0, 0, 1, 4}));
  EXPECT_EQ(Ints(g.source, g.source + 4), (Ints{0, 0, 1, 2}));
  EXPECT_EQ(Floats(g.weight, g.weight + 4), (Floats{0.2f, 0.1f, 0.3f, 0.4f}));
  EXPECT_EQ(Ints(g.out_begin, g.out_begin + 4), (Ints{0, 2, 3, 4}));
  EXPECT_EQ(Ints(g.out_row, g.out_row + 4), (Ints{1, 2, 2, 2}));
}

TEST(SpreadingGraph, PiecesCoverEveryRowOnceAndSlicesHoldItsEdgesInOrder) {
  const auto graph = drawn_graph(3000, 60000, GraphData::rmat);
  ASSERT_TRUE(graph.ok());
  const SpreadingGraph& g = **graph;
  std::map<std::int32_t, int> seen;
  std::int64_t next_row = 0;
  for (const SpreadingPiece& piece : g.pieces) {
    EXPECT_EQ(piece.row, next_row);
    EXPECT_EQ(piece.row % kSpreadingWord, 0);
    next_row += piece.rows;
    for (std::int64_t l = 0; l < piece.longs; ++l) {
      const std::int32_t row = g.long_rows[static_cast<std::size_t>(piece.first_long + l)];
      EXPECT_GT(g.row_begin[row + 1] - g.row_begin[row], kSpreadingShortRow);
      ++seen[row];
    }
    for (std::int64_t s = 0; s < piece.slices; ++s) {
      const SpreadingSlice& slice = g.slices[static_cast<std::size_t>(piece.first_slice + s)];
      for (std::int64_t lane = 0; lane < kSpreadingSlice && slice.row[lane] >= 0; ++lane) {
        const std::int32_t row = slice.row[lane];
        ++seen[row];
        ASSERT_EQ(slice.degree[lane], g.row_begin[row + 1] - g.row_begin[row]);
        for (std::int32_t step = 0; step < slice.degree[lane]; ++step) {
          const std::int64_t at = slice.at + step * kSpreadingSlice + lane;
          ASSERT_EQ(g.slice_source[at], g.source[g.row_begin[row] + step]);
          ASSERT_EQ(g.slice_weight[at], g.weight[g.row_begin[row] + step]);
        }
      }
    }
  }
  EXPECT_EQ(next_row, 3000);
  EXPECT_EQ(seen.size(), 3000u);
  for (const auto& [row, times] : seen) EXPECT_EQ(times, 1) << row;
  EXPECT_GT(g.long_rows.size(), 0u) << "no hub: the graph is not a power law";
}

TEST(SpreadingGraph, EngramNodesHaveFiveTargetsAndNeverThemselves) {
  const auto graph = drawn_graph(1000, 5000, GraphData::engram);
  ASSERT_TRUE(graph.ok());
  const SpreadingGraph& g = **graph;
  for (std::int32_t node = 0; node < 1000; ++node) {
    EXPECT_EQ(g.out_begin[node + 1] - g.out_begin[node], 5);
    for (auto e = g.out_begin[node]; e < g.out_begin[node + 1]; ++e) EXPECT_NE(g.out_row[e], node);
  }
  for (std::int64_t e = 0; e < g.edges; ++e) {
    EXPECT_GE(g.weight[e], 0.1f);
    EXPECT_LE(g.weight[e], 1.0f);
  }
}

TEST(SpreadingGraph, AGraphAskedForAgainIsTheSameObject) {
  const auto first = drawn_graph(100, 300, GraphData::engram),
             again = drawn_graph(100, 300, GraphData::engram);
  const auto other = drawn_graph(100, 300, GraphData::rmat);
  ASSERT_TRUE(first.ok() && again.ok() && other.ok());
  EXPECT_EQ(first->get(), again->get());
  EXPECT_NE(first->get(), other->get());
}

}  // namespace
}  // namespace fulcrum::ops
