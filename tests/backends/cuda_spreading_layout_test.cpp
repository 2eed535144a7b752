// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Adds rows up on the host as the device does, from the layout it gets: every row must have the bits of the
// definition, and every piece of work must belong to one CTA.
#include <fulcrum/ops/activation_spreading.h>
#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "backends/cuda/spreading_layout.h"

namespace fulcrum::backends::cuda::spreading {
namespace {

struct Stored {
  std::vector<std::int32_t> begin{0}, source;
  std::vector<float> weight;
  std::int64_t nodes() const { return static_cast<std::int64_t>(begin.size()) - 1; }
  Rows rows() const { return Rows{nodes(), begin.data(), source.data(), weight.data()}; }
  ops::SpreadingGraph graph() const {
    ops::SpreadingGraph graph;
    graph.nodes = nodes();
    graph.edges = static_cast<std::int64_t>(source.size());
    graph.row_begin = begin.data();
    graph.source = source.data();
    graph.weight = weight.data();
    return graph;
  }
};

Stored with_degrees(const std::vector<std::int32_t>& degrees, unsigned seed) {
  std::mt19937 random(seed);
  Stored stored;
  for (const std::int32_t degree : degrees) {
    for (std::int32_t e = 0; e < degree; ++e) {
      stored.source.push_back(static_cast<std::int32_t>(random() % degrees.size()));
      stored.weight.push_back(static_cast<float>(random() % 2001) / 1000.0F - 1.0F);
    }
    stored.begin.push_back(static_cast<std::int32_t>(stored.source.size()));
  }
  return stored;
}

/// The sums of all rows, by node, from the layout; NaN where nobody wrote one.
std::vector<float> sums_by_layout(const Layout& layout, std::int64_t nodes, const std::vector<float>& x) {
  std::vector<float> passed(layout.node_of.size(), 0.0F), sums(static_cast<std::size_t>(nodes), NAN);
  for (std::size_t p = 0; p < passed.size(); ++p) {
    if (layout.node_of[p] >= 0) passed[p] = x[static_cast<std::size_t>(layout.node_of[p])];
  }
  const auto term = [&](const Edge& edge) {
    return edge.source < 0 ? 0.0F : edge.weight * passed[static_cast<std::size_t>(edge.source)];
  };
  for (std::size_t s = 0; s < layout.slices.size(); ++s) {
    for (std::int64_t lane = 0; lane < kLanes; ++lane) {
      const std::int64_t position = layout.long_positions + static_cast<std::int64_t>(s) * kLanes + lane;
      float sum = 0;
      for (std::int64_t step = 0; step < layout.slices[s].steps; ++step) {
        const std::int64_t at = (layout.slices[s].at + step) * kLanes + lane;
        sum = sum + term(layout.slice_edges[static_cast<std::size_t>(at)]);
      }
      const std::int32_t node = layout.node_of[static_cast<std::size_t>(position)];
      if (node >= 0) sums[static_cast<std::size_t>(node)] = sum;
    }
  }
  std::vector<float> parts(static_cast<std::size_t>(layout.parts), NAN);
  for (const Segment& segment : layout.segments) {
    float lane[kLanes] = {};
    for (std::int32_t e = 0; e < segment.edges; ++e) {
      lane[e % kLanes] += term(layout.long_edges[static_cast<std::size_t>(segment.at + e)]);
    }
    for (std::int32_t half = kLanes / 2; half > 0; half /= 2) {
      for (std::int32_t i = 0; i < half; ++i) lane[i] += lane[i + half];
    }
    if (segment.part >= 0) parts[static_cast<std::size_t>(segment.part)] = lane[0];
    sums[static_cast<std::size_t>(layout.node_of[static_cast<std::size_t>(segment.position)])] = lane[0];
  }
  for (const Segment& segment : layout.segments) {
    if (segment.hub < 0) continue;
    const Hub& hub = layout.hubs[static_cast<std::size_t>(segment.hub)];
    float sum = 0;
    for (std::int32_t i = 0; i < hub.segments; ++i)
      sum = sum + parts[static_cast<std::size_t>(hub.first + i)];
    sums[static_cast<std::size_t>(layout.node_of[static_cast<std::size_t>(segment.position)])] = sum;
  }
  return sums;
}

void expect_bits_of_the_definition(const Stored& stored, std::int32_t ctas) {
  const Layout layout = make_layout(stored.rows(), ctas);
  std::mt19937 random(7);
  std::vector<float> x(static_cast<std::size_t>(stored.nodes()));
  for (float& value : x)
    value = random() % 3 == 0 ? 0.0F : static_cast<float>(random() % 1000) / 999.0F - 0.5F;
  const std::vector<float> sums = sums_by_layout(layout, stored.nodes(), x);
  const ops::SpreadingGraph graph = stored.graph();
  for (std::int64_t row = 0; row < stored.nodes(); ++row) {
    const float expected = ops::sum_of_row(graph, x.data(), row);
    ASSERT_EQ(std::memcmp(&expected, &sums[static_cast<std::size_t>(row)], sizeof(float)), 0)
        << "row " << row << " of " << ctas << " CTAs: " << sums[static_cast<std::size_t>(row)] << ", not "
        << expected;
  }
}

/// Tiles of a CTA follow each other in memory and have room; slices and tiles are all dealt out.
void expect_work_is_dealt(const Layout& layout, std::int32_t ctas) {
  ASSERT_EQ(layout.slice_begin.size(), static_cast<std::size_t>(ctas) + 1);
  ASSERT_EQ(layout.tile_begin.size(), static_cast<std::size_t>(ctas) + 1);
  EXPECT_TRUE(std::is_sorted(layout.slice_begin.begin(), layout.slice_begin.end()));
  EXPECT_EQ(layout.slice_begin.back(), static_cast<std::int32_t>(layout.slices.size()));
  EXPECT_EQ(layout.tile_begin.back(), static_cast<std::int32_t>(layout.tiles.size()));
  EXPECT_EQ(layout.positions % kPositionUnit, 0);
  std::int32_t at = 0, first = 0;
  for (const Tile& tile : layout.tiles) {
    EXPECT_EQ(tile.at, at);
    EXPECT_EQ(tile.first, first);
    EXPECT_LE(tile.edges, kTileEdges);
    EXPECT_LE(tile.edges, layout.most_tile_edges);
    at += tile.edges;
    first += tile.segments;
  }
  EXPECT_EQ(at, static_cast<std::int32_t>(layout.long_edges.size()));
  EXPECT_EQ(first, static_cast<std::int32_t>(layout.segments.size()));
}

TEST(CudaSpreadingLayout, AddsEveryRowInTheOrderOfTheDefinition) {
  const std::vector<std::vector<std::int32_t>> cases = {
      {0},
      {5000},
      {1, 0, 32, 33, 31, 64, 4096, 4097, 8192, 8193, 12289, 2, 0},
      std::vector<std::int32_t>(97, 40)};
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const Stored stored = with_degrees(cases[i], static_cast<unsigned>(i));
    for (const std::int32_t ctas : {1, 3, 132}) {
      expect_bits_of_the_definition(stored, ctas);
      expect_work_is_dealt(make_layout(stored.rows(), ctas), ctas);
    }
  }
}

TEST(CudaSpreadingLayout, AddsRowsOfMixedDegreesInTheOrderOfTheDefinition) {
  std::mt19937 random(3);
  std::vector<std::int32_t> degrees(5003);
  for (std::int32_t& degree : degrees) {
    degree = random() % 50 == 0 ? static_cast<std::int32_t>(random() % 600)
                                : static_cast<std::int32_t>(random() % 12);
  }
  degrees[17] = 20000;
  const Stored stored = with_degrees(degrees, 11);
  for (const std::int32_t ctas : {1, 16, 132}) {
    expect_bits_of_the_definition(stored, ctas);
    expect_work_is_dealt(make_layout(stored.rows(), ctas), ctas);
  }
}

TEST(CudaSpreadingLayout, GivesEveryCtaAboutTheSameToDo) {
  std::mt19937 random(5);
  std::vector<std::int32_t> degrees(60000);
  for (std::int32_t& degree : degrees) {
    degree = random() % 20 == 0 ? static_cast<std::int32_t>(random() % 300)
                                : static_cast<std::int32_t>(random() % 9);
  }
  const Layout layout = make_layout(with_degrees(degrees, 13).rows(), 132);
  std::int64_t most = 0, all = 0;
  for (std::size_t cta = 0; cta < 132; ++cta) {
    std::int64_t mine = 0;
    for (auto s = layout.slice_begin[cta]; s < layout.slice_begin[cta + 1]; ++s) {
      mine += detail::cost_of(layout.slices[static_cast<std::size_t>(s)]);
    }
    for (auto t = layout.tile_begin[cta]; t < layout.tile_begin[cta + 1]; ++t) {
      const Tile& tile = layout.tiles[static_cast<std::size_t>(t)];
      for (auto i = tile.first; i < tile.first + tile.segments; ++i) {
        mine += detail::cost_of(layout.segments[static_cast<std::size_t>(i)]);
      }
    }
    most = std::max(most, mine);
    all += mine;
  }
  EXPECT_LE(static_cast<double>(most), 1.1 * static_cast<double>(all) / 132);
}

}  // namespace
}  // namespace fulcrum::backends::cuda::spreading
