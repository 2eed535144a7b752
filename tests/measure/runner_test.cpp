// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Timing one subject on a clock that only the test moves.
#include <gtest/gtest.h>

#include <algorithm>
#include <stdexcept>

#include "support/fake_clock.h"

namespace fulcrum::measure {
namespace {

using testing::FakeClock;
using testing::FakeSubject;

bool timing_has(const Timing& timing, std::string_view flag) {
  return std::find(timing.flags.begin(), timing.flags.end(), flag) != timing.flags.end();
}

std::int64_t of_phase(const Timing& timing, int phase) {
  return std::count_if(timing.raw.begin(), timing.raw.end(),
                       [&](const Sample& s) { return s.phase == phase; });
}

TEST(Runner, SteadySubjectsStopOnPrecisionAtTheFirstLook) {
  FakeClock clock;
  const auto timing =
      time(FakeSubject{.clock = &clock, .call_seconds = 2e-3, .noise = 0.002}.subject("steady"),
           Config{.clock = clock.clock()});
  ASSERT_TRUE(timing.ok());
  EXPECT_EQ(timing->stop_reason, StopReason::precision);
  EXPECT_EQ(timing->samples, 100);
  EXPECT_NEAR(timing->seconds.median, 2e-3, 1e-5);
  EXPECT_LE(timing->seconds.ci_low, timing->seconds.median);
  EXPECT_GE(timing->seconds.ci_high, timing->seconds.median);
  EXPECT_EQ(timing->seconds.level, 0.95);
  EXPECT_EQ(timing->quality, Quality::stable);
}

TEST(Runner, NoisierSubjectsStopAtALaterLook) {
  FakeClock clock;
  const auto timing = time(FakeSubject{.clock = &clock, .call_seconds = 1e-3, .noise = 0.1}.subject("noisy"),
                           Config{.clock = clock.clock()});
  ASSERT_TRUE(timing.ok());
  EXPECT_EQ(timing->stop_reason, StopReason::precision);
  const std::vector<std::int64_t> looks{150, 225, 338, 506, 759, 1139, 1709, 2563, 3844};
  EXPECT_NE(std::find(looks.begin(), looks.end(), timing->samples), looks.end()) << timing->samples;
  EXPECT_LE(stats::log_half_width({timing->seconds.ci_low, timing->seconds.ci_high}), 0.01);
  EXPECT_EQ(timing->quality, Quality::fair);
}

TEST(Runner, TheScheduleEndsAWildSubject) {
  FakeClock clock;
  const auto timing = time(FakeSubject{.clock = &clock, .call_seconds = 1e-4, .noise = 1}.subject("wild"),
                           Config{.budget_seconds = 1e6, .clock = clock.clock()});
  ASSERT_TRUE(timing.ok());
  EXPECT_EQ(timing->stop_reason, StopReason::budget);
  EXPECT_EQ(timing->stop_detail, "planned_looks");
  EXPECT_EQ(timing->samples, 3844);
  EXPECT_EQ(timing->quality, Quality::unstable);
}

TEST(Runner, TheBudgetOfTheCasePlansItsEnd) {
  FakeClock clock;
  const auto timing = time(FakeSubject{.clock = &clock, .call_seconds = 0.4, .noise = 0.3}.subject("slow"),
                           Config{.budget_seconds = 10, .clock = clock.clock()});
  ASSERT_TRUE(timing.ok());
  EXPECT_EQ(timing->stop_reason, StopReason::budget);
  EXPECT_EQ(timing->stop_detail, "case_time");
  EXPECT_TRUE(timing_has(*timing, "low_n"));
  EXPECT_LT(clock.now_seconds(), 1000 + 10.0);
}

TEST(Runner, OneSampleIsTakenEvenIfItDoesNotFit) {
  FakeClock clock;
  const auto timing = time(FakeSubject{.clock = &clock, .call_seconds = 8}.subject("very slow"),
                           Config{.budget_seconds = 10, .clock = clock.clock()});
  ASSERT_TRUE(timing.ok());
  EXPECT_EQ(timing->samples, 1);
  EXPECT_TRUE(timing_has(*timing, "too_few_samples"));
  EXPECT_EQ(timing->seconds.level, 0) << "one value says nothing about a median";
  EXPECT_EQ(timing->stop_reason, StopReason::budget);
}

TEST(Runner, FewSamplesReportTheLevelTheyReallyHave) {
  FakeClock clock;
  const auto timing = time(FakeSubject{.clock = &clock, .call_seconds = 1.5, .noise = 0.01}.subject("slow"),
                           Config{.budget_seconds = 10, .clock = clock.clock()});
  ASSERT_TRUE(timing.ok());
  ASSERT_GE(timing->samples, 2);
  ASSERT_LE(timing->samples, 5);
  EXPECT_NEAR(timing->seconds.level, 1 - std::exp2(1 - std::floor(timing->effective_samples)), 1e-12);
  EXPECT_EQ(timing->seconds.ci_low, timing->seconds.min);
  EXPECT_EQ(timing->seconds.ci_high, timing->seconds.max);
}

TEST(Runner, TheHardCapFiresWhenASubjectSlowsDownAfterThePilot) {
  FakeClock clock;
  FakeSubject subject{.clock = &clock, .call_seconds = 0.01};
  subject.noise = 0.2;
  subject.drift = [](double now) { return now > 1000.5 ? 20.0 : 1.0; };
  const auto timing =
      time(subject.subject("slows down"), Config{.budget_seconds = 5, .clock = clock.clock()});
  ASSERT_TRUE(timing.ok());
  EXPECT_EQ(timing->stop_reason, StopReason::budget);
  EXPECT_EQ(timing->stop_detail, "off_schedule");
  EXPECT_LT(clock.now_seconds(), 1000 + 5 + 0.5) << "one sample over at most";
}

TEST(Runner, AnInterruptKeepsWhatWasMeasured) {
  FakeClock clock;
  Config config{.clock = clock.clock()};
  config.interrupted = [&] { return clock.now_seconds() > 1000.5; };
  const auto timing =
      time(FakeSubject{.clock = &clock, .call_seconds = 5e-3, .noise = 0.5}.subject("s"), config);
  ASSERT_TRUE(timing.ok());
  EXPECT_EQ(timing->stop_reason, StopReason::interrupted);
  EXPECT_GT(timing->samples, 10);
  EXPECT_LT(timing->samples, 100);
  EXPECT_EQ(of_phase(*timing, 2), timing->samples);
}

TEST(Runner, AnInterruptBeforeAnyCountedSampleIsAnError) {
  FakeClock clock;
  const auto timing = time(FakeSubject{.clock = &clock}.subject("s"),
                           Config{.interrupted = [] { return true; }, .clock = clock.clock()});
  ASSERT_FALSE(timing.ok());
  EXPECT_EQ(timing.error().code, Code::interrupted);
}

TEST(Runner, AnExceptionIsAnErrorOfThisCaseAndSaysWhat) {
  FakeClock clock;
  int calls = 0;
  const Subject throws{.name = "mine", .run = [&](std::int64_t) -> Status {
                         clock.advance(1e-3);
                         if (++calls > 150) throw std::runtime_error("out of paper");
                         return {};
                       }};
  const auto timing = time(throws, Config{.clock = clock.clock()});
  ASSERT_FALSE(timing.ok());
  EXPECT_NE(timing.error().message.find("mine"), std::string::npos);
  EXPECT_NE(timing.error().message.find("out of paper"), std::string::npos);
  const Subject strange{.name = "odd", .run = [](std::int64_t) -> Status { throw 7; }};
  EXPECT_FALSE(time(strange, Config{.clock = clock.clock()}).ok());
}

TEST(Runner, AFailingResetIsAnErrorOfThisCase) {
  FakeClock clock;
  Subject subject = FakeSubject{.clock = &clock}.subject("s");
  subject.reset = []() -> Status { return Error{Code::device_error, "gone", ""}; };
  const auto timing = time(subject, Config{.clock = clock.clock()});
  ASSERT_FALSE(timing.ok());
  EXPECT_EQ(timing.error().code, Code::device_error);
}

TEST(Runner, ASubjectWithoutRunIsRefused) {
  EXPECT_EQ(time(Subject{.name = "empty"}, Config{}).error().code, Code::usage);
}

TEST(Runner, ShortCallsAreBatchedAndSaySo) {
  FakeClock clock(20e-9, 25e-9);
  const FakeSubject fake{.clock = &clock, .call_seconds = 1e-6, .noise = 0.001};
  const auto timing = time(fake.subject("short"), Config{.clock = clock.clock()});
  ASSERT_TRUE(timing.ok());
  EXPECT_NEAR(static_cast<double>(timing->calls_per_sample), 1000, 10);
  EXPECT_EQ(10 * fake.counts->back(), timing->calls_per_sample) << "in ten slices";
  EXPECT_TRUE(timing_has(*timing, "batch_percentiles"));
  EXPECT_NEAR(timing->seconds.median, 1e-6, 1e-9) << "per call";
  EXPECT_NEAR(timing->raw.back().seconds, 1e-3, 1e-5) << "whole batch";
}

TEST(Runner, WhatInterruptsASliceOfABatchHardlyCountsAndIsTold) {
  FakeClock clock(20e-9, 25e-9);
  int slice = 0;
  const Subject subject{.name = "interrupted", .run = [&](std::int64_t count) -> Status {
                          clock.advance(static_cast<double>(count) * 1e-6);
                          if (++slice % 5 == 0)
                            clock.advance(1e-3);  // somebody else's turn, in two slices of ten
                          return {};
                        }};
  const auto timing = time(subject, Config{.clock = clock.clock()});
  ASSERT_TRUE(timing.ok());
  EXPECT_NEAR(timing->seconds.median, 1.04e-6, 1e-8) << "a fifth longer for each of the two";
  EXPECT_TRUE(timing_has(*timing, "interrupted"));
  EXPECT_EQ(timing->raw.back().tags & 16, 16);
}

TEST(Runner, ABatchForADeviceIsNotCutIntoSlices) {
  FakeClock clock(20e-9, 25e-9);
  const FakeSubject fake{.clock = &clock, .call_seconds = 1e-6, .noise = 0.001};
  const auto timing =
      time(fake.subject("queued"), Config{.regime = Regime::resident, .clock = clock.clock()});
  ASSERT_TRUE(timing.ok());
  EXPECT_EQ(fake.counts->back(), timing->calls_per_sample);
}

TEST(Runner, LongCallsAreTimedOneByOneForTheirPercentiles) {
  FakeClock clock(20e-9, 25e-9);
  const FakeSubject fake{.clock = &clock, .call_seconds = 30e-6, .noise = 0.001};
  const auto timing = time(fake.subject("long"), Config{.clock = clock.clock()});
  ASSERT_TRUE(timing.ok());
  EXPECT_EQ(timing->calls_per_sample, 1);
  EXPECT_FALSE(timing_has(*timing, "batch_percentiles"));
}

TEST(Runner, AResetRunsBeforeEverySampleOutsideItsTime) {
  FakeClock clock;
  int resets = 0;
  const FakeSubject fake{.clock = &clock, .call_seconds = 1e-6};
  Subject subject = fake.subject("reset");
  subject.reset = [&]() -> Status {
    ++resets;
    clock.advance(0.01);
    return {};
  };
  const auto timing = time(subject, Config{.clock = clock.clock()});
  ASSERT_TRUE(timing.ok());
  EXPECT_EQ(timing->calls_per_sample, 1);
  EXPECT_EQ(resets, static_cast<int>(timing->raw.size()));
  EXPECT_NEAR(timing->seconds.median, 1e-6, 1e-9);
  for (const std::int64_t count : *fake.counts) EXPECT_EQ(count, 1);
}

TEST(Runner, TheCostOfTheResetCountsWhenSamplesArePlanned) {
  FakeClock clock;
  Subject subject = FakeSubject{.clock = &clock, .call_seconds = 1e-3}.subject("reset");
  subject.reset = [&]() -> Status {
    clock.advance(0.1);
    return {};
  };
  const auto timing = time(subject, Config{.clock = clock.clock()});
  ASSERT_TRUE(timing.ok());
  EXPECT_EQ(timing->samples, 30);
}

TEST(Runner, WarmUpAndPilotAreKeptButNotCounted) {
  FakeClock clock;
  FakeSubject fake{.clock = &clock, .call_seconds = 5e-3, .noise = 0.001};
  fake.drift = [](double now) { return now < 1000.2 ? 50.0 : 1.0; };  // cold for the first 0.2 s
  const auto timing = time(fake.subject("cold start"), Config{.clock = clock.clock()});
  ASSERT_TRUE(timing.ok());
  EXPECT_GE(of_phase(*timing, 0), 10) << "two blocks of five that agree";
  EXPECT_EQ(of_phase(*timing, 1), 10);
  EXPECT_EQ(of_phase(*timing, 2), timing->samples);
  EXPECT_LT(timing->seconds.max, 6e-3);
  EXPECT_GT(timing->raw.front().seconds, 0.2);
}

TEST(Runner, WarmUpLastsAsLongAsAsked) {
  FakeClock clock;
  const auto timing = time(FakeSubject{.clock = &clock, .call_seconds = 1e-3}.subject("s"),
                           Config{.warmup_seconds = 0.5, .clock = clock.clock()});
  ASSERT_TRUE(timing.ok());
  double seconds = 0;
  for (const Sample& sample : timing->raw) seconds += sample.phase == 0 ? sample.seconds : 0;
  EXPECT_NEAR(seconds, 0.5, 0.01);
}

TEST(Runner, AWarmUpThatNeverSettlesIsCappedAndFlagged) {
  FakeClock clock;
  FakeSubject fake{.clock = &clock, .call_seconds = 1e-3};
  fake.drift = [](double now) { return 1 + 20 * (now - 1000); };  // slower and slower
  const auto timing = time(fake.subject("drifts"), Config{.clock = clock.clock()});
  ASSERT_TRUE(timing.ok());
  EXPECT_TRUE(timing_has(*timing, "warmup_unsettled"));
}

TEST(Runner, CorrelatedSamplesKeepItSampling) {
  FakeClock clock;
  FakeSubject fake{.clock = &clock, .call_seconds = 1e-3};
  fake.drift = [](double now) { return 1 + 0.004 * std::sin(now * 20); };  // narrow, but slow waves
  const auto timing = time(fake.subject("waves"), Config{.clock = clock.clock()});
  ASSERT_TRUE(timing.ok());
  EXPECT_GT(timing->samples, 100) << "within 1 % at the first look already";
}

TEST(Runner, TwoClockStatesAreTwoModes) {
  FakeClock clock;
  FakeSubject fake{.clock = &clock, .call_seconds = 1e-3, .noise = 0.005};
  fake.drift = [](double now) { return std::fmod(now, 0.01) < 0.005 ? 1.0 : 1.3; };
  const auto timing = time(fake.subject("two"), Config{.clock = clock.clock()});
  ASSERT_TRUE(timing.ok());
  EXPECT_EQ(timing->modes.size(), 2u);
  EXPECT_TRUE(timing_has(*timing, "multimodal"));
  EXPECT_EQ(timing->quality, Quality::unstable);
}

TEST(Runner, RareSlowSamplesAreKeptAndCalledAHeavyTail) {
  FakeClock clock;
  auto random = std::make_shared<stats::Random>(3);
  const Subject subject{.name = "faults", .run = [&clock, random](std::int64_t count) -> Status {
                          const double factor = random->uniform() < 0.04 ? 5 : 1 + 0.01 * random->uniform();
                          clock.advance(static_cast<double>(count) * 1e-3 * factor);
                          return {};
                        }};
  const auto timing = time(subject, Config{.clock = clock.clock()});
  ASSERT_TRUE(timing.ok());
  EXPECT_TRUE(timing_has(*timing, "heavy_tail"));
  EXPECT_GT(timing->seconds.max, 4e-3);
  EXPECT_EQ(timing->quality, Quality::stable);
}

TEST(Runner, AStandingClockIsAnErrorAndNotAZero) {
  FakeClock clock;
  const Subject subject{.name = "frozen", .run = [](std::int64_t) -> Status { return {}; }};
  for (const double warmup_seconds : {0.0, 0.1}) {
    const auto timing = time(subject, Config{.warmup_seconds = warmup_seconds, .clock = clock.clock()});
    ASSERT_FALSE(timing.ok());
    EXPECT_EQ(timing.error().code, Code::environment);
  }
}

TEST(Runner, RawSamplesCanBeLeftOut) {
  FakeClock clock;
  const auto timing =
      time(FakeSubject{.clock = &clock}.subject("s"), Config{.keep_raw = false, .clock = clock.clock()});
  ASSERT_TRUE(timing.ok());
  EXPECT_TRUE(timing->raw.empty());
  EXPECT_EQ(timing->samples, 100);
}

TEST(Runner, ProgressComesAtMostTenTimesASecond) {
  FakeClock clock;
  std::vector<double> sampling;
  std::vector<std::string> stages;
  Config config{.clock = clock.clock()};
  config.progress = [&](const Progress& progress) {
    EXPECT_EQ(progress.row, "s");
    if (progress.stage == "sampling") sampling.push_back(clock.now_seconds());
    if (stages.empty() || stages.back() != progress.stage) stages.emplace_back(progress.stage);
  };
  ASSERT_TRUE(time(FakeSubject{.clock = &clock, .noise = 0.2}.subject("s"), config).ok());
  EXPECT_EQ(stages, (std::vector<std::string>{"warm-up", "pilot", "sampling"}));
  ASSERT_GT(sampling.size(), 3u);
  for (std::size_t i = 1; i < sampling.size(); ++i) EXPECT_GE(sampling[i] - sampling[i - 1], 0.1 - 1e-9);
}

TEST(Runner, IntervalsCoverTheMedianOfSkewedNoise) {
  constexpr int kTrials = 400;
  int covered = 0;
  for (int trial = 0; trial < kTrials; ++trial) {
    FakeClock clock;
    auto random = std::make_shared<stats::Random>(1000 + trial);
    const Subject subject{.name = "skewed", .run = [&clock, random](std::int64_t count) -> Status {
                            const double exponential = -std::log(random->uniform());
                            clock.advance(static_cast<double>(count) * 1e-3 * (1 + 0.1 * exponential));
                            return {};
                          }};
    const auto timing = time(subject, Config{.keep_raw = false, .clock = clock.clock()});
    ASSERT_TRUE(timing.ok());
    const double truth = 1e-3 * (1 + 0.1 * std::log(2.0));
    covered += timing->seconds.ci_low <= truth && truth <= timing->seconds.ci_high;
  }
  EXPECT_GE(covered, kTrials * (0.95 - 3 * std::sqrt(0.95 * 0.05 / kTrials)));
}

TEST(Runner, TheSteadyClockMovesForwardAndKnowsItself) {
  const Clock& clock = steady_clock();
  EXPECT_GT(clock.resolution_seconds, 0);
  EXPECT_GT(clock.read_seconds, 0);
  const double before = clock.now();
  EXPECT_GE(clock.now(), before);
}

}  // namespace
}  // namespace fulcrum::measure
