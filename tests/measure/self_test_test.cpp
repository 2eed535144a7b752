// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// The self-test of the harness, run on fake kernels: it must pass on honest ones and fail on treacherous
// ones.
#include "measure/self_test.h"

#include <gtest/gtest.h>

#include "support/fake_clock.h"

namespace fulcrum::measure {
namespace {

using testing::FakeClock;
using testing::FakeSubject;

SelfTestConfig small(const FakeClock& clock) {
  return SelfTestConfig{.comparisons = 40,
                        .effects = {0.01, 0.02, 0.05},
                        .comparisons_per_effect = 20,
                        .budget_seconds = 1e6,
                        .clock = clock.clock()};
}

TEST(SelfTest, PassesOnAnHonestKernel) {
  FakeClock clock(20e-9, 100e-9);
  const auto result = self_test_of(
      FakeSubject{.clock = &clock, .call_seconds = 2e-6, .noise = 0.01}.subject("k"), small(clock));
  ASSERT_TRUE(result.ok());
  EXPECT_TRUE(result->passed) << (result->failures.empty() ? "" : result->failures.front());
  EXPECT_EQ(result->comparisons, 40);
  ASSERT_EQ(result->injected.size(), 3u);
  EXPECT_EQ(result->injected[1].effect, 0.02);
  EXPECT_GE(result->injected[1].found, 19);
  EXPECT_LE(result->minimum_detectable, 0.02);
  EXPECT_GT(result->minimum_detectable, 0);
  EXPECT_GE(result->coverage, 0.9);
  EXPECT_EQ(result->clock_resolution_seconds, 20e-9);
  EXPECT_EQ(result->clock_read_seconds, 100e-9);
}

TEST(SelfTest, FailsWhereNoiseHidesTwoPercent) {
  FakeClock clock(20e-9, 100e-9);
  const auto result =
      self_test_of(FakeSubject{.clock = &clock, .call_seconds = 2e-6, .noise = 1}.subject("k"), small(clock));
  ASSERT_TRUE(result.ok());
  EXPECT_FALSE(result->passed);
  ASSERT_FALSE(result->failures.empty());
  EXPECT_NE(result->failures.front().find("2 %"), std::string::npos) << result->failures.front();
}

TEST(SelfTest, FailsWhenTimeRunsOut) {
  FakeClock clock(20e-9, 100e-9);
  SelfTestConfig config = small(clock);
  config.budget_seconds = 1;
  const auto result =
      self_test_of(FakeSubject{.clock = &clock, .call_seconds = 2e-6, .noise = 0.01}.subject("k"), config);
  ASSERT_TRUE(result.ok());
  EXPECT_FALSE(result->passed);
  EXPECT_NE(result->failures.front().find("out of time"), std::string::npos);
  EXPECT_LT(result->wall_seconds, 2);
}

TEST(SelfTest, AnInterruptLeavesNoVerdict) {
  FakeClock clock(20e-9, 100e-9);
  SelfTestConfig config = small(clock);
  config.interrupted = [&] { return clock.now_seconds() > 1000.5; };
  const auto result =
      self_test_of(FakeSubject{.clock = &clock, .call_seconds = 2e-6, .noise = 0.01}.subject("k"), config);
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code, Code::interrupted);
}

TEST(SelfTest, TellsWhereItIs) {
  FakeClock clock(20e-9, 100e-9);
  SelfTestConfig config = small(clock);
  config.comparisons = 2;
  config.comparisons_per_effect = 1;
  std::vector<std::string> stages;
  config.progress = [&](std::string_view stage, int done, int total) {
    EXPECT_LT(done, total);
    if (stages.empty() || stages.back() != stage) stages.emplace_back(stage);
  };
  ASSERT_TRUE(self_test_of(FakeSubject{.clock = &clock, .call_seconds = 2e-6}.subject("k"), config).ok());
  EXPECT_EQ(stages, (std::vector<std::string>{"A/A", "1 % slower", "2 % slower", "5 % slower"}));
}

TEST(SelfTest, TheInjectedSpinIsWhatItSays) {
  FakeClock clock(20e-9, 10e-9);
  EXPECT_NEAR(read_cost(*clock.clock()), 10e-9, 1e-12);
  Injection injection{.read_seconds = 10e-9}, none{.read_seconds = 10e-9};
  const Subject kernel = FakeSubject{.clock = &clock, .call_seconds = 1e-6}.subject("k");
  const Subject slower = slowed(kernel, 0.05, *clock.clock(), &injection);
  const Subject plain = slowed(kernel, 0, *clock.clock(), &none);
  const double start = clock.now_seconds();
  ASSERT_TRUE(plain.run(100).ok());
  const double middle = clock.now_seconds();
  ASSERT_TRUE(slower.run(100).ok());
  const double end = clock.now_seconds();
  ASSERT_EQ(injection.ratios.size(), 1u);
  EXPECT_NEAR(none.ratios[0], 1, 1e-9);
  EXPECT_NEAR(injection.ratios[0], 1.05, 1e-3);
  const double outside = 10e-9;  // the runner's second read; the first is at `start`
  EXPECT_NEAR((end - middle + outside) / (middle - start + outside), injection.ratios[0], 1e-5);
}

TEST(SelfTest, OnlyTheLastBatchSizeTellsWhatWasInjected) {
  FakeClock clock(20e-9, 10e-9);
  Injection injection{.read_seconds = 10e-9};
  const Subject slower = slowed(FakeSubject{.clock = &clock, .call_seconds = 1e-6}.subject("k"), 0.05,
                                *clock.clock(), &injection);
  for (const std::int64_t count : {1, 10, 100, 100}) ASSERT_TRUE(slower.run(count).ok());
  EXPECT_EQ(injection.ratios.size(), 2u);
}

}  // namespace
}  // namespace fulcrum::measure
