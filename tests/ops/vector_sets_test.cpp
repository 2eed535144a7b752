// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// The drawn vectors are the published ones, bit by bit.
#include "ops/support/vector_sets.h"

#include <gtest/gtest.h>

#include <vector>

namespace fulcrum::ops {
namespace {

std::vector<float> drawn(VectorSet set, std::int64_t dimension, std::uint64_t first, std::size_t rows) {
  std::vector<float> result(rows * static_cast<std::size_t>(dimension));
  draw_vectors(set, dimension, first, result);
  return result;
}

TEST(VectorSets, ClusteredBeginsAsPublished) {
  const auto points = drawn(VectorSet::clustered, 128, 0, 1),
             query = drawn(VectorSet::clustered, 128, kFirstQuery, 1);
  EXPECT_EQ(points[0], -0.31545186f);
  EXPECT_EQ(points[1], -0.293215007f);
  EXPECT_EQ(query[0], -0.310668737f);
}

TEST(VectorSets, ThousandQueriesHashAsPublished) {
  const auto hash = [](VectorSet set, std::int64_t dimension) {
    const auto rows = drawn(set, dimension, kFirstQuery, 1000);
    return fnv1a(std::as_bytes(std::span(rows)));
  };
  EXPECT_EQ(hash(VectorSet::clustered, 128), 0xd29c19284c1770abu);
  EXPECT_EQ(hash(VectorSet::gaussian, 128), 0xae08f72697408cadu);
  EXPECT_EQ(hash(VectorSet::clustered, 768), 0xcbf364f373b55243u);
}

TEST(VectorSets, AVectorDoesNotDependOnWhereDrawingBegan) {
  for (const VectorSet set : {VectorSet::clustered, VectorSet::gaussian}) {
    const auto all = drawn(set, 7, 0, 20), tail = drawn(set, 7, 13, 7);
    EXPECT_TRUE(std::equal(tail.begin(), tail.end(), all.begin() + 13 * 7));
  }
}

TEST(VectorSets, FnvOfKnownText) {
  const auto hash = [](std::string_view text) {
    return fnv1a(std::as_bytes(std::span(text.data(), text.size())));
  };
  EXPECT_EQ(hash(""), 0xcbf29ce484222325u);
  EXPECT_EQ(hash("a"), 0xaf63dc4c8601ec8cu);
  EXPECT_EQ(hash("foobar"), 0x85944171f73967e8u);
}

TEST(VectorSets, ProductsAgreeWithFp64AtEveryLength) {
  for (const std::int64_t n : {1, 2, 15, 16, 17, 31, 32, 33, 63, 64, 100, 128, 768}) {
    const auto a = drawn(VectorSet::gaussian, n, 0, 1), b = drawn(VectorSet::gaussian, n, 1, 1);
    double distance = 0, dot = 0, size = 0;
    for (std::size_t i = 0; i < a.size(); ++i) {
      const double x = a[i], y = b[i];
      distance += (x - y) * (x - y);
      dot += x * y;
      size += std::abs(x * y);
    }
    EXPECT_NEAR(squared_distance()(a.data(), b.data(), n), distance, 1e-6 * distance) << n;
    EXPECT_NEAR(inner_product()(a.data(), b.data(), n), dot, 1e-6 * size) << n;
  }
}

}  // namespace
}  // namespace fulcrum::ops
