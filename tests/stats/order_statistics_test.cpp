// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Quantiles, spreads and intervals on data small enough to check by eye.
#include <fulcrum/stats.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "stats/streams.h"

namespace fulcrum::stats {
namespace {

using testing::Stream;

std::vector<double> count_to(std::size_t n) {
  std::vector<double> values(n);
  std::iota(values.begin(), values.end(), 1.0);
  return values;
}

// 1..n in an order without serial correlation, so that n_eff is n.
std::vector<double> shuffled(std::size_t n, std::uint64_t seed) {
  std::vector<double> values = count_to(n);
  Random random(seed);
  for (std::size_t i = n; i > 1; --i) std::swap(values[i - 1], values[random.below(i)]);
  return values;
}

TEST(OrderStatistics, MedianTakesTheMiddleOrTheMeanOfTwo) {
  EXPECT_EQ(median(std::vector<double>{3, 1, 2}), 2);
  EXPECT_EQ(median(std::vector<double>{4, 1, 3, 2}), 2.5);
  EXPECT_EQ(median(std::vector<double>{7}), 7);
  EXPECT_TRUE(std::isnan(median({})));
}

TEST(OrderStatistics, QuantileHitsEveryOrderStatisticAtItsPlottingPosition) {
  const std::vector<double> values = shuffled(101, 1);
  for (int r = 1; r <= 101; ++r) EXPECT_NEAR(quantile(values, (r - 0.5) / 101), r, 1e-9);
  EXPECT_EQ(quantile(values, 0), 1);
  EXPECT_EQ(quantile(values, 1), 101);
  EXPECT_EQ(quantile(values, 0.5), median(values));
}

TEST(OrderStatistics, MadIgnoresOneWildValue) { EXPECT_EQ(mad(std::vector<double>{1, 2, 3, 4, 1000}), 1); }

TEST(OrderStatistics, StddevKeepsItsDigitsOnALargeOffset) {
  const std::vector<double> values{1e9 + 4, 1e9 + 7, 1e9 + 13, 1e9 + 16};
  EXPECT_NEAR(stddev(values), std::sqrt(30.0), 1e-9);
  EXPECT_EQ(mean(values), 1e9 + 10);
  EXPECT_TRUE(std::isnan(stddev(std::vector<double>{1})));
}

TEST(OrderStatistics, IndependentIntervalIsTheOrderStatisticsOfItsRank) {
  const MedianInterval interval = median_interval_independent(shuffled(100, 2), 0.05);
  EXPECT_EQ(interval.rank, 40);
  EXPECT_EQ(interval.low, 40);
  EXPECT_EQ(interval.high, 61);
  EXPECT_TRUE(interval.exact);
}

TEST(OrderStatistics, IntervalOfFiveValuesIsTheRangeAndSaysItIsNotExact) {
  const MedianInterval five = median_interval_independent(count_to(5), 0.05);
  EXPECT_FALSE(five.exact);
  EXPECT_EQ(five.low, 1);
  EXPECT_EQ(five.high, 5);
  EXPECT_TRUE(median_interval_independent(count_to(6), 0.05).exact);
}

TEST(OrderStatistics, EffectiveSizeMapsRanksToTheSameSampleQuantile) {
  // Each value four times in a row, in a random order of values: about n/4 independent samples.
  std::vector<double> values;
  for (const double v : shuffled(500, 3)) values.insert(values.end(), 4, v);
  const MedianInterval interval = median_interval(values, 0.05);
  EXPECT_NEAR(interval.n_eff, 500, 150);
  EXPECT_EQ(interval.rank, median_rank(static_cast<std::int64_t>(interval.n_eff), 0.05));
  const double position = (static_cast<double>(interval.rank) - 0.5) / interval.n_eff;
  EXPECT_LE(interval.low, quantile(values, position));
  EXPECT_GE(interval.low, quantile(values, position - 1.0 / 2000) - 1);
  EXPECT_NEAR(interval.low + interval.high, 501, 1e-9);  // symmetric ranks
  EXPECT_LT(interval.low, median_interval_independent(values, 0.05).low);
}

TEST(OrderStatistics, TiesWidenTheIntervalAndNeverNarrowIt) {
  std::vector<double> fine = shuffled(200, 4), coarse = fine;
  for (double& v : coarse) v = std::floor(v / 10) * 10;
  const MedianInterval a = median_interval_independent(fine, 0.05);
  const MedianInterval b = median_interval_independent(coarse, 0.05);
  EXPECT_EQ(b.low, std::floor(a.low / 10) * 10);
  EXPECT_EQ(b.high, std::floor(a.high / 10) * 10);
}

TEST(OrderStatistics, TailBoundsExistFromTheirSampleSizeOn) {
  EXPECT_FALSE(quantile_upper_bound(count_to(28), 0.9, 0.05));
  EXPECT_EQ(quantile_upper_bound(count_to(29), 0.9, 0.05), 29);
  EXPECT_FALSE(quantile_upper_bound(count_to(298), 0.99, 0.05));
  EXPECT_EQ(quantile_upper_bound(count_to(299), 0.99, 0.05), 299);
  EXPECT_FALSE(quantile_upper_bound(count_to(2994), 0.999, 0.05));
  EXPECT_EQ(quantile_upper_bound(count_to(2995), 0.999, 0.05), 2995);
}

TEST(OrderStatistics, QuantileIntervalAtOneHalfIsTheMedianInterval) {
  for (const std::size_t n : {6u, 37u, 100u, 1001u}) {
    const std::vector<double> values = shuffled(n, n);
    const MedianInterval expected = median_interval_independent(values, 0.05);
    const auto interval = quantile_interval(values, 0.5, 0.05);
    ASSERT_TRUE(interval) << n;
    EXPECT_EQ(interval->low, expected.low) << n;
    EXPECT_EQ(interval->high, expected.high) << n;
  }
  EXPECT_FALSE(quantile_interval(count_to(5), 0.5, 0.05));
}

TEST(OrderStatistics, UpperBoundOfP90CoversItInNinetyFivePercentOfRuns) {
  Stream stream(5);
  int covered = 0;
  for (int run = 0; run < 2000; ++run) {
    std::vector<double> values(100);
    for (double& v : values) v = stream.uniform();
    covered += *quantile_upper_bound(values, 0.9, 0.05) >= 0.9;
  }
  EXPECT_GE(covered, 1900 - 30);
  EXPECT_LE(covered, 1980);  // an upper bound that never misses would be the maximum
}

TEST(EffectiveSize, OfIndependentDataIsCloseToN) {
  Stream stream(6);
  double sum = 0;
  for (int run = 0; run < 100; ++run) sum += effective_sample_size(testing::autoregressive(stream, 1000, 0));
  EXPECT_GT(sum / 100, 900);
  EXPECT_LE(sum / 100, 1000);
}

TEST(EffectiveSize, OfAnAutoregressiveSeriesIsWhatItsSignsAreWorth) {
  // The signs of a normal AR(1) have autocorrelation (2/pi) asin(phi^k).
  for (const double phi : {0.3, 0.6, 0.9}) {
    double sum = 0;
    for (double power = phi; power > 1e-9; power *= phi) sum += std::asin(power) * 2 / 3.141592653589793;
    Stream stream(7);
    std::vector<double> sizes;
    for (int run = 0; run < 40; ++run) {
      sizes.push_back(effective_sample_size(testing::autoregressive(stream, 8000, phi)));
    }
    EXPECT_NEAR(median(sizes) * (1 + 2 * sum) / 8000, 1, 0.1) << phi;
  }
}

TEST(EffectiveSize, IsNeverAboveNEvenForAlternatingData) {
  std::vector<double> zigzag(100);
  for (std::size_t i = 0; i < zigzag.size(); ++i) zigzag[i] = i % 2 == 0 ? 1 : 2;
  EXPECT_EQ(effective_sample_size(zigzag), 100);
}

TEST(EffectiveSize, OfAStepIsAFewSamples) {
  std::vector<double> step(400, 1.0);
  std::fill(step.begin() + 200, step.end(), 2.0);
  EXPECT_LT(effective_sample_size(step), 8);
}

TEST(EffectiveSize, OfConstantOrTinySeriesIsN) {
  EXPECT_EQ(effective_sample_size(std::vector<double>(50, 1.0)), 50);
  EXPECT_EQ(effective_sample_size({}), 0);
  EXPECT_EQ(effective_sample_size(std::vector<double>{1}), 1);
  EXPECT_EQ(effective_sample_size(std::vector<double>{1, 2, 3}), 3);
}

TEST(Summary, HoldsEveryNumberOfAKnownSeries) {
  const std::vector<double> values = shuffled(99, 8);
  const Summary s = summarize(values, 0.05);
  EXPECT_EQ(s.n, 99);
  EXPECT_EQ(s.median, 50);
  EXPECT_EQ(s.min, 1);
  EXPECT_EQ(s.max, 99);
  EXPECT_EQ(s.mean, 50);
  EXPECT_NEAR(s.stddev, std::sqrt(99 * 100 / 12.0), 1e-12);
  EXPECT_EQ(s.mad, 25);
  EXPECT_NEAR(s.iqr, 49.5, 1e-12);
  EXPECT_NEAR(s.cv, s.stddev / 50, 1e-15);
  EXPECT_NEAR(s.cv_robust, 1.4826 * 25 / 50, 1e-15);
  EXPECT_NEAR(s.p90, 0.9 * 99 + 0.5, 1e-12);
  EXPECT_NEAR(s.p99, 0.99 * 99 + 0.5, 1e-12);
  EXPECT_TRUE(s.p90_upper);
  EXPECT_FALSE(s.p99_upper);
  EXPECT_EQ(s.level, 0.95);
  const MedianInterval interval = median_interval(values, 0.05);
  EXPECT_EQ(s.ci_low, interval.low);
  EXPECT_EQ(s.ci_high, interval.high);
  EXPECT_EQ(s.n_eff, interval.n_eff);
  EXPECT_TRUE(s.exact);
}

TEST(Summary, OfNothingHasNoNumbers) {
  const Summary s = summarize({}, 0.05);
  EXPECT_EQ(s.n, 0);
  EXPECT_TRUE(std::isnan(s.median));
  EXPECT_TRUE(std::isnan(s.ci_low));
  EXPECT_FALSE(s.exact);
}

TEST(Summary, OfOneSampleIsThatSampleWithoutAnInterval) {
  const Summary s = summarize(std::vector<double>{2.5}, 0.05);
  EXPECT_EQ(s.median, 2.5);
  EXPECT_FALSE(s.exact);
  EXPECT_TRUE(std::isnan(s.stddev));
}

}  // namespace
}  // namespace fulcrum::stats
