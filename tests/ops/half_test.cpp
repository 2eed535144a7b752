// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// binary16 as bits: every half there and back, and rounding to nearest even.
#include <fulcrum/ops/half.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace fulcrum::ops {
namespace {

TEST(Half, EveryNumberSurvivesTheWayToFloatAndBack) {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto half = static_cast<std::uint16_t>(bits);
    const float value = float_from_half(half);
    const bool is_nan = (half & 0x7C00u) == 0x7C00u && (half & 0x3FFu) != 0;
    EXPECT_EQ(std::isnan(value), is_nan) << bits;
    if (!is_nan) EXPECT_EQ(half_from_float(value), half) << bits;
  }
}

TEST(Half, RoundsToTheNearestAndTiesToEven) {
  EXPECT_EQ(half_from_float(1.0F + 0x1p-11F), half_from_float(1.0F));                // a tie, down to even
  EXPECT_EQ(half_from_float(1.0F + 0x3p-11F), half_from_float(1.0F + 0x1p-9F));      // a tie, up to even
  EXPECT_EQ(half_from_float(1.0F + 0x1.01p-11F), half_from_float(1.0F + 0x1p-10F));  // just above a tie
  EXPECT_EQ(half_from_float(65519.0F), 0x7BFF);                                      // the largest
  EXPECT_EQ(half_from_float(65520.0F), 0x7C00);                                      // rounds to Inf
  EXPECT_EQ(half_from_float(0x1p-25F), 0);  // half the least, to even
  EXPECT_EQ(half_from_float(0x1.8p-25F), 1);
  EXPECT_EQ(half_from_float(-0.0F), 0x8000);
  EXPECT_EQ(float_from_half(0x3C00), 1.0F);
  EXPECT_EQ(float_from_half(0x0001), 0x1p-24F);
  EXPECT_EQ(float_from_half(0xFC00), -std::numeric_limits<float>::infinity());
}

}  // namespace
}  // namespace fulcrum::ops
