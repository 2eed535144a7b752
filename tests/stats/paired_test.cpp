// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Paired comparison: verdicts, effect sizes, false alarms and power of the sequential rule.
#include <fulcrum/stats.h>
#include <gtest/gtest.h>

#include <cmath>
#include <span>
#include <vector>

#include "stats/streams.h"

namespace fulcrum::stats {
namespace {

using testing::Stream;

TEST(Verdict, FollowsTheInterval) {
  EXPECT_EQ(verdict_of({1.1, 1.3}), Verdict::faster);
  EXPECT_EQ(verdict_of({0.7, 0.9}), Verdict::slower);
  EXPECT_EQ(verdict_of({0.99, 1.01}), Verdict::same);
  EXPECT_EQ(verdict_of({0.9, 1.2}), Verdict::unresolved);
  EXPECT_EQ(verdict_of({1.0, 1.2}), Verdict::unresolved);
  EXPECT_EQ(verdict_of({}), Verdict::unresolved);
}

TEST(Verdict, AProvenDifferenceBelowTwoPercentIsSameAndStillDetected) {
  EXPECT_EQ(verdict_of({1.003, 1.010}), Verdict::same);
  EXPECT_TRUE(excludes_one({1.003, 1.010}));
  EXPECT_EQ(verdict_of({1.003, 1.030}), Verdict::faster);
  EXPECT_EQ(verdict_of({0.970, 0.990}), Verdict::slower);
}

TEST(Verdict, SwappingTheSidesMirrorsIt) {
  for (const Interval i : {Interval{1.1, 1.3}, {0.98, 1.02}, {0.981, 1.02}, {0.9, 1.2}, {1.01, 1.03}}) {
    const Verdict mirrored = verdict_of({1 / i.high, 1 / i.low});
    const Verdict v = verdict_of(i);
    EXPECT_EQ(mirrored, v == Verdict::faster ? Verdict::slower : v);
  }
}

TEST(Paired, SpeedupIsBaselineOverSubject) {
  const std::vector<double> a(12, 1.0), b(12, 2.0);
  const Paired p = compare_paired(a, b, 0.05);
  EXPECT_EQ(p.rounds, 12);
  EXPECT_EQ(p.ties, 0);
  EXPECT_NEAR(p.speedup, 2, 1e-15);
  EXPECT_NEAR(p.ci_low, 2, 1e-15);
  EXPECT_EQ(p.seconds_saved, 1);
  EXPECT_EQ(p.share_a_faster, 1);
  EXPECT_NEAR(p.p_value, 2.0 / 4096, 1e-15);
  EXPECT_EQ(p.verdict, Verdict::faster);
  EXPECT_TRUE(p.excludes_one);
  EXPECT_EQ(compare_paired(b, a, 0.05).verdict, Verdict::slower);
}

TEST(Paired, CountsTiesAndCallsIdenticalTimesSame) {
  const std::vector<double> a{1, 2, 3, 4, 5, 6, 7, 0};
  const Paired p = compare_paired(a, a, 0.05);
  EXPECT_EQ(p.ties, 8);
  EXPECT_EQ(p.speedup, 1);
  EXPECT_EQ(p.verdict, Verdict::same);
  EXPECT_EQ(p.p_value, 1);
  EXPECT_EQ(p.share_a_faster, 0);
}

TEST(Paired, IntervalIsTheOrderStatisticsOfTheLogRatios) {
  std::vector<double> a(12, 1.0), b;
  for (int i = 1; i <= 12; ++i) b.push_back(std::exp(0.1 * i));
  const Paired p = compare_paired(a, b, 0.05);  // r = 3
  EXPECT_NEAR(p.ci_low, std::exp(0.3), 1e-12);
  EXPECT_NEAR(p.ci_high, std::exp(1.0), 1e-12);
  EXPECT_NEAR(p.speedup, std::exp(0.65), 1e-12);
}

TEST(Paired, TooFewRoundsStayUnresolved) {
  const std::vector<double> a(5, 1.0), b(5, 9.0);
  const Paired p = compare_paired(a, b, 0.05);
  EXPECT_FALSE(p.exact);
  EXPECT_EQ(p.verdict, Verdict::unresolved);
  EXPECT_FALSE(p.excludes_one);
  EXPECT_EQ(compare_paired({}, {}, 0.05).rounds, 0);
}

// Rounds of right-skewed epochs with a random-walk drift that both sides of a round share.
struct Rounds {
  std::vector<double> a, b;
};
Rounds rounds_of(Stream& stream, std::size_t n, double slow_down) {
  Rounds out{std::vector<double>(n), std::vector<double>(n)};
  double drift = 0;
  for (std::size_t i = 0; i < n; ++i) {
    drift += 0.002 * stream.normal();
    out.a[i] = std::exp(drift) * stream.skewed(0.02) * (1 + slow_down);
    out.b[i] = std::exp(drift) * stream.skewed(0.02);
  }
  return out;
}

struct Outcome {
  bool flagged = false;
  bool covered = false;
  std::int64_t rounds = 0;
  double width_ratio = 0;  // over the plain 95 % interval of the same rounds
};

Outcome sequential(Stream& stream, double slow_down, double precision) {
  const std::vector<Look> looks = plan_paired_looks();
  const Rounds r = rounds_of(stream, static_cast<std::size_t>(looks.back().n), slow_down);
  for (const Look& look : looks) {
    const auto n = static_cast<std::size_t>(look.n);
    const Paired p = compare_paired(std::span(r.a).first(n), std::span(r.b).first(n), look.alpha);
    const bool precise = log_half_width({p.ci_low, p.ci_high}) <= precision;
    if (!p.excludes_one && !precise && look.n != looks.back().n) continue;
    const Paired plain = compare_paired(std::span(r.a).first(n), std::span(r.b).first(n), 0.05);
    const double truth = 1 / (1 + slow_down);
    return {p.excludes_one, p.ci_low <= truth && truth <= p.ci_high, p.rounds,
            log_half_width({p.ci_low, p.ci_high}) / log_half_width({plain.ci_low, plain.ci_high})};
  }
  return {};
}

TEST(Paired, SequentialRuleRaisesFalseAlarmsInAtMostFivePercent) {
  Stream stream(51);
  int flagged = 0;
  for (int i = 0; i < 2000; ++i) flagged += sequential(stream, 0, 0).flagged;
  EXPECT_LE(flagged, 100);
  EXPECT_GE(flagged, 10);  // a rule that never speaks has no power
}

TEST(Paired, SequentialRuleFindsASlowDownOfTwoPercent) {
  Stream stream(52);
  int flagged = 0;
  double rounds = 0;
  for (int i = 0; i < 500; ++i) {
    const Outcome outcome = sequential(stream, 0.02, 0);
    flagged += outcome.flagged;
    rounds += static_cast<double>(outcome.rounds);
  }
  EXPECT_GE(flagged, 495);
  EXPECT_LT(rounds / 500, 60);
}

TEST(Paired, SequentialIntervalCoversTheInjectedEffect) {
  Stream stream(53);
  int covered = 0, runs = 0;
  for (const double effect : {0.0, 0.01, 0.02, 0.05}) {
    for (int i = 0; i < 500; ++i, ++runs) covered += sequential(stream, effect, 0.01).covered;
  }
  EXPECT_GE(covered, runs * 0.95 - 3 * std::sqrt(runs * 0.95 * 0.05));
}

TEST(Paired, TwelveRoundsCostAtMostTwoPointThreeTimesThePlainWidth) {
  Stream stream(54);
  std::vector<double> first, later;
  for (int i = 0; i < 1000; ++i) {
    const Outcome outcome = sequential(stream, 0, i % 2 == 0 ? 1.0 : 0.005);
    (outcome.rounds == 12 ? first : later).push_back(outcome.width_ratio);
  }
  ASSERT_GT(first.size(), 400u);
  ASSERT_GT(later.size(), 400u);
  EXPECT_LE(median(first), 2.3);
  EXPECT_LE(median(later), 1.75);
}

TEST(CliffsDelta, CountsWinsMinusLosses) {
  const std::vector<double> a{1, 2}, b{2, 3};
  EXPECT_NEAR(cliffs_delta(a, b), 0.75, 1e-15);
  EXPECT_NEAR(cliffs_delta(b, a), -0.75, 1e-15);
  EXPECT_EQ(cliffs_delta(a, a), 0);
  EXPECT_TRUE(std::isnan(cliffs_delta({}, b)));
}

TEST(DetectableEffect, IsTheSmallestFromWhichOnEveryEffectIsFound) {
  const std::vector<Detection> curve{{0.01, 90, 100}, {0.05, 100, 100}, {0.02, 70, 100}, {0.10, 100, 100}};
  EXPECT_EQ(minimum_detectable_effect(curve), 0.05);
  EXPECT_EQ(minimum_detectable_effect(curve, 0.7), 0.01);
  EXPECT_FALSE(minimum_detectable_effect(std::vector<Detection>{{0.1, 79, 100}}));
  EXPECT_EQ(minimum_detectable_effect(std::vector<Detection>{{0.1, 80, 100}}), 0.1);
  EXPECT_FALSE(minimum_detectable_effect({}));
}

}  // namespace
}  // namespace fulcrum::stats
