// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// The generator and the error unit, against values that were computed apart.
#include <fulcrum/ops.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>

namespace fulcrum::ops {
namespace {

TEST(Random, BitsAreTheOnesThatAreWrittenDown) {
  EXPECT_EQ(random_bits(42, 0), 0xbdd732262feb6e95u);
  EXPECT_EQ(random_bits(42, 1), 0x28efe333b266f103u);
  EXPECT_EQ(random_bits(42, 2), 0x47526757130f9f52u);
}

TEST(Random, UniformNumbersAreTheOnesThatAreWrittenDown) {
  EXPECT_EQ(random_uniform(42, 0, 0, 1), 0.7415648698806763f);
  EXPECT_EQ(random_uniform(42, 1, 0, 1), 0.1599103808403015f);
  EXPECT_EQ(random_uniform(42, 0, -1, 1), std::fmaf(2, 0.7415648698806763f, -1));
}

TEST(Random, NormalNumbersAreTheOnesThatAreWrittenDown) {
  EXPECT_EQ(std::bit_cast<std::uint32_t>(random_normal(42, 0)), 0xbf449833u);
  EXPECT_EQ(std::bit_cast<std::uint32_t>(random_normal(42, 1)), 0x3f98080cu);
}

TEST(Random, NormalNumbersHaveMeanZeroAndVarianceOne) {
  constexpr int kCount = 100000;
  double sum = 0, squares = 0;
  for (int i = 0; i < kCount; ++i) {
    const double value = random_normal(7, static_cast<std::uint64_t>(i));
    EXPECT_LE(std::abs(value), 3.4642);
    sum += value;
    squares += value * value;
  }
  EXPECT_NEAR(sum / kCount, 0, 0.015);
  EXPECT_NEAR(squares / kCount, 1, 0.02);
}

TEST(Random, TensorsOfOneOpHaveKeysOfTheirOwn) {
  EXPECT_EQ(tensor_key(0), 0xbdd732262feb6e95u);
  EXPECT_EQ(tensor_key(3), random_bits(45, 0));
  EXPECT_NE(tensor_key(1, 42), tensor_key(1, 43));
}

TEST(Ulp, IsTheSpacingOfFloatsAtTheValue) {
  for (const float value : {1.0f, 1.5f, 0.75f, 3.0e8f, -2.0f, 0x1p-126f, 0x1p-140f, 3.4e38f}) {
    const float magnitude = std::abs(value);
    EXPECT_EQ(ulp_of(value), static_cast<double>(std::nextafter(magnitude, INFINITY)) - magnitude);
  }
  EXPECT_EQ(ulp_of(0), 0x1p-149);
}

TEST(Ulp, BoundsHaveAFloorForDenormalResults) {
  EXPECT_EQ(ulps(8, 1.0), 8 * 0x1p-23);
  EXPECT_EQ(ulps(8, 1e-44), 0x1p-126);
  EXPECT_EQ(ulps(8, 0, 1e-3), 1e-3);
}

}  // namespace
}  // namespace fulcrum::ops
