// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Numbers of f32 in two parts of tf32: three products are the product within what tf32_parts.h says, one is not, and
// parts have 11 bits.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "backends/cuda/tf32_parts.h"

namespace fulcrum::backends::cuda::tf32 {
namespace {

constexpr double kUnit = 0x1p-24;

bool has_eleven_bits(float value) { return (std::bit_cast<std::uint32_t>(value) & 0x1FFFU) == 0; }

/// Products are exact in double.
double in_three(float a, float b) {
  const double a_upper = cut(a), b_upper = rounded(b);
  const double a_rest = cut(a - cut(a)), b_rest = rest(b, rounded(b));
  return a_upper * b_upper + a_upper * b_rest + a_rest * b_upper;
}

TEST(Tf32Parts, ThreeProductsAreOneOfF32) {
  std::mt19937_64 random(20261116);
  double worst = 0, worst_of_one = 0;
  for (int i = 0; i < 2'000'000; ++i) {
    // Any sign and mantissa; exponents at which no product leaves the range.
    const auto draw = [&] {
      const auto bits = static_cast<std::uint32_t>(random());
      return std::bit_cast<float>((bits & 0x807FFFFFU) | (64 + bits % 127) << 23);
    };
    const float a = draw(), b = draw();
    const double truth = static_cast<double>(a) * b, unit = kUnit * std::abs(truth);
    worst = std::max(worst, std::abs(in_three(a, b) - truth) / unit);
    worst_of_one = std::max(worst_of_one, std::abs(static_cast<double>(cut(a)) * rounded(b) - truth) / unit);
  }
  EXPECT_LE(worst, kLeftOut);
  EXPECT_GT(worst, kLeftOut / 2.0);  // the bound is not idle
  EXPECT_GT(worst_of_one, 1000 * kLeftOut);
}

TEST(Tf32Parts, HaveElevenBits) {
  std::mt19937 random(7);
  for (int i = 0; i < 100'000; ++i) {
    const float value = std::bit_cast<float>(static_cast<std::uint32_t>(random()));
    if (!std::isfinite(value)) continue;
    EXPECT_TRUE(has_eleven_bits(cut(value)) && has_eleven_bits(rounded(value))) << value;
    EXPECT_LE(std::abs(cut(value)), std::abs(value));
    if (std::abs(value) < 3e38F && std::abs(value) > 1e-30F) {
      EXPECT_LE(std::abs(static_cast<double>(rounded(value)) - value), 0x1p-11 * std::abs(value)) << value;
    }
  }
  EXPECT_EQ(cut(-0.0F), 0);
  EXPECT_EQ(rounded(1 + 0x1p-11F), 1 + 0x1p-10F);  // a half goes away from zero
  EXPECT_EQ(rounded(-1 - 0x1p-11F), -1 - 0x1p-10F);
  EXPECT_TRUE(std::isinf(rounded(std::numeric_limits<float>::max())));
}

}  // namespace
}  // namespace fulcrum::backends::cuda::tf32
