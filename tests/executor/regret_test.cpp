// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Scoring of decisions, from given times.
#include "executor/regret.h"

#include <fulcrum/stats.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "executor/regret_calls.h"

namespace fulcrum::executor {
namespace {

TEST(Regret, IsTheChosenTimeWithItsOverheadOverTheBest) {
  RegretTrial trial;
  trial.seconds = {std::vector<std::vector<double>>{{2, 2}, {1, 1}, {}}, {{2, 2}, {1, 1}, {}}};
  trial.chosen = 0;
  trial.overhead_seconds = 0.5;
  trial.rules = {1, 0, 2, -1};
  const RegretResult result = score(trial);
  EXPECT_DOUBLE_EQ(result.regret, 2.5);
  EXPECT_EQ(result.oracle, 1);
  EXPECT_DOUBLE_EQ(result.chosen_seconds, 2);
  EXPECT_DOUBLE_EQ(result.oracle_seconds, 1);
  ASSERT_EQ(result.rules.size(), 4u);
  EXPECT_DOUBLE_EQ(result.rules[0], 1);
  EXPECT_DOUBLE_EQ(result.rules[1], 2) << "a rule decides for nothing";
  EXPECT_EQ(result.rules[2], 0) << "it cannot do the call";
  EXPECT_EQ(result.rules[3], 0);
}

TEST(Regret, OfEqualWaysIsOneOnAverageWhateverTheNoise) {
  stats::Random random(7);
  std::vector<double> split, naive;
  for (int point = 0; point < 400; ++point) {
    RegretTrial trial;
    trial.chosen = 0;
    for (int way = 0; way < 6; ++way) {
      for (auto& visit : trial.seconds) {
        std::vector<double> rounds;
        for (int round = 0; round < 5; ++round) rounds.push_back(1 + 0.05 * random.uniform());
        visit.push_back(rounds);
      }
    }
    split.push_back(score(trial).regret);
    double least = 2;
    for (const auto& rounds : trial.seconds[0]) least = std::min(least, stats::median(rounds));
    naive.push_back(stats::median(trial.seconds[0][0]) / least);
  }
  EXPECT_NEAR(stats::mean(split), 1, 0.002);
  EXPECT_GT(stats::mean(naive), 1.005)
      << "the least of six medians is too low: that is what the halves are for";
}

TEST(Regret, AHopelessWayWithOneTimeCountsWithIt) {
  RegretTrial trial;
  trial.seconds = {std::vector<std::vector<double>>{{1, 1}, {9}}, {{1, 1}, {}}};
  trial.chosen = 1;
  EXPECT_DOUBLE_EQ(score(trial).regret, 9) << "and in the visit that has none";
}

TEST(Regret, TheOracleOfOneVisitDoesNotKnowTheWeatherOfTheOther) {
  RegretTrial trial;
  // Many threads were the best in the first visit and disturbed in the second; one thread took 2 all the time.
  trial.seconds = {std::vector<std::vector<double>>{{2, 2, 2}, {1.6, 1.6, 1.6}}, {{2, 2, 2}, {8, 8, 8}}};
  trial.chosen = 0;
  EXPECT_DOUBLE_EQ(score(trial).regret, (2 / 8.0 + 2 / 2.0) / 2);
  trial.chosen = 1;
  EXPECT_DOUBLE_EQ(score(trial).regret, (8 / 8.0 + 1.6 / 2) / 2) << "nor does it blame it on the choice";
  EXPECT_DOUBLE_EQ(score(trial).hindsight, (2 / 8.0 + 2 / 2.0) / 2) << "one thread is the best of all rounds";
}

TEST(Regret, OfWhatWasFastestBeforeIsWhatTheMachineChangedSince) {
  RegretTrial trial;
  trial.seconds = {std::vector<std::vector<double>>{{3, 3}, {1, 1}, {4, 4}}, {{2, 2}, {1, 1}, {4, 4}}};
  trial.chosen = 0;
  EXPECT_EQ(score(trial).before, 0) << "nothing was timed before";
  trial.before = {{3, 3}, {1, 1}, {}};
  EXPECT_DOUBLE_EQ(score(trial).before, 1) << "whatever was chosen";
  trial.before = {{2, 2}, {9, 2.5}, {}};
  EXPECT_DOUBLE_EQ(score(trial).before, 2.5);
}

TEST(Regret, OfTheOracleItselfIsExactlyOne) {
  RegretTrial trial;
  trial.seconds = {std::vector<std::vector<double>>{{3, 4, 5}, {1, 2, 9}}, {{7, 3, 4}, {2, 1, 1}}};
  trial.chosen = 1;
  EXPECT_DOUBLE_EQ(score(trial).regret, 1);
}

TEST(Regret, WhatWasLearnedInOneVisitIsScoredInTheOther) {
  RegretTrial trial;
  trial.seconds[0] = {{2e-6}, {1e-6}};
  trial.seconds[1] = {{2e-6}, {1e-6}};
  trial.chosen = 0;
  EXPECT_EQ(score(trial).after, 0) << "nothing was learned";
  trial.after = {1, 0};
  trial.explored_seconds = {0.1e-6, 0.2e-6};
  EXPECT_NEAR(score(trial).regret, 2, 1e-9);
  EXPECT_NEAR(score(trial).after, (1.1 + 2.2) / 2, 1e-9);
}

TEST(Regret, SummaryHasBandAndWorst) {
  std::vector<double> regrets;
  std::vector<Band> bands;
  for (int i = 0; i < 100; ++i) {
    regrets.push_back(i == 3 ? 2.0 : i % 2 ? 1.1 : 1.0);
    bands.push_back(i % 2 ? Band::device : i % 4 ? Band::threads : Band::none);
  }
  regrets.push_back(0);  // no answer
  bands.push_back(Band::device);
  const RegretScore score = summarise(regrets, bands);
  EXPECT_EQ(score.points, 100);
  EXPECT_EQ(score.device.points, 50);
  EXPECT_EQ(score.threads.points, 25);
  EXPECT_NEAR(score.mean, 1.059, 1e-9);
  EXPECT_LT(score.low, score.mean);
  EXPECT_GT(score.high, score.mean);
  EXPECT_NEAR(score.device.p95, 1.1, 1e-9);
  EXPECT_EQ(score.threads.p95, 1);
  EXPECT_EQ(score.max, 2);
}

TEST(Regret, BandsLieAroundTheBreakEvenThatMatters) {
  EXPECT_EQ(band_of(3, 2, 1.1), Band::device);
  EXPECT_EQ(band_of(3, 2, 3.9), Band::device);
  EXPECT_EQ(band_of(3, 2, 4.1), Band::threads);
  EXPECT_EQ(band_of(3, 2, 0.9), Band::none) << "whatever the threads: the device is far ahead";
  EXPECT_EQ(band_of(5, 2, 9), Band::none);
  EXPECT_EQ(band_of(1.5, 2, kNoWay), Band::threads);
  EXPECT_EQ(band_of(1.5, kNoWay, kNoWay), Band::none);
  EXPECT_EQ(band_of(kNoWay, kNoWay, 1), Band::none);
}

TEST(Regret, ThePowerLawGoesThroughAPowerLaw) {
  std::vector<std::pair<double, double>> points;
  for (const double size : {10.0, 100.0, 1000.0}) points.emplace_back(size, 3e-9 * size * size);
  const auto law = fit_power_law(points);
  ASSERT_TRUE(law);
  EXPECT_NEAR(law->exponent, 2, 1e-9);
  EXPECT_NEAR(law->seconds(50), 3e-9 * 2500, 1e-12);
  EXPECT_FALSE(fit_power_law(std::span(points).first(1)));
}

TEST(Regret, TheDocumentHasScoresBaselinesAndEveryCall) {
  RegretReport report;
  report.executor = {.points = 2, .mean = 1.01};
  report.baselines.push_back({"one thread", "meaning", {.points = 2, .mean = 1.4}});
  report.classes = {{"threads", 2}};
  report.rows.resize(2);
  report.rows[1].band = Band::threads;
  report.timed_before.device = {3, 1.07};
  report.rows[0].ways.push_back({"gelu/simd/default", 1.23456e-6, 1.5e-6, 2e-6, 1.75e-6});
  const Json json = to_json(report);
  EXPECT_EQ(json["schema"], "fulcrum.regret/3");
  EXPECT_EQ(json["executor"]["mean"], 1.01);
  EXPECT_EQ(json["baselines"][0]["name"], "one thread");
  EXPECT_EQ(json["rows"].size(), 2u);
  const Json& way = json["rows"][0]["ways"]["gelu/simd/default"];
  EXPECT_NEAR(way["seconds"][0].get<double>(), 1.235e-6, 1e-12);
  EXPECT_NEAR(way["predicted_seconds"].get<double>(), 2e-6, 1e-12);
  EXPECT_NEAR(way["before_seconds"].get<double>(), 1.75e-6, 1e-12);
  EXPECT_EQ(json["timed_before"]["device_band"]["p95"], 1.07);
  EXPECT_TRUE(json["timed_before"]["threads_band"]["p95"].is_null()) << "no call lies there";
  EXPECT_TRUE(json["rows"][0]["band"].is_null());
  EXPECT_EQ(json["rows"][1]["band"], "threads");
  EXPECT_EQ(json["classes_of_the_oracle"]["threads"], 2);
}

}  // namespace
}  // namespace fulcrum::executor
