// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Paired comparison on a clock that only the test moves.
#include <gtest/gtest.h>

#include <algorithm>
#include <stdexcept>

#include "support/fake_clock.h"

namespace fulcrum::measure {
namespace {

using testing::FakeClock;
using testing::FakeSubject;

Result<Comparison> compare_fakes(FakeClock& clock, FakeSubject a, FakeSubject b, Config config) {
  a.clock = b.clock = &clock;
  config.clock = clock.clock();
  return compare(a.subject("a"), b.subject("b"), config);
}

TEST(Compare, SpeedupIsTheTimeOfBOverTheTimeOfA) {
  FakeClock clock;
  const auto result = compare_fakes(clock, {.call_seconds = 1e-6, .noise = 0.01, .seed = 1},
                                    {.call_seconds = 3e-6, .noise = 0.01, .seed = 2}, {});
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result->a, "a");
  EXPECT_EQ(result->b, "b");
  EXPECT_NEAR(result->speedup, 3, 0.05);
  EXPECT_LT(result->ci_low, 3.0);
  EXPECT_GT(result->ci_high, 3.0);
  EXPECT_EQ(result->verdict, Verdict::faster);
  EXPECT_NEAR(result->seconds_saved, 2e-6, 1e-7);
  EXPECT_EQ(result->share_a_faster, 1);
  EXPECT_EQ(result->stop_reason, StopReason::precision);
  EXPECT_EQ(result->rounds, static_cast<std::int64_t>(result->seconds_a.size()));
  EXPECT_EQ(result->seconds_a.size(), result->seconds_b.size());
  EXPECT_NEAR(result->seconds_a.front(), 1e-6, 1e-7) << "per call";
}

TEST(Compare, BothSidesRunTheSameNumberOfCallsInterleaved) {
  FakeClock clock;
  std::string order;
  std::vector<std::int64_t> counts;
  const auto side = [&](char name, double call_seconds) {
    return Subject{.name = std::string(1, name),
                   .run = [&, name, call_seconds](std::int64_t count) -> Status {
                     order += name;
                     counts.push_back(count);
                     clock.advance(static_cast<double>(count) * call_seconds);
                     return {};
                   }};
  };
  const auto result = compare(side('a', 1e-6), side('b', 2e-6), Config{.clock = clock.clock()});
  ASSERT_TRUE(result.ok());
  const std::size_t slices = 20 * static_cast<std::size_t>(result->rounds);
  ASSERT_GE(order.size(), slices);
  const std::string rounds = order.substr(order.size() - slices);
  for (std::size_t i = 0; i < rounds.size(); i += 4) {
    const std::string group = rounds.substr(i, 4);
    EXPECT_TRUE(group == "abba" || group == "baab") << group;
  }
  const auto first = counts.end() - static_cast<std::ptrdiff_t>(slices);
  EXPECT_EQ(std::count(first, counts.end(), 50), static_cast<std::ptrdiff_t>(slices));
}

// As two runtimes do whose idle threads spin on each other's cores: calls take three times as long until those sleep.
TEST(Compare, ThreadsOfTheOtherSideThatStillSpinDoNotCount) {
  for (const int threads : {1, 2}) {
    FakeClock clock;
    char last = 0;
    double changed = 0;
    const auto side = [&](char name, double call_seconds, double spin_seconds) {
      return Subject{.name = std::string(1, name),
                     .run = [&, name, call_seconds, spin_seconds](std::int64_t count) -> Status {
                       if (last != name) changed = clock.now_seconds();
                       last = name;
                       for (std::int64_t i = 0; i < count; ++i)
                         clock.advance(call_seconds * (clock.now_seconds() < changed + spin_seconds ? 3 : 1));
                       return {};
                     },
                     .threads = threads};
    };
    // The threads of b spin for longer than those of a.
    const auto result =
        compare(side('a', 2e-6, 400e-6), side('b', 3e-6, 50e-6), Config{.clock = clock.clock()});
    ASSERT_TRUE(result.ok());
    if (threads > 1) {
      EXPECT_NEAR(result->speedup, 1.5, 0.01);
    } else {
      EXPECT_LT(result->speedup, 1) << "one thread each: nobody spins, and nobody waits for it";
    }
  }
}

TEST(Compare, IdenticalSubjectsAreTheSame) {
  FakeClock clock;
  const auto result = compare_fakes(clock, {.call_seconds = 1e-6, .noise = 0.01, .seed = 1},
                                    {.call_seconds = 1e-6, .noise = 0.01, .seed = 2}, {});
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result->verdict, Verdict::same);
  EXPECT_EQ(result->stop_reason, StopReason::precision);
}

TEST(Compare, AClearedHorizonIsADecision) {
  FakeClock clock;
  const auto result =
      compare_fakes(clock, {.call_seconds = 1e-6, .noise = 0.3, .seed = 1},
                    {.call_seconds = 4e-6, .noise = 0.3, .seed = 2}, {.horizons = {1.0, 1.5}});
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result->stop_reason, StopReason::decision);
  EXPECT_GT(result->ci_low, 1.5);
  EXPECT_EQ(result->rounds, 12) << "big effects stop at the first look";
}

TEST(Compare, OneHorizonInsideTheIntervalIsNoDecision) {
  FakeClock clock;
  const auto result = compare_fakes(clock, {.call_seconds = 1e-6, .noise = 0.3, .seed = 1},
                                    {.call_seconds = 1.5e-6, .noise = 0.3, .seed = 2},
                                    {.precision = 1e-9, .horizons = {1.0, 1.5}});
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result->stop_reason, StopReason::budget);
  EXPECT_EQ(result->stop_detail, "planned_looks");
  EXPECT_EQ(result->rounds, 200);
}

TEST(Compare, TheBudgetOfTheCaseEndsSlowComparisons) {
  FakeClock clock;
  const auto result = compare_fakes(clock, {.call_seconds = 0.2, .noise = 0.3, .seed = 1},
                                    {.call_seconds = 0.2, .noise = 0.3, .seed = 2}, {.budget_seconds = 10});
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result->stop_reason, StopReason::budget);
  EXPECT_EQ(result->stop_detail, "case_time");
  EXPECT_LT(clock.now_seconds(), 1000 + 10.0);
}

TEST(Compare, TooFewRoundsAreUnresolvedAndSaySo) {
  FakeClock clock;
  const auto result = compare_fakes(clock, {.call_seconds = 1}, {.call_seconds = 2}, {.budget_seconds = 10});
  ASSERT_TRUE(result.ok());
  EXPECT_LT(result->rounds, 6);
  EXPECT_EQ(result->verdict, Verdict::unresolved);
  EXPECT_LT(result->level, 0.95);
  EXPECT_FALSE(result->reason.empty());
}

TEST(Compare, AnInterruptKeepsTheRoundsDone) {
  FakeClock clock;
  Config config{.precision = 1e-9};
  config.interrupted = [&] { return clock.now_seconds() > 1000.4; };
  const auto result = compare_fakes(clock, {.call_seconds = 1e-6, .noise = 0.1, .seed = 1},
                                    {.call_seconds = 1e-6, .noise = 0.1, .seed = 2}, config);
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result->stop_reason, StopReason::interrupted);
  EXPECT_GT(result->rounds, 12);
  EXPECT_LT(result->rounds, 200);
}

TEST(Compare, AnInterruptBeforeTheFirstRoundIsAnError) {
  FakeClock clock;
  const auto result = compare_fakes(clock, {}, {}, {.interrupted = [] { return true; }});
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code, Code::interrupted);
}

TEST(Compare, AnExceptionOfEitherSideIsAnErrorThatNamesIt) {
  FakeClock clock;
  int calls = 0;
  const Subject good = FakeSubject{.clock = &clock, .call_seconds = 1e-3}.subject("good");
  const Subject bad{.name = "bad", .run = [&](std::int64_t) -> Status {
                      clock.advance(1e-3);
                      if (++calls > 100) throw std::runtime_error("no more");
                      return {};
                    }};
  const auto result = compare(good, bad, Config{.precision = 1e-9, .clock = clock.clock()});
  ASSERT_FALSE(result.ok());
  EXPECT_NE(result.error().message.find("bad"), std::string::npos);
}

TEST(Compare, AResetRunsBeforeEverySliceOutsideItsTime) {
  FakeClock clock;
  Subject a = FakeSubject{.clock = &clock, .call_seconds = 1e-6}.subject("a");
  Subject b = FakeSubject{.clock = &clock, .call_seconds = 2e-6}.subject("b");
  a.reset = b.reset = [&]() -> Status {
    clock.advance(1e-3);
    return {};
  };
  const auto result = compare(a, b, Config{.clock = clock.clock()});
  ASSERT_TRUE(result.ok());
  EXPECT_NEAR(result->speedup, 2, 1e-3);
  EXPECT_NEAR(result->seconds_a.front(), 1e-6, 1e-9);
}

// A clock that changes speed slowly, as turbo and neighbours do; both sides see it.
std::function<double(double)> shared_drift(int trial) {
  return [trial](double now) { return 1 + 0.05 * std::sin(7 * now + trial) + 0.05 * std::sin(31 * now); };
}

struct Outcome {
  int alarms = 0, found = 0, covered = 0;
};
Outcome compare_many(int trials, double effect) {
  Outcome out;
  for (int trial = 0; trial < trials; ++trial) {
    FakeClock clock;
    const auto seed = static_cast<std::uint64_t>(trial);
    const auto result = compare_fakes(
        clock, {.call_seconds = 1e-6, .noise = 0.02, .seed = 2 * seed + 1, .drift = shared_drift(trial)},
        {.call_seconds = 1e-6 * (1 + effect),
         .noise = 0.02,
         .seed = 2 * seed + 2,
         .drift = shared_drift(trial)},
        {.precision = 0.005, .horizons = {1.0}});
    EXPECT_TRUE(result.ok());
    const bool excluded = stats::excludes_one({result->ci_low, result->ci_high});
    out.alarms += excluded;
    out.found += excluded && result->speedup > 1;
    out.covered += result->ci_low <= 1 + effect && 1 + effect <= result->ci_high;
  }
  return out;
}

TEST(Compare, DriftDoesNotMakeIdenticalCodeDifferent) {
  const Outcome out = compare_many(300, 0);
  EXPECT_LE(out.alarms, 300 * 0.08);
  EXPECT_GE(out.covered, 300 * (0.95 - 3 * std::sqrt(0.95 * 0.05 / 300)));
}

TEST(Compare, ASlowDownOfTwoPercentIsFoundAndCoveredUnderDrift) {
  const Outcome out = compare_many(100, 0.02);
  EXPECT_GE(out.found, 95);
  EXPECT_GE(out.covered, 100 * (0.95 - 3 * std::sqrt(0.95 * 0.05 / 100)));
}

// The timer tick of a kernel: 12 us every 250 us here, so that a fixed ABBA of 0.0625 ms would always hit one
// side.
TEST(Compare, SomethingPeriodicDoesNotStayInStepWithOneSide) {
  FakeClock clock;
  double next_tick = 1000;
  const auto side = [&](const char* name) {
    return Subject{.name = name, .run = [&](std::int64_t count) -> Status {
                     clock.advance(static_cast<double>(count) * 1e-6);
                     for (; next_tick < clock.now_seconds(); next_tick += 250e-6) clock.advance(12e-6);
                     return {};
                   }};
  };
  const auto result = compare(
      side("a"), side("b"),
      Config{.precision = 0.005, .horizons = {1.0}, .min_batch_seconds = 0.625e-3, .clock = clock.clock()});
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result->verdict, Verdict::same);
  EXPECT_EQ(result->stop_reason, StopReason::precision);
}

}  // namespace
}  // namespace fulcrum::measure
