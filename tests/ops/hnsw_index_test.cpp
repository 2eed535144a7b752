// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Indexes: what hnswlib built comes out whole, is the same after a trip through a file, and says what its recall is.
#include "ops/support/hnsw_index.h"

#include <fulcrum/core/stop.h>
#include <fulcrum/ops/hnsw_walk.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <set>

namespace fulcrum::ops {
namespace {

using Index = std::shared_ptr<const HnswIndex>;

class HnswIndexTest : public ::testing::Test {
 protected:
  void SetUp() override { setenv("FULCRUM_DATA", FULCRUM_BINARY_DIR "/tests/hnsw_data", 1); }
};

std::vector<float> vectors(std::int64_t count, std::int64_t dimension) {
  std::vector<float> rows(static_cast<std::size_t>(count * dimension));
  draw_vectors(VectorSet::clustered, dimension, 0, rows);
  return rows;
}

Index index_over(std::int64_t count, std::int64_t dimension, HnswMetric metric = HnswMetric::l2sq) {
  auto index = make_hnsw_index(vectors(count, dimension), dimension, metric);
  FULCRUM_ASSERT(index.ok());
  return *index;
}

TEST_F(HnswIndexTest, RefusesRowsItCannotHold) {
  const std::vector<float> none, nan = {1, NAN}, uneven = {1, 2, 3};
  for (const auto* rows : {&none, &nan, &uneven}) {
    EXPECT_FALSE(make_hnsw_index(*rows, 2, HnswMetric::l2sq).ok()) << rows->size();
  }
}

TEST_F(HnswIndexTest, ListsNameOtherNodesOnceAndEndWithTheNodeItself) {
  const Index index = index_over(2000, 24);
  std::int64_t links = 0, upper = 0;
  for (std::int32_t node = 0; node < index->count; ++node) {
    std::set<std::int32_t> seen;
    bool ended = false;
    for (std::int64_t i = 0; i < kHnswLinks; ++i) {
      const std::int32_t to = index->links[node * kHnswLinks + i];
      ASSERT_TRUE(to >= 0 && to < index->count);
      ended |= to == node;
      EXPECT_EQ(ended, to == node) << "a neighbour after the end of the list";
      if (ended) continue;
      EXPECT_TRUE(seen.insert(to).second);
    }
    links += static_cast<std::int64_t>(seen.size());
    upper += index->upper_begin[node] >= 0;
  }
  EXPECT_GT(links, 8 * index->count);
  // One node in sixteen reaches layer 1.
  EXPECT_NEAR(static_cast<double>(upper), 2000.0 / 16, 40);
  EXPECT_GE(index->top_layer, 1);
  EXPECT_GE(index->upper_begin[index->entry], 0);
}

TEST_F(HnswIndexTest, VectorsAndTheirCopiesArePaddedWithZeros) {
  const auto rows = vectors(50, 20);
  const Index index = index_over(50, 20);
  EXPECT_EQ(index->stride, 32);
  EXPECT_EQ(index->code_stride, 64);
  for (std::int64_t i = 0; i < 50; ++i) {
    for (std::int64_t d = 0; d < index->stride; ++d) {
      const float expected = d < 20 ? rows[static_cast<std::size_t>(i * 20 + d)] : 0;
      EXPECT_EQ(index->vectors[i * index->stride + d], expected);
    }
    for (std::int64_t d = 0; d < index->code_stride; ++d) {
      const float value = d < 20 ? rows[static_cast<std::size_t>(i * 20 + d)] : 0;
      EXPECT_NEAR(static_cast<float>(index->codes[i * index->code_stride + d]) * index->code_scale, value,
                  0.5001f * index->code_scale);
    }
  }
}

TEST_F(HnswIndexTest, CosineHoldsRowsOfLengthOne) {
  const Index index = index_over(20, 9, HnswMetric::cosine);
  for (std::int64_t i = 0; i < index->count; ++i) {
    double squared = 0;
    for (std::int64_t d = 0; d < 9; ++d) squared += std::pow(index->vectors[i * index->stride + d], 2);
    EXPECT_NEAR(squared, 1, 1e-6);
  }
}

TEST_F(HnswIndexTest, BuildingAgainGivesTheSameGraph) {
  EXPECT_EQ(index_over(500, 12)->hash, index_over(500, 12)->hash);
  EXPECT_NE(index_over(500, 12)->hash, index_over(499, 12)->hash);
}

TEST_F(HnswIndexTest, ASavedIndexLoadsAsItWas) {
  const Index index = index_over(300, 10);
  const char* file = index->file(*index);
  ASSERT_NE(file, nullptr);
  const auto loaded = load_hnsw_index(file, 10, HnswMetric::l2sq);
  ASSERT_TRUE(loaded.ok()) << loaded.error().message;
  EXPECT_EQ((*loaded)->hash, index->hash);
  EXPECT_STREQ((*loaded)->file(**loaded), file);
  EXPECT_FALSE(load_hnsw_index(file, 11, HnswMetric::l2sq).ok()) << "another dimension";
  std::filesystem::resize_file(file, std::filesystem::file_size(file) - 5);
  EXPECT_FALSE(load_hnsw_index(file, 10, HnswMetric::l2sq).ok()) << "cut off";
  EXPECT_FALSE(load_hnsw_index("/no/such/file", 10, HnswMetric::l2sq).ok());
  std::filesystem::remove(file);
}

TEST_F(HnswIndexTest, LargeIndexesOfTheSuiteAreKeptOnDiskAndMadeAgainWhenDamaged) {
  // 4 MiB of vectors are just enough to be kept. Each key differs in `recall`, so memory does not answer for the disk.
  const auto first = drawn_index(VectorSet::clustered, 4096, 256, HnswMetric::l2sq, false);
  ASSERT_TRUE(first.ok()) << first.error().message;
  const std::string file = (*first)->file(**first);
  ASSERT_TRUE(std::filesystem::exists(file));
  EXPECT_TRUE(std::filesystem::exists(std::filesystem::path(file).replace_extension(".json")));
  std::fstream damage(file, std::ios::in | std::ios::out | std::ios::binary);
  damage.seekp(200000);
  damage.put('\x7F');
  damage.close();
  const auto again = drawn_index(VectorSet::clustered, 4096, 256, HnswMetric::l2sq, true);
  ASSERT_TRUE(again.ok()) << again.error().message;
  EXPECT_EQ((*again)->hash, (*first)->hash);
  EXPECT_FALSE((*again)->recall.empty());
  std::filesystem::remove(file);
}

TEST_F(HnswIndexTest, AProgramThatIsAskedToStopBuildsNoFurther) {
  const Index index = index_over(500, 8);
  ask_to_stop();
  const auto built = make_hnsw_index(vectors(500, 8), 8, HnswMetric::l2sq);
  const auto told = with_recall(index);
  forget_stop();
  ASSERT_FALSE(built.ok());
  EXPECT_EQ(built.error().code, Code::interrupted);
  ASSERT_FALSE(told.ok());
  EXPECT_EQ(told.error().code, Code::interrupted);
  EXPECT_TRUE(make_hnsw_index(vectors(500, 8), 8, HnswMetric::l2sq).ok());
  EXPECT_TRUE(with_recall(index).ok());
}

TEST_F(HnswIndexTest, RecallGrowsWithEfAndDecidesWhatARecallTargetTakes) {
  const auto measured = with_recall(index_over(3000, 16));
  ASSERT_TRUE(measured.ok());
  const HnswIndex& index = **measured;
  ASSERT_GE(index.recall.size(), 2u);
  EXPECT_EQ(index.recall.front().ef, 16);
  for (std::size_t i = 1; i < index.recall.size(); ++i) {
    EXPECT_GT(index.recall[i].ef, index.recall[i - 1].ef);
    EXPECT_GE(index.recall[i].recall, index.recall[i - 1].recall - 0.01);
    EXPECT_GT(index.recall[i].distances, index.recall[i - 1].distances);
  }
  EXPECT_GT(index.recall.back().recall, 0.99);
}

TEST_F(HnswIndexTest, TheChoiceOfEfFollowsTheTable) {
  const HnswRecall lines[] = {{.ef = 16, .recall = 0.90, .seconds = 1},
                              {.ef = 32, .recall = 0.96, .seconds = 2},
                              {.ef = 64, .recall = 0.99, .seconds = 9}};
  HnswIndex index{.count = 5000, .recall = lines, .exact_seconds = 5};
  EXPECT_EQ(hnsw_ef(index, 10, 40, 0.95), 40) << "as given";
  EXPECT_EQ(hnsw_ef(index, 50, 40, 0.95), 50) << "never below k";
  EXPECT_EQ(hnsw_ef(index, 10, 0, 0.95), 32);
  EXPECT_EQ(hnsw_ef(index, 10, 0, 0.895), 16) << "0.895 + 0.005";
  EXPECT_EQ(hnsw_ef(index, 10, 0, 0.957), 0) << "0.99 would cost more than comparing with all";
  EXPECT_EQ(hnsw_ef(index, 10, 0, 0.999), 0) << "no ef reaches it";
}

}  // namespace
}  // namespace fulcrum::ops
