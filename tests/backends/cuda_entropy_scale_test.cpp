// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Sums of 16 bits that stand for a window's entropy: they must fit, and must be off by no more than the scale says.
#include <fulcrum/ops/pixel_entropy.h>
#include <gtest/gtest.h>

#include <random>

#include "backends/cuda/entropy_scale.h"

namespace fulcrum::backends::cuda::entropy {
namespace {

class EntropyScale : public testing::TestWithParam<int> {};

TEST_P(EntropyScale, SumsOfWindowsFitAndAreOffByNoMoreThanSaid) {
  const int pixels = GetParam() * GetParam();
  const std::int64_t* table = ops::entropy_table();
  const PairScale scale = pair_scale(table, pixels);
  EXPECT_LE(in_units(table[pixels], scale.units), 65535);
  EXPECT_LT(scale.off, 0.12);
  std::mt19937 random(7);
  for (int round = 0; round < 2000; ++round) {
    double sum = 0, exact = 0;
    for (int left = pixels; left > 0;) {
      const int most = round % 3 == 0 ? left : std::min(left, 2 + round % 5);
      const int count = 1 + static_cast<int>(random() % static_cast<unsigned>(most));
      sum += in_units(table[count], scale.units);
      exact += static_cast<double>(table[count]) * 0x1p-32 * scale.units;
      left -= count;
    }
    ASSERT_LE(std::abs(sum - exact), pixels * scale.off + 1e-6) << "round " << round;
    ASSERT_LE(sum, 65535);
  }
}

TEST_P(EntropyScale, StepsOfTheTableNeverFall) {
  const int pixels = GetParam() * GetParam();
  const std::int64_t* table = ops::entropy_table();
  const PairScale scale = pair_scale(table, pixels);
  for (int count = 0; count <= pixels; ++count) {
    EXPECT_GE(in_units(table[count + 1], scale.units), in_units(table[count], scale.units)) << count;
  }
}

INSTANTIATE_TEST_SUITE_P(Windows, EntropyScale, testing::Values(3, 8, 9));

}  // namespace
}  // namespace fulcrum::backends::cuda::entropy
