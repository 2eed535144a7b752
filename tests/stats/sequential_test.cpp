// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// The schedule of looks, and what stopping at them does to coverage and width.
#include <fulcrum/stats.h>
#include <gtest/gtest.h>

#include <cmath>
#include <span>
#include <vector>

#include "stats/streams.h"

namespace fulcrum::stats {
namespace {

using testing::Noise;
using testing::simulate;
using testing::Simulated;
using testing::Stream;

constexpr int kRuns = 2000;
// 95 % minus three standard errors of a share over that many runs.
double lowest_coverage(std::int64_t runs) {
  return 0.95 - 3 * std::sqrt(0.95 * 0.05 / static_cast<double>(runs));
}

std::vector<std::int64_t> sizes_of(const std::vector<Look>& looks) {
  std::vector<std::int64_t> sizes;
  for (const Look& look : looks) sizes.push_back(look.n);
  return sizes;
}

TEST(Looks, GrowByHalfFromOneHundred) {
  const std::vector<Look> looks = plan_looks(100, 1'000'000);
  EXPECT_EQ(sizes_of(looks),
            (std::vector<std::int64_t>{100, 150, 225, 338, 506, 759, 1139, 1709, 2563, 3844}));
  EXPECT_NEAR(looks.front().alpha, 0.025 / 9, 1e-15);
  EXPECT_NEAR(looks[8].alpha, 0.025 / 9, 1e-15);
  EXPECT_EQ(looks.back().alpha, 0.025);
}

TEST(Looks, OfPairedRoundsEndAtTwoHundred) {
  const std::vector<Look> looks = plan_paired_looks();
  EXPECT_EQ(sizes_of(looks), (std::vector<std::int64_t>{12, 18, 27, 40, 60, 90, 135, 200}));
  EXPECT_NEAR(looks.front().alpha, 0.025 / 7, 1e-15);
}

TEST(Looks, EndAtACapThatFallsEarlier) {
  EXPECT_EQ(sizes_of(plan_looks(100, 400)), (std::vector<std::int64_t>{100, 150, 225, 338, 400}));
  EXPECT_EQ(sizes_of(plan_looks(100, 150)), (std::vector<std::int64_t>{100, 150}));
  EXPECT_EQ(sizes_of(plan_looks(100, 60)), (std::vector<std::int64_t>{60}));
  EXPECT_EQ(plan_looks(100, 60).front().alpha, 0.05);
  EXPECT_EQ(sizes_of(plan_paired_looks(12, 30)), (std::vector<std::int64_t>{12, 18, 27, 30}));
  EXPECT_EQ(sizes_of(plan_looks(1, 100)), (std::vector<std::int64_t>{1, 2, 3, 5, 8, 11, 17, 26, 38}));
}

TEST(Looks, SpendNoMoreThanTheTotalAndNeverRepeatASize) {
  for (std::int64_t n_min = 1; n_min < 40; ++n_min) {
    for (const std::int64_t cap : {1, 2, 5, 13, 100, 5000}) {
      for (const auto& looks : {plan_looks(n_min, cap), plan_paired_looks(n_min, cap)}) {
        ASSERT_FALSE(looks.empty());
        double spent = 0;
        for (std::size_t i = 0; i < looks.size(); ++i) {
          spent += looks[i].alpha;
          EXPECT_GT(looks[i].n, i == 0 ? 0 : looks[i - 1].n);
        }
        EXPECT_NEAR(spent, kTotalAlpha, 1e-12);
        EXPECT_LE(looks.back().n, std::max<std::int64_t>(cap, 1));
        EXPECT_LE(looks.size(), static_cast<std::size_t>(kMaxLooks));
      }
    }
  }
}

TEST(Looks, HalfWidthIsSymmetricInTheLogarithm) {
  EXPECT_NEAR(log_half_width({0.5, 2.0}), std::log(2.0), 1e-15);
  EXPECT_NEAR(log_half_width({1e-6, 1e-6}), 0, 1e-15);
}

TEST(Looks, ADecisionNeedsEveryHorizonOnOneSide) {
  const std::vector<double> horizons{1.0, 1.5};
  EXPECT_TRUE(clears({1.1, 1.4}, horizons));
  EXPECT_TRUE(clears({1.6, 9.0}, horizons));
  EXPECT_FALSE(clears({1.1, 1.6}, horizons));
  EXPECT_FALSE(clears({1.0, 1.2}, horizons));
  EXPECT_FALSE(clears({1.1, 1.4}, {}));
}

struct Case {
  Noise noise;
  double phi;
};
constexpr Case kCases[] = {{Noise::normal, 0}, {Noise::skewed, 0}, {Noise::ar, 0.3}, {Noise::ar, 0.6}};

struct Tally {
  std::int64_t runs = 0, covered = 0, correlated = 0;
  std::vector<double> width_ratios;  // over the plain 95 % interval of the same values, so at the same n_eff

  double coverage() const { return static_cast<double>(covered) / static_cast<double>(runs); }

  void add(const Simulated& run, std::span<const double> values, double alpha) {
    const MedianInterval interval = median_interval(values, alpha);
    if (interval.n_eff < kMinEffective) {
      ++correlated;  // counted apart: a runner keeps sampling
      return;
    }
    ++runs;
    covered += interval.low <= run.true_median && run.true_median <= interval.high;
    const MedianInterval plain = median_interval(values, 0.05);
    width_ratios.push_back((interval.high - interval.low) / (plain.high - plain.low));
  }
};

TEST(Coverage, OfAFixedSampleHoldsOnNormalSkewedAndAutocorrelatedData) {
  Tally pooled;
  for (const std::size_t n : {100u, 300u}) {
    for (const Case& c : kCases) {
      Stream stream(11 * n + static_cast<std::uint64_t>(100 * c.phi) + static_cast<std::uint64_t>(c.noise));
      Tally tally;
      for (int i = 0; i < kRuns; ++i) {
        const Simulated run = simulate(stream, c.noise, n, c.phi);
        tally.add(run, run.seconds, 0.05);
      }
      pooled.runs += tally.runs;
      pooled.covered += tally.covered;
      if (c.noise != Noise::ar) {
        EXPECT_GE(tally.coverage(), lowest_coverage(tally.runs)) << n << " " << int(c.noise);
        EXPECT_LT(tally.correlated, kRuns / 50);
      }
    }
  }
  EXPECT_GE(pooled.coverage(), lowest_coverage(pooled.runs));
  EXPECT_LE(pooled.coverage(), 0.995);  // not right by being huge
}

TEST(Coverage, OfAPlainIntervalFailsOnAutocorrelatedData) {
  // Why the effective sample size exists; if this passed without it, the tests above would prove nothing.
  Stream stream(12);
  int covered = 0;
  for (int i = 0; i < 500; ++i) {
    const Simulated run = simulate(stream, Noise::ar, 300, 0.6);
    const MedianInterval plain = median_interval_independent(run.seconds, 0.05);
    covered += plain.low <= 1 && 1 <= plain.high;
  }
  EXPECT_LT(covered, 450);
}

TEST(Coverage, WidthAtTheEffectiveSizeIsThatOfAsManyIndependentSamples) {
  Stream stream(13);
  for (const double phi : {0.0, 0.3, 0.6}) {
    std::vector<double> ratios;
    for (int i = 0; i < 500; ++i) {
      const Simulated run = simulate(stream, Noise::ar, 400, phi);
      const MedianInterval interval = median_interval(run.seconds, 0.05);
      const Simulated independent = simulate(stream, Noise::normal, static_cast<std::size_t>(interval.n_eff));
      const MedianInterval plain = median_interval_independent(independent.seconds, 0.05);
      ratios.push_back((interval.high - interval.low) / (plain.high - plain.low));
    }
    EXPECT_LE(median(ratios), 1.25) << phi;
    EXPECT_GE(median(ratios), 0.8) << phi;
  }
}

// Stops at the first look that is precise enough, or whose interval excludes the horizon.
Tally sequential(Noise noise, double phi, double precision, double horizon, std::uint64_t seed, int runs) {
  const std::vector<Look> looks = plan_looks(100, 1139);
  Stream stream(seed);
  Tally tally;
  for (int i = 0; i < runs; ++i) {
    const Simulated run = simulate(stream, noise, static_cast<std::size_t>(looks.back().n), phi);
    for (const Look& look : looks) {
      const auto values = std::span(run.seconds).first(static_cast<std::size_t>(look.n));
      const MedianInterval m = median_interval(values, look.alpha);
      const double horizons[] = {horizon * run.true_median};
      const bool done = m.exact && m.n_eff >= kMinEffective &&
                        (log_half_width({m.low, m.high}) <= precision || clears({m.low, m.high}, horizons));
      if (!done && look.n != looks.back().n) continue;
      tally.add(run, values, look.alpha);
      break;
    }
  }
  return tally;
}

TEST(Coverage, SurvivesStoppingOnPrecisionAtPlannedLooks) {
  Tally pooled;
  for (const Case& c : kCases) {
    const Tally tally =
        sequential(c.noise, c.phi, 0.005, 10.0, 21 + static_cast<std::uint64_t>(100 * c.phi), 500);
    pooled.runs += tally.runs;
    pooled.covered += tally.covered;
    EXPECT_LE(median(tally.width_ratios), 1.75) << int(c.noise) << " " << c.phi;
    EXPECT_GE(median(tally.width_ratios), 1.1);
  }
  EXPECT_GE(pooled.runs, 1990);
  EXPECT_GE(pooled.coverage(), lowest_coverage(pooled.runs));
}

TEST(Coverage, SurvivesStoppingAsSoonAsTheTrueMedianIsExcluded) {
  // The worst horizon there is: every stop before the last look is a miss.
  Tally pooled;
  for (const Case& c : kCases) {
    const Tally tally = sequential(c.noise, c.phi, 0, 1.0, 31 + static_cast<std::uint64_t>(100 * c.phi), 500);
    pooled.runs += tally.runs;
    pooled.covered += tally.covered;
  }
  EXPECT_GE(pooled.coverage(), lowest_coverage(pooled.runs));
}

TEST(Coverage, OfPeekingAtAPlainNinetyFivePercentFails) {
  const std::vector<Look> looks = plan_looks(100, 1139);
  Stream stream(41);
  int missed = 0;
  for (int i = 0; i < 500; ++i) {
    const Simulated run = simulate(stream, Noise::normal, 1139);
    bool excluded = false;
    for (const Look& look : looks) {
      const auto values = std::span(run.seconds).first(static_cast<std::size_t>(look.n));
      const MedianInterval m = median_interval_independent(values, 0.05);
      excluded = excluded || m.low > 1 || m.high < 1;
    }
    missed += excluded;
  }
  EXPECT_GT(missed, 50);  // more than 10 %
}

}  // namespace
}  // namespace fulcrum::stats
