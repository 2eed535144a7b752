// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// What the pilot decides, without any clock.
#include "measure/plan.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace fulcrum::measure {
namespace {

constexpr double kRead = 25e-9;
const Clock kClock{.now = nullptr, .resolution_seconds = 20e-9, .read_seconds = kRead};

TEST(Plan, CallsThatDwarfTheClockAreTimedOneByOne) {
  EXPECT_EQ(calls_per_sample(1000 * kRead, kClock, 1e-3), 1);
  EXPECT_EQ(calls_per_sample(1.0, kClock, 1e-3), 1);
  EXPECT_GT(calls_per_sample(999 * kRead, kClock, 1e-3), 1);
}

TEST(Plan, ABatchLastsTheMinimumAndAThousandClockSteps) {
  EXPECT_EQ(calls_per_sample(1e-6, kClock, 1e-3), 1000);
  EXPECT_EQ(calls_per_sample(30e-9, kClock, 1e-3), 33334);
  const Clock coarse{.now = nullptr, .resolution_seconds = 1e-5, .read_seconds = kRead};
  EXPECT_EQ(calls_per_sample(1e-6, coarse, 1e-3), 10000);
}

TEST(Plan, ABatchIsTimedInTenSlicesWhereTheClockIsFineEnough) {
  const Slices fine = slices_of_batch(1000, 1e-6, kClock);
  EXPECT_EQ(fine.slices, 10);
  EXPECT_EQ(fine.calls, 100);
  const Slices uneven = slices_of_batch(63, 16e-6, kClock);
  EXPECT_GE(uneven.all_calls(), 63);
  EXPECT_LE(uneven.all_calls(), 70);
  const Clock coarse{.now = nullptr, .resolution_seconds = 2e-7, .read_seconds = kRead};
  EXPECT_EQ(slices_of_batch(1000, 1e-6, coarse).slices, 5);
  const Clock coarser{.now = nullptr, .resolution_seconds = 5e-7, .read_seconds = kRead};
  EXPECT_EQ(slices_of_batch(1000, 1e-6, coarser).slices, 1);
  EXPECT_EQ(slices_of_batch(1000, 1e-6, coarser).calls, 1000);
  EXPECT_EQ(slices_of_batch(1, 1e-3, kClock).all_calls(), 1);
}

TEST(Plan, AnInterruptedSliceCountsAsAFifthLongerThanTheOneInTheMiddle) {
  const double quiet[] = {1, 1.05, 0.95, 1, 1};
  EXPECT_NEAR(bounded_seconds(quiet), 5, 1e-12);
  const double disturbed[] = {1, 7, 1, 1, 1};
  EXPECT_NEAR(bounded_seconds(disturbed), 5.2, 1e-12);
  const double alone[] = {3};
  EXPECT_NEAR(bounded_seconds(alone), 3, 1e-12);
}

TEST(Plan, TheCostOfASampleDecidesHowManyAreNeeded) {
  EXPECT_EQ(plan_samples(0.025, 1e9, 0).n_min, 100);
  EXPECT_EQ(plan_samples(0.026, 1e9, 0).n_min, 30);
  EXPECT_FALSE(plan_samples(0.25, 1e9, 0).low_n);
  const SamplePlan dear = plan_samples(0.26, 1e9, 0);
  EXPECT_EQ(dear.n_min, 10);
  EXPECT_TRUE(dear.low_n);
  EXPECT_EQ(plan_samples(1.0, 1e9, 50).n_min, 50);
}

TEST(Plan, TheScheduleEndsWhereTheBudgetDoes) {
  const SamplePlan free = plan_samples(1e-3, 1e9, 0);
  EXPECT_FALSE(free.capped_by_time);
  EXPECT_EQ(free.looks.size(), 10u);
  EXPECT_EQ(free.looks.back().n, 3844);
  const SamplePlan tight = plan_samples(1e-3, 1.0, 0);
  EXPECT_TRUE(tight.capped_by_time);
  EXPECT_EQ(tight.looks.back().n, 900);
  const SamplePlan broke = plan_samples(1.0, -3, 0);
  EXPECT_EQ(broke.looks.back().n, 1) << "one sample is taken whatever it costs";
}

TEST(Plan, TheLevelsOfAllLooksTogetherAreFivePercent) {
  for (const double left : {0.001, 0.05, 0.2, 3.0, 1e6}) {
    double alpha = 0;
    for (const stats::Look& look : plan_samples(1e-3, left, 0).looks) alpha += look.alpha;
    EXPECT_NEAR(alpha, 0.05, 1e-12) << left;
    alpha = 0;
    for (const stats::Look& look : plan_rounds(1e-3, left).looks) alpha += look.alpha;
    EXPECT_NEAR(alpha, 0.05, 1e-12) << left;
  }
}

TEST(Plan, ShortCallsMakeRoundsOfManyShortSlices) {
  const RoundPlan plan = plan_round(2e-6, 1e-6, kClock, 1e-3, false);
  EXPECT_EQ(plan.calls, 50) << "0.1 ms of the slower side";
  EXPECT_EQ(plan.slices, 10);
  EXPECT_FALSE(plan.prime);
}

TEST(Plan, TheFasterSideIsLongEnoughForTheClock) {
  const RoundPlan plan = plan_round(1e-8, 1e-6, kClock, 1e-3, false);
  EXPECT_GE(static_cast<double>(plan.calls) * 1e-8, 1000 * kClock.resolution_seconds);
  const RoundPlan extreme = plan_round(1e-9, 1e-3, kClock, 1e-3, false);
  EXPECT_EQ(extreme.calls, 20) << "but the slower side does not run for ever";
}

TEST(Plan, LongCallsMakeShortRounds) {
  EXPECT_EQ(plan_round(1e-3, 1e-3, kClock, 1e-3, false).slices, 6);
  EXPECT_EQ(plan_round(0.01, 0.01, kClock, 1e-3, false).slices, 2);
  const RoundPlan slow = plan_round(0.1, 1.0, kClock, 1e-3, false);
  EXPECT_EQ(slow.slices, 1);
  EXPECT_EQ(slow.calls, 1);
}

TEST(Plan, SingleCallsAreNotMeasuredInTheOtherSidesCaches) {
  EXPECT_TRUE(plan_round(1e-3, 1e-3, kClock, 1e-3, false).prime);
  EXPECT_FALSE(plan_round(1e-3, 1e-3, kClock, 1e-3, true).prime) << "a reset has made the state it wants";
  EXPECT_EQ(plan_round(1e-6, 1e-6, kClock, 1e-3, true).calls, 1);
}

TEST(Plan, RoundsAreMadeOfAbbaAndBaabInNoFixedOrder) {
  const std::vector<bool> abba{true, false, false, true}, baab{false, true, true, false};
  int groups = 0, abba_groups = 0, starts_with_a = 0;
  for (std::int64_t round = 0; round < 200; ++round) {
    const std::vector<bool> sides = order_of_round(round, 10);
    ASSERT_EQ(sides.size(), 20u);
    EXPECT_EQ(std::count(sides.begin(), sides.end(), true), 10);
    starts_with_a += sides.front();
    for (std::size_t i = 0; i < sides.size(); i += 4, ++groups) {
      const std::vector<bool> group(sides.begin() + static_cast<std::ptrdiff_t>(i),
                                    sides.begin() + static_cast<std::ptrdiff_t>(i) + 4);
      EXPECT_TRUE(group == abba || group == baab);
      abba_groups += group == abba;
    }
  }
  EXPECT_NEAR(abba_groups, groups / 2, 0.1 * groups);
  EXPECT_NEAR(starts_with_a, 100, 30);
}

TEST(Plan, RoundsOfOneSliceAlternate) {
  EXPECT_EQ(order_of_round(0, 1), (std::vector<bool>{true, false}));
  EXPECT_EQ(order_of_round(1, 1), (std::vector<bool>{false, true}));
  EXPECT_EQ(order_of_round(2, 1), (std::vector<bool>{true, false}));
}

}  // namespace
}  // namespace fulcrum::measure
