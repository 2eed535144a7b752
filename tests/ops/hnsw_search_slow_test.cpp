// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// The published data sets in full, hnswlib's recall on them, and that no kernel of ours finds less on the same graph.
#include <fulcrum/backends.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "ops/support/hnsw_index.h"
#include "support/instances.h"

namespace fulcrum::test {
namespace {

using ops::VectorSet;

std::uint64_t hash_of_points(VectorSet set, std::int64_t dimension) {
  constexpr std::size_t kBlock = 10000;
  std::vector<float> rows(kBlock * static_cast<std::size_t>(dimension));
  std::uint64_t hash = ops::kFnvStart;
  for (std::uint64_t first = 0; first < 100000; first += kBlock) {
    ops::draw_vectors(set, dimension, first, rows);
    hash = ops::fnv1a(std::as_bytes(std::span(rows)), hash);
  }
  return hash;
}

TEST(HnswSets, HundredThousandPointsHashAsPublished) {
  EXPECT_EQ(hash_of_points(VectorSet::clustered, 128), 0x1badff18f8a33b41u);
  EXPECT_EQ(hash_of_points(VectorSet::gaussian, 128), 0x2d100ecc2aabc329u);
  EXPECT_EQ(hash_of_points(VectorSet::clustered, 768), 0x8c7562c7f1009d20u);
}

/// Share of results that are no farther than the tenth nearest.
double recall_of(ops::Problem& problem, const std::vector<float>& farthest) {
  std::int64_t hits = 0;
  const auto distances = floats(problem, 2);
  for (std::size_t i = 0; i < distances.size(); ++i) hits += distances[i] <= farthest[i / 10] * (1 + 1e-5f);
  return static_cast<double>(hits) / static_cast<double>(distances.size());
}

TEST(HnswRecall, IsHnswlibsOnTheClusteredSetAndNoKernelFallsBelowIt) {
  setenv("FULCRUM_DATA", FULCRUM_BINARY_DIR "/tests/hnsw_data", 1);
  const auto shape = [](std::int64_t ef) {
    return shape_of(fmt::format("Q=1000,N=100000,D=128,k=10,ef={}", ef));
  };
  auto problem = ops::Problem::make(op_of("hnsw_search"), shape(16));
  ASSERT_TRUE(problem.ok()) << problem.error().message;
  ASSERT_TRUE(run(*backends::kernel("hnsw_search", "simd", "exact"), *problem));
  std::vector<float> farthest;
  for (std::size_t q = 0; q < 1000; ++q) farthest.push_back(floats(*problem, 2)[q * 10 + 9]);
  // Published for hnswlib's own search.
  constexpr std::pair<std::int64_t, double> kRecall[] = {{16, 0.8753}, {24, 0.9293}, {32, 0.9531},
                                                         {48, 0.9788}, {64, 0.9878}, {96, 0.9959}};
  for (const auto& [ef, published] : kRecall) {
    auto searched = ops::Problem::make(op_of("hnsw_search"), shape(ef));
    ASSERT_TRUE(searched.ok());
    for (const backends::Kernel& kernel : host_kernels("hnsw_search")) {
      if (kernel.variant() == "exact") continue;  // does not depend on ef
      searched->reset();
      ASSERT_TRUE(run(kernel, *searched));
      const double recall = recall_of(*searched, farthest);
      EXPECT_GE(recall, published - 0.002) << kernel.name() << " ef=" << ef;
      if (kernel.name() != "hnsw_search/scalar/default") continue;
      EXPECT_NEAR(recall, published, 0.002) << ef;
    }
    const Oracle oracle = searched->check();
    EXPECT_TRUE(oracle.passed) << oracle.detail;
  }
}

TEST(HnswRecall, ATargetIsReachedOnTheClusteredSet) {
  setenv("FULCRUM_DATA", FULCRUM_BINARY_DIR "/tests/hnsw_data", 1);
  const auto index = ops::drawn_index(VectorSet::clustered, 100000, 128, ops::HnswMetric::l2sq, true);
  ASSERT_TRUE(index.ok());
  for (const double target : {0.9, 0.95, 0.98}) {
    const std::int64_t ef = ops::hnsw_ef(**index, 10, 0, target);
    ASSERT_GT(ef, 0) << "a walk is cheaper than comparing with all on this set";
    for (const ops::HnswRecall& line : (*index)->recall) {
      if (line.ef != ef) continue;
      EXPECT_GE(line.recall, target + 0.005);
    }
  }
}

}  // namespace
}  // namespace fulcrum::test
