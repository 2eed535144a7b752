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

/// A window that slides over random bins: what the steps of pairs add up to is the sum over its bins, in units of the
/// scale and, by its lowest bits and the sum in units together, in the table's own.
TEST_P(EntropyScale, StepsOfPairsAddUpToTheSumsOfTheirWindows) {
  const int window = GetParam(), pixels = window * window;
  const std::int64_t* table = ops::entropy_table();
  const PairScale scale = pair_scale(table, pixels);
  const auto steps = pair_steps(table, window, scale.units), lows = pair_lows(table, window);
  ASSERT_GE(steps.size(), static_cast<std::size_t>(pair_entries(most_pixels(window))));
  ASSERT_EQ(lows.size(), 2 * steps.size());
  std::mt19937 random(11);
  for (const unsigned bins : {1U, 3U, 40U, 256U}) {
    std::vector<int> first(256, 0), second(256, 0);
    std::uint32_t sums = 0, lows_of[2] = {};
    // A pixel of the first window (1), of the second (2) or of both (3).
    const auto count = [&](unsigned bin, bool enters, unsigned windows) {
      const std::uint32_t sign = enters ? 1U : ~0U;
      const int step = enters ? 1 : -1;
      if (!enters) first[bin] += windows & 1U ? step : 0, second[bin] += windows & 2U ? step : 0;
      ASSERT_LE(std::abs(first[bin] - second[bin]), kPairApart);
      const auto at = static_cast<std::size_t>(first[bin] + kPairFactor * second[bin]);
      sums += sign * (steps[at] & ((windows & 1U ? 0xFFFFU : 0U) | (windows & 2U ? 0xFFFF0000U : 0U)));
      if (windows & 1U) lows_of[0] += sign * lows[2 * at];
      if (windows & 2U) lows_of[1] += sign * lows[2 * at + 1];
      if (enters) first[bin] += windows & 1U ? step : 0, second[bin] += windows & 2U ? step : 0;
    };
    const auto check = [&](const std::vector<int>& counts, std::uint32_t units, std::uint32_t low) {
      double expected = 0;
      std::int64_t exact = 0;
      for (int c : counts) expected += in_units(table[c], scale.units), exact += table[c];
      ASSERT_EQ(units, static_cast<std::uint32_t>(expected));
      ASSERT_EQ(low, static_cast<std::uint32_t>(exact));
      const auto high = static_cast<std::int64_t>(
          std::rint(static_cast<float>(units) * static_cast<float>(1 / scale.units) -
                    static_cast<float>(low) * 0x1p-32F));
      ASSERT_EQ(high << 32 | low, exact);
    };
    std::vector<std::vector<unsigned>> rows;
    for (int y = 0; y < 4 * window; ++y) {
      rows.emplace_back(static_cast<std::size_t>(window + 1));
      for (unsigned& bin : rows.back()) bin = random() % bins;
      // The row enters before the one above all windows leaves: more counts than a window has pixels.
      for (int pass = 0; pass < (y >= window ? 2 : 1); ++pass) {
        const auto& row = rows[static_cast<std::size_t>(pass == 0 ? y : y - window)];
        for (int u = 0; u <= window; ++u) {
          count(row[static_cast<std::size_t>(u)], pass == 0, u == 0 ? 1 : u == window ? 2 : 3);
        }
      }
      check(first, sums & 0xFFFFU, lows_of[0]);
      check(second, sums >> 16, lows_of[1]);
    }
  }
}

/// Two windows next to each other that slide over an image of `bins` bins, rows of one bin among them. Sums are kept by 16
/// bits, two rows at a time enter first, and yet they are followed.
TEST_P(EntropyScale, SumsThatDoNotFitAreFollowedFromRowToRow) {
  const int window = GetParam();
  const std::int64_t* table = ops::entropy_table();
  const PairScale scale = row_scale(table, window);
  EXPECT_LT(scale.off, 0.12);
  std::mt19937 random(17);
  for (const unsigned bins : {1U, 2U, 3U, 40U, 256U}) {
    std::vector<std::vector<unsigned>> rows;
    std::vector<int> counts[2] = {std::vector<int>(256, 0), std::vector<int>(256, 0)};
    const auto count = [&](int y, int step) {
      for (int u = 0; u <= window; ++u) {
        const unsigned bin = rows[static_cast<std::size_t>(y)][static_cast<std::size_t>(u)];
        counts[0][bin] += u < window ? step : 0, counts[1][bin] += u > 0 ? step : 0;
      }
    };
    FollowedPair followed;
    for (int y = 0; y < 8 * window; ++y) {
      const bool plain = y / window % 2 == 0;  // a window of one bin, then other rows in it
      rows.emplace_back(static_cast<std::size_t>(window + 1));
      for (unsigned& bin : rows.back()) bin = plain ? 0 : random() % bins;
      count(y, 1);
      const bool enters = y < window;
      if (!enters) count(y - window, -1);
      if (enters && y % 2 == 0 && y + 1 < window) continue;  // with the next
      double sums[2] = {};
      for (int k = 0; k < 2; ++k) {
        for (int c : counts[k]) sums[k] += in_units(table[c], scale.units);
      }
      const std::uint32_t word =
          static_cast<std::uint32_t>(sums[0]) + (static_cast<std::uint32_t>(sums[1]) << 16);
      enters ? followed.grow(word) : followed.slide(word);
      ASSERT_EQ(followed.sum[0], sums[0]) << "row " << y;
      ASSERT_EQ(followed.sum[1], sums[1]) << "row " << y;
    }
  }
}

/// Random windows of at most `window` x `window` pixels: those that are not in doubt have the label of their entropy.
/// Counts the others.
void judge_windows(int window, const float (&thresholds)[3], int rounds, int& doubts) {
  const std::int64_t* table = ops::entropy_table();
  const PairScale scale = row_scale(table, window);
  const auto judges = pair_judges(table, window, thresholds, scale);
  std::mt19937 random(13);
  for (int round = 0; round < rounds; ++round) {
    const int pixels = 1 + static_cast<int>(random() % static_cast<unsigned>(window * window));
    double units = 0;
    std::int64_t sum = 0;
    for (int left = pixels; left > 0;) {
      const int most = round % 2 == 0 ? left : (left + 1) / 2;
      const int count = 1 + static_cast<int>(random() % static_cast<unsigned>(most));
      units += in_units(table[count], scale.units), sum += table[count];
      left -= count;
    }
    const auto entropy = static_cast<float>(static_cast<double>(table[pixels] - sum) / (pixels * 0x1p32));
    const unsigned expected = entropy > thresholds[0]   ? 0x10U
                              : entropy > thresholds[1] ? 0x100U
                              : entropy > thresholds[2] ? 0x1000U
                                                        : 0x1U;
    const PairJudge& judge = judges[static_cast<std::size_t>(pixels)];
    ASSERT_EQ(judge.pixels, pixels);
    if (judge.doubts(static_cast<int>(units))) {
      ++doubts;
    } else {
      ASSERT_EQ(judge.bit(static_cast<int>(units)), expected) << "entropy " << entropy << " of " << pixels;
    }
  }
}

TEST_P(EntropyScale, JudgesAreRightWhereTheyDoNotDoubt) {
  constexpr int kRounds = 20000;
  int doubts = 0;
  judge_windows(GetParam(), {1.5F, 1.0F, 0.5F}, kRounds, doubts);  // entropies that many small windows have
  doubts = 0;
  judge_windows(GetParam(), {1.47F, 1.03F, 0.53F}, kRounds, doubts);
  EXPECT_LT(doubts, kRounds / 10);
}

TEST(TeamCut, HasEveryRowOfEveryColumnOnceAndNoMoreStripsThanTeamsIfItCan) {
  struct Size {
    int h, w, teams;
  };
  for (const auto& [h, w, teams] :
       {Size{1, 1, 792}, Size{1080, 1920, 792}, Size{256, 256, 792}, Size{7, 100000, 12},
        Size{4096, 4096, 792}, Size{33, 241, 6}, Size{1080, 240, 24}}) {
    const TeamCut cut = TeamCut::of(h, w, 120, teams);
    std::vector<int> seen(static_cast<std::size_t>(cut.across) * static_cast<std::size_t>(h), 0);
    for (int number = 0; number < cut.strips; ++number) {
      const TeamCut::Place place = cut.place(number);
      ASSERT_TRUE(place.column >= 0 && place.column < cut.across && place.first < h) << h << " x " << w;
      for (int y = place.first; y < std::min(place.first + place.rows, h); ++y)
        ++seen[static_cast<std::size_t>(place.column) * static_cast<std::size_t>(h) +
               static_cast<std::size_t>(y)];
    }
    EXPECT_EQ(std::count(seen.begin(), seen.end(), 1), std::ssize(seen)) << h << " x " << w;
    EXPECT_GE(cut.across * 120, w);
    EXPECT_TRUE(cut.rows >= h || cut.strips <= teams) << h << " x " << w;
    EXPECT_LE(cut.side_rows, cut.rows);
  }
}

INSTANTIATE_TEST_SUITE_P(Windows, EntropyScale, testing::Values(3, 5, 7, 8, 9),
                         testing::PrintToStringParamName());

}  // namespace
}  // namespace fulcrum::backends::cuda::entropy
