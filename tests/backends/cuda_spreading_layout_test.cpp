// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Adds rows up on the host as the device does, from the layout it gets: every row must have the bits of the
// definition, and every piece of work must belong to one CTA.
#include <fulcrum/ops/activation_spreading.h>
#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "backends/cuda/spreading_own.h"

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

template <class Put>
void put_hub(const Layout& layout, std::int32_t number, const std::vector<float>& parts, const Put& put) {
  const Hub& hub = layout.hubs[static_cast<std::size_t>(number)];
  float sum = 0;
  for (std::int32_t i = 0; i < hub.segments; ++i) sum = sum + parts[static_cast<std::size_t>(hub.first + i)];
  put(hub.position, sum);
}

/// The sums of all rows, by node, from the layout; NaN where nobody wrote one.
std::vector<float> sums_by_layout(const Layout& layout, std::int64_t nodes, const std::vector<float>& x) {
  std::vector<float> passed(layout.node_of.size(), 0.0F), sums(static_cast<std::size_t>(nodes), NAN);
  for (std::size_t p = 0; p < passed.size(); ++p) {
    if (layout.node_of[p] >= 0) passed[p] = x[static_cast<std::size_t>(layout.node_of[p])];
  }
  const auto term = [&](std::int64_t edge) {
    const std::int32_t source = layout.sources[static_cast<std::size_t>(edge)];
    const float weight = layout.weights[static_cast<std::size_t>(edge)];
    return source < 0 ? 0.0F : weight * passed[static_cast<std::size_t>(source)];
  };
  const auto put = [&](std::int64_t position, float sum) {
    const std::int32_t node = layout.node_of[static_cast<std::size_t>(position)];
    if (node >= 0) sums[static_cast<std::size_t>(node)] = sum;
  };
  std::vector<float> shared(static_cast<std::size_t>(layout.shared_parts), NAN);
  for (std::size_t cta = 0; cta + 1 < layout.shares.size(); ++cta) {
    const Share &first = layout.shares[cta], &end = layout.shares[cta + 1];
    std::vector<float> parts(static_cast<std::size_t>(layout.most_parts), NAN);
    for (std::int32_t t = first.tile; t < end.tile; ++t) {
      const Tile& tile = layout.tiles[static_cast<std::size_t>(t)];
      for (std::int32_t s = tile.first_slice; s < tile.first_slice + tile.slices; ++s) {
        const Slice& slice = layout.slices[static_cast<std::size_t>(s)];
        for (std::int64_t lane = 0; lane < kLanes; ++lane) {
          float sum = 0;
          for (std::int64_t step = 0; step < slice.steps; ++step) {
            sum = sum + term(tile.at + slice.at + step * kLanes + lane);
          }
          put(layout.long_positions + std::int64_t{s} * kLanes + lane, sum);
        }
      }
      for (std::int32_t s = tile.first_segment; s < tile.first_segment + tile.segments; ++s) {
        const Segment& segment = layout.segments[static_cast<std::size_t>(s)];
        float lane[kLanes] = {};
        for (std::int32_t e = 0; e < segment.edges; ++e) lane[e % kLanes] += term(tile.at + segment.at + e);
        for (std::int32_t half = kLanes / 2; half > 0; half /= 2) {
          for (std::int32_t i = 0; i < half; ++i) lane[i] += lane[i + half];
        }
        if (segment.hub == kWhole)
          put(segment.position, lane[0]);
        else
          (segment.hub == kLocal ? parts : shared)[static_cast<std::size_t>(segment.part)] = lane[0];
      }
    }
    for (std::int32_t h = first.hub; h < end.hub; ++h) put_hub(layout, h, parts, put);
  }
  for (std::int64_t h = 0; h < layout.shared_hubs; ++h) {
    put_hub(layout, static_cast<std::int32_t>(layout.first_shared_hub + h), shared, put);
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

/// Tiles follow each other and have room; segments and slices all belong to one, in order.
void expect_work_is_dealt(const Layout& layout, std::int32_t ctas) {
  ASSERT_EQ(layout.shares.size(), static_cast<std::size_t>(ctas) + 1);
  EXPECT_EQ(layout.positions % kPositionUnit, 0);
  EXPECT_EQ(layout.shares.back().tile, static_cast<std::int32_t>(layout.tiles.size()));
  EXPECT_EQ(layout.shares.back().hub, layout.first_shared_hub);
  std::int32_t segment = 0, slice = 0;
  for (std::int32_t cta = 0; cta < ctas; ++cta) {
    const Share &first = layout.shares[static_cast<std::size_t>(cta)],
                &end = layout.shares[static_cast<std::size_t>(cta) + 1];
    EXPECT_EQ(first.edge % kEdgeUnit, 0);
    EXPECT_EQ(first.segment, segment);
    EXPECT_EQ(first.slice, slice);
    EXPECT_LE(end.edge - first.edge, layout.most_edges);
    EXPECT_LE(end.tile - first.tile, layout.most_tiles);
    std::int64_t at = first.edge;
    for (std::int32_t t = first.tile; t < end.tile; ++t) {
      const Tile& tile = layout.tiles[static_cast<std::size_t>(t)];
      EXPECT_EQ(tile.at, at);
      EXPECT_EQ(tile.first_segment, segment);
      EXPECT_EQ(tile.first_slice, slice);
      EXPECT_LE(tile.edges, std::min(kTileEdges, layout.most_tile_edges));
      at += tile.edges;
      segment += tile.segments;
      slice += tile.slices;
    }
    EXPECT_LE(at, end.edge);
    EXPECT_LT(end.edge - at, kEdgeUnit);
  }
  EXPECT_EQ(segment, static_cast<std::int32_t>(layout.segments.size()));
  EXPECT_EQ(slice, static_cast<std::int32_t>(layout.slices.size()));
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

TEST(CudaSpreadingLayout, OwnSourcesNameEveryValueOnceAndInOrder) {
  const Stored stored = with_degrees({1, 0, 32, 33, 31, 64, 4096, 4097, 8193, 2, 0, 3, 3, 40}, 9);
  for (const std::int32_t ctas : {1, 3, 20}) {
    const Layout layout = make_layout(stored.rows(), ctas);
    const OwnSources own = own_sources(layout);
    ASSERT_EQ(own.source.size(), layout.sources.size());
    ASSERT_EQ(own.begin.size(), layout.shares.size());
    EXPECT_EQ(own.begin.back(), static_cast<std::int64_t>(own.wanted.size()));
    for (std::size_t cta = 0; cta + 1 < layout.shares.size(); ++cta) {
      const std::int64_t first = own.begin[cta], count = own.begin[cta + 1] - first;
      EXPECT_EQ(first % kEdgeUnit, 0);
      EXPECT_LE(count, own.most_wanted);
      std::vector<int> readers(static_cast<std::size_t>(count), 0);
      for (std::int64_t e = layout.shares[cta].edge; e < layout.shares[cta + 1].edge; ++e) {
        const auto edge = static_cast<std::size_t>(e);
        ASSERT_EQ(own.source[edge] < 0, layout.sources[edge] < 0);
        if (own.source[edge] < 0) continue;
        ASSERT_LT(own.source[edge], count);
        EXPECT_EQ(own.wanted[static_cast<std::size_t>(first + own.source[edge])], layout.sources[edge]);
        ++readers[static_cast<std::size_t>(own.source[edge])];
      }
      const std::int64_t read = count - std::count(readers.begin(), readers.end(), 0);
      EXPECT_LT(count - read, kEdgeUnit);  // padding
      for (std::int64_t i = 1; i < read; ++i) {
        EXPECT_LT(own.wanted[static_cast<std::size_t>(first + i - 1)],
                  own.wanted[static_cast<std::size_t>(first + i)]);
      }
    }
  }
}

TEST(CudaSpreadingLayout, OwnSourcesAreWorthItWhereEdgesShareThem) {
  std::mt19937 random(21);
  const auto worth = [&](std::int32_t nodes, std::int32_t sources) {
    Stored stored = with_degrees(std::vector<std::int32_t>(static_cast<std::size_t>(nodes), 8), 17);
    for (std::int32_t& source : stored.source) source = static_cast<std::int32_t>(random()) & (sources - 1);
    const Layout layout = make_layout(stored.rows(), 16);
    return worth_own(layout, own_sources(layout));
  };
  EXPECT_TRUE(worth(20000, 4096));
  EXPECT_FALSE(worth(20000, 16384));
}

TEST(CudaSpreadingLayout, GivesEveryCtaAboutTheSameToDo) {
  std::mt19937 random(5);
  std::vector<std::int32_t> degrees(60000);
  for (std::int32_t& degree : degrees) {
    degree = random() % 20 == 0 ? static_cast<std::int32_t>(random() % 300)
                                : static_cast<std::int32_t>(random() % 9);
  }
  const Layout layout = make_layout(with_degrees(degrees, 13).rows(), 132);
  std::int64_t most = 0;
  for (std::size_t cta = 0; cta < 132; ++cta) {
    most = std::max(most, layout.shares[cta + 1].edge - layout.shares[cta].edge);
  }
  const auto all = static_cast<std::int64_t>(layout.sources.size());
  EXPECT_LE(static_cast<double>(most), 1.2 * static_cast<double>(all) / 132);
}

}  // namespace
}  // namespace fulcrum::backends::cuda::spreading
