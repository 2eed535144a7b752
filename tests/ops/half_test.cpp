// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// binary16 and bfloat16 as bits: every number there and back, and rounding to nearest even.
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
    if (!is_nan) {
      EXPECT_EQ(half_from_float(value), half) << bits;
    }
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

TEST(Bfloat, EveryNumberSurvivesTheWayToFloatAndBack) {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto bfloat = static_cast<std::uint16_t>(bits);
    const float value = float_from_bfloat(bfloat);
    const bool is_nan = (bfloat & 0x7FFFu) > 0x7F80u;
    EXPECT_EQ(std::isnan(value), is_nan) << bits;
    if (is_nan) {
      EXPECT_TRUE(std::isnan(float_from_bfloat(bfloat_from_float(value)))) << bits;
    } else {
      EXPECT_EQ(bfloat_from_float(value), bfloat) << bits;
    }
  }
}

TEST(Bfloat, RoundsToTheNearestAndTiesToEven) {
  EXPECT_EQ(bfloat_from_float(1.0F + 0x1p-8F), 0x3F80);     // a tie, down to even
  EXPECT_EQ(bfloat_from_float(1.0F + 0x3p-8F), 0x3F82);     // a tie, up to even
  EXPECT_EQ(bfloat_from_float(1.0F + 0x1.01p-8F), 0x3F81);  // just above a tie
  EXPECT_EQ(bfloat_from_float(0x1.FEFFFEp127F), 0x7F7F);    // just below the tie with Inf
  EXPECT_EQ(bfloat_from_float(-0x1.FFp127F), 0xFF80);       // rounds to -Inf
}

}  // namespace
}  // namespace fulcrum::ops
