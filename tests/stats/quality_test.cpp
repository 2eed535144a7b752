// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Outlier counts, modes and quality labels.
#include <fulcrum/stats.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "stats/streams.h"

namespace fulcrum::stats {
namespace {

using testing::Noise;
using testing::simulate;
using testing::Stream;

TEST(Outliers, AreClassedByFenceAndSide) {
  std::vector<double> values;
  for (int i = 0; i < 100; ++i)
    values.push_back(std::exp(0.01 * i));  // IQR of ln t is 0.5, fences 0.75 and 1.5 out
  const std::vector<double> clean = values;
  EXPECT_EQ(classify_outliers(clean).total(), 0);
  for (const double log_seconds : {-0.8, -3.0, 1.8, 1.9, 4.0, 5.0, 6.0})
    values.push_back(std::exp(log_seconds));
  const Outliers o = classify_outliers(values);
  EXPECT_EQ(o.low_mild, 1);
  EXPECT_EQ(o.low_severe, 1);
  EXPECT_EQ(o.high_mild, 2);
  EXPECT_EQ(o.high_severe, 3);
  EXPECT_EQ(o.total(), 7);
  EXPECT_LT(o.severe.low, o.mild.low);
  EXPECT_GT(o.severe.high, o.mild.high);
}

TEST(Outliers, ASlowFirstRunIsFlaggedAndAFastOneIsNot) {
  Stream stream(71);
  std::vector<double> values = simulate(stream, Noise::normal, 50, 0, 0.01).seconds;
  EXPECT_FALSE(classify_outliers(values).slow_first);
  values[0] = 1.3;
  EXPECT_TRUE(classify_outliers(values).slow_first);
  values[0] = 0.7;
  EXPECT_FALSE(classify_outliers(values).slow_first);
  values[0] = 1.0;
  values[1] = 1.3;
  EXPECT_FALSE(classify_outliers(values).slow_first);
}

TEST(Outliers, AQuantisedClockDoesNotMakeTheNextTickASlowFirstRun) {
  std::vector<double> values(50, 1.0);
  values[0] = 1.005;
  EXPECT_FALSE(classify_outliers(values).slow_first);
  values[0] = 1.02;
  EXPECT_TRUE(classify_outliers(values).slow_first);
  EXPECT_EQ(classify_outliers({}).total(), 0);
}

int multimodal_runs(Noise noise, std::size_t n, int runs, double cv) {
  Stream stream(72 + n);
  int alarms = 0;
  for (int i = 0; i < runs; ++i)
    alarms += find_modes(simulate(stream, noise, n, 0, cv).seconds).modes.size() > 1;
  return alarms;
}

TEST(Modes, RarelySeeTwoWhereThereIsOne) {
  for (const double cv : {0.02, 0.1}) {
    EXPECT_LE(multimodal_runs(Noise::normal, 100, 400, cv), 16) << cv;
    EXPECT_LE(multimodal_runs(Noise::skewed, 30, 400, cv), 16) << cv;
    EXPECT_LE(multimodal_runs(Noise::skewed, 100, 400, cv), 16) << cv;
    EXPECT_LE(multimodal_runs(Noise::normal, 1000, 100, cv), 1) << cv;
    EXPECT_LE(multimodal_runs(Noise::skewed, 1000, 100, cv), 1) << cv;
  }
}

// 30 % of the samples six CV slower.
std::vector<double> two_modes(Stream& stream, std::size_t n, bool in_stretches) {
  std::vector<double> values(n);
  for (std::size_t i = 0; i < n; ++i) {
    const bool slow = in_stretches ? i >= n - 3 * n / 10 : stream.uniform() < 0.3;
    values[i] = stream.skewed(0.02) * (slow ? 1.12 : 1);
  }
  return values;
}

TEST(Modes, FindAThirdOfTheSamplesSixCvAway) {
  Stream stream(73);
  int found = 0, alternating = 0;
  for (int i = 0; i < 400; ++i) {
    const Modes m = find_modes(two_modes(stream, 100, false));
    if (m.modes.size() != 2) continue;
    ++found;
    alternating += m.pattern == ModePattern::alternating;
    EXPECT_NEAR(m.modes[0].location, 1.0, 0.02);
    EXPECT_NEAR(m.modes[1].location, 1.12, 0.03);
    EXPECT_NEAR(m.modes[1].share, 0.3, 0.2);
  }
  EXPECT_GE(found, 360);
  EXPECT_GE(alternating, found * 95 / 100);
}

TEST(Modes, TellSwitchingInTimeFromAlternating) {
  Stream stream(74);
  int switching = 0;
  for (int i = 0; i < 100; ++i)
    switching += find_modes(two_modes(stream, 200, true)).pattern == ModePattern::switching;
  EXPECT_GE(switching, 95);
}

TEST(Modes, CloserThanTwoPercentAreOne) {
  Stream stream(75);
  std::vector<double> near, far;
  for (int i = 0; i < 300; ++i) {
    const double noise = 1 + 0.0005 * stream.normal();
    near.push_back(noise * (i % 2 == 0 ? 1 : 1.015));
    far.push_back(noise * (i % 2 == 0 ? 1 : 1.03));
  }
  EXPECT_EQ(find_modes(near).modes.size(), 1u);
  EXPECT_EQ(find_modes(far).modes.size(), 2u);
}

TEST(Modes, OutliersAreNoModeHoweverFar) {
  Stream stream(76);
  std::vector<double> values = simulate(stream, Noise::normal, 300, 0, 0.001).seconds;
  for (std::size_t i = 0; i < 15; ++i) values[20 * i] = 1e6;
  const Modes m = find_modes(values);
  ASSERT_EQ(m.modes.size(), 1u);
  EXPECT_EQ(m.modes[0].share, 1);
  EXPECT_EQ(m.pattern, ModePattern::single);
  for (std::size_t i = 0; i < 60; ++i) values[5 * i] = 1e6;  // beyond the grid, but a fifth of the samples
  const Modes two = find_modes(values);
  ASSERT_EQ(two.modes.size(), 2u);
  EXPECT_NEAR(two.modes[1].location, 1e6, 1);
  EXPECT_NEAR(two.modes[1].share, 0.2, 1e-9);
}

TEST(Modes, OfDegenerateDataAreOneOrNone) {
  EXPECT_TRUE(find_modes({}).modes.empty());
  EXPECT_EQ(find_modes(std::vector<double>(100, 2.0)).modes.size(), 1u);
  EXPECT_EQ(find_modes(std::vector<double>{1, 2, 3}).modes.size(), 1u);
  EXPECT_EQ(find_modes(std::vector<double>(20, 0.0)).modes.size(), 0u);
  std::vector<double> two_values(100, 1.0);
  for (std::size_t i = 0; i < 100; i += 2) two_values[i] = 2.0;
  const Modes m = find_modes(two_values);
  EXPECT_EQ(m.modes.size(), 2u);
  EXPECT_EQ(m.pattern, ModePattern::alternating);
}

TEST(Quality, TiersFollowTheRobustCv) {
  EXPECT_EQ(quality_of(0.05, 0.05, 1, 0).quality, Quality::stable);
  EXPECT_EQ(quality_of(0.051, 0.05, 1, 0).quality, Quality::fair);
  EXPECT_EQ(quality_of(0.11, 0.11, 1, 0).quality, Quality::noisy);
  EXPECT_EQ(quality_of(0.21, 0.21, 1, 0).quality, Quality::unstable);
  EXPECT_EQ(quality_of(kUndefined, 0.01, 1, 0).quality, Quality::invalid);
}

TEST(Quality, ModesOrTagsMakeItUnstable) {
  EXPECT_EQ(quality_of(0.01, 0.01, 2, 0).quality, Quality::unstable);
  EXPECT_EQ(quality_of(0.01, 0.01, 1, 0.11).quality, Quality::unstable);
  EXPECT_EQ(quality_of(0.01, 0.01, 1, 0.10).quality, Quality::stable);
}

TEST(Quality, AClassicCvTwoTiersWorseIsAHeavyTail) {
  EXPECT_FALSE(quality_of(0.01, 0.09, 1, 0).heavy_tail);
  EXPECT_TRUE(quality_of(0.01, 0.11, 1, 0).heavy_tail);
  EXPECT_FALSE(quality_of(0.06, 0.19, 1, 0).heavy_tail);
  EXPECT_TRUE(quality_of(0.06, 0.21, 1, 0).heavy_tail);
  EXPECT_EQ(quality_of(0.01, 0.5, 1, 0).quality, Quality::stable);
}

TEST(Quality, AFewSamplesAreNotCalledStable) {
  const auto of = [](std::int64_t n) { return quality_of(Summary{.n = n, .cv_robust = 0}, 1, 0).quality; };
  EXPECT_EQ(of(1), Quality::unstable) << "one sample has no spread";
  EXPECT_EQ(of(2), Quality::fair);
  EXPECT_EQ(of(5), Quality::fair);
  EXPECT_EQ(of(6), Quality::stable);
  EXPECT_EQ(quality_of(Summary{.n = 3, .cv_robust = 0.15}, 1, 0).quality, Quality::noisy);
}

TEST(Quality, CorrelatedMeansCorrelatedNotFew) {
  EXPECT_TRUE(quality_of(Summary{.n = 1000, .n_eff = 29, .cv_robust = 0.01}, 1, 0).correlated);
  EXPECT_FALSE(quality_of(Summary{.n = 1000, .n_eff = 30, .cv_robust = 0.01}, 1, 0).correlated);
  EXPECT_FALSE(quality_of(Summary{.n = 10, .n_eff = 9, .cv_robust = 0.01}, 1, 0).correlated);
  EXPECT_TRUE(quality_of(Summary{.n = 30, .n_eff = 8, .cv_robust = 0.01}, 1, 0).correlated);
}

}  // namespace
}  // namespace fulcrum::stats
