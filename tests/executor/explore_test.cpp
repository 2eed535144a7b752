// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// How calls teach: which are timed, what their times stand for, and where they lead. No clock, no kernels.
#include "executor/explore.h"

#include <gtest/gtest.h>

#include "executor/named_ops.h"

namespace fulcrum::executor {
namespace {

/// Two ways of relu on the CPU and one on a device, at fixed predictions.
class ThreeWays final : public OpTable {
 public:
  explicit ThreeWays(std::array<float, 3> predicted) : predicted_(predicted) {
    table_.name = "made_up";
    table_.kind = "cpu";
    kernel_.op = "relu";
    kernel_.variant = "default";
    const backends::Kernel kernel(&backend_, &kernel_);
    candidates_ = {{kernel, Place::host, 1}, {kernel, Place::host, 2}, {kernel, Place::device, 1}};
  }
  const ops::Op& op() const override { return op_named("relu"); }
  std::span<const Candidate> candidates() const override { return candidates_; }
  Choice choose(const Args&, const Traffic& traffic, Mask allowed, const Tracker& tracker) const override {
    Choice choice{.candidate = 255, .runner_up = 255, .tier = Tier::seen};
    for (std::uint8_t c = 0; c < candidates_.size(); ++c) {
      if (!(allowed >> c & 1)) continue;
      const Tracker::Cell cell{0, c, traffic.residency(), 0, candidates_[c].place};
      const float seconds = predicted_[c] * std::exp(tracker.correction(cell));
      if (choice.candidate == 255 || seconds < choice.seconds) {
        choice.runner_up = choice.candidate;
        choice.runner_seconds = choice.seconds;
        choice.candidate = c;
        choice.seconds = seconds;
      } else if (choice.runner_up == 255 || seconds < choice.runner_seconds) {
        choice.runner_up = c;
        choice.runner_seconds = seconds;
      }
    }
    if (choice.runner_up == 255) choice.runner_up = choice.candidate;
    return choice;
  }
  double seconds(const Args&, const Traffic&, std::uint8_t c) const override {
    return static_cast<double>(predicted_[c]);
  }
  std::vector<Price> prices(const Args&, const Traffic&) const override { return {}; }
  Guard guard() const override { return {}; }
  void renew() const override { ++renewed; }
  mutable int renewed = 0;

 private:
  std::array<float, 3> predicted_;
  fulcrum_backend table_{};
  backends::Backend backend_{&table_};
  fulcrum_kernel kernel_{};
  std::vector<Candidate> candidates_;
};

TEST(Explore, ShortCallsAreTimedNowAndThenAndStandForTheOthers) {
  const ThreeWays table({1e-6F, 2e-6F, 15e-6F});
  Choice choice{.candidate = 0, .runner_up = 1, .tier = Tier::seen, .seconds = 1e-6F};
  int timed = 0, stood_for = 0;
  for (int i = 0; i < 640; ++i) {
    const int calls = stands_for(table, choice);
    timed += calls > 0;
    stood_for += calls;
  }
  EXPECT_EQ(timed, 10);
  EXPECT_EQ(stood_for, 640);
  choice.seconds = 30e-6F;
  EXPECT_EQ(stands_for(table, choice), 1) << "a long one";
  choice.seconds = 1e-6F;
  choice.tier = Tier::model;
  EXPECT_EQ(stands_for(table, choice), 1) << "one that was not seen before";
  choice.tier = Tier::seen;
  choice.candidate = 2;
  EXPECT_EQ(stands_for(table, choice), 1) << "on the device";
}

TEST(Explore, TheCreditCountsCallsThatWereNotTimed) {
  const ThreeWays table({1e-6F, 2e-6F, 15e-6F});
  const Args args{};
  const Traffic traffic;
  const Asked asked{table, 0, args, traffic, 0b111};
  const Choice choice{.candidate = 0, .runner_up = 1, .tier = Tier::seen, .seconds = 1e-6F};
  Tracker tracker;
  for (int i = 0; i < 100; ++i) learn(asked, choice, 1e-6, 64, tracker);
  // 1 % of 6400 calls of a microsecond; the time of the last ones may not have been handed on.
  EXPECT_TRUE(tracker.explore(40e-6, 1.5));
  EXPECT_FALSE(tracker.explore(25e-6, 1.5));
  // One that was held up for long says little about the others.
  Tracker other;
  for (int i = 0; i < 100; ++i) learn(asked, choice, 1e-3, 64, other);
  EXPECT_FALSE(other.explore(1.3e-3, 1.5))
      << "100 ms and 6300 calls of two microseconds, not 6400 of a millisecond";
}

TEST(Explore, CallsFindTheWayThatTheTableDidNotKnow) {
  const ThreeWays table({1e-6F, 1.1e-6F, 15e-6F});
  const Args args{};
  const Traffic traffic;
  const Asked asked{table, 0, args, traffic, 0b111};
  const std::vector<std::vector<double>> rounds{{1.6e-6, 1.65e-6, 1.55e-6}, {1.1e-6, 1.12e-6}, {15e-6}};
  Tracker tracker;
  EXPECT_EQ(after_calls(asked, rounds, 1, tracker).choice.candidate, 0) << "at first";
  const Learned learned = after_calls(asked, rounds, 4000, tracker);
  EXPECT_EQ(learned.choice.candidate, 1);
  EXPECT_LT(learned.explored_seconds, 0.011 * 1.65e-6) << "within the credit";
  EXPECT_GT(table.renewed, 0);
}

// Trials cost next to nothing here, so that every timed call could be one, and the way that is taken would never be timed.
TEST(Explore, AWayThatIsSlowerThanPredictedIsLeftThoughTheOtherIsAsPredicted) {
  const ThreeWays table({10e-6F, 10.2e-6F, 15e-6F});
  const Args args{};
  const Traffic traffic;
  const Asked asked{table, 0, args, traffic, 0b011};
  Tracker tracker;
  const std::vector<std::vector<double>> rounds{{18e-6}, {10.2e-6}, {}};
  EXPECT_EQ(after_calls(asked, rounds, 1000, tracker).choice.candidate, 1);
}

TEST(Explore, OneVisitComesAfterTheOther) {
  const ThreeWays table({30e-6F, 33e-6F, 99e-6F});
  const Args args{};
  const Traffic traffic;
  const Asked asked{table, 0, args, traffic, 0b011};
  // The first way is as predicted in one visit and slow in the next; the other is as predicted in both.
  const std::vector<std::vector<double>> rounds{
      {30e-6, 30e-6, 90e-6, 90e-6}, {33e-6, 33e-6, 33e-6, 33e-6}, {}};
  Tracker after_both, after_one;
  EXPECT_EQ(after_calls(asked, rounds, 2000, after_both, 2).choice.candidate, 1);
  const std::vector<std::vector<double>> first{{30e-6, 30e-6}, {33e-6, 33e-6}, {}};
  EXPECT_EQ(after_calls(asked, first, 1000, after_one, 2).choice.candidate, 0) << "so far it was the best";
}

TEST(Explore, WaysWithoutTimesAreNotTried) {
  const ThreeWays table({1e-6F, 1.1e-6F, 2e-6F});
  const Args args{};
  const Traffic traffic;
  const Asked asked{table, 0, args, traffic, 0b111};
  Tracker tracker;
  const Learned learned = after_calls(asked, std::vector<std::vector<double>>{{2e-6}, {}, {}}, 4000, tracker);
  EXPECT_EQ(learned.explored_seconds, 0);
  EXPECT_NE(learned.choice.candidate, 255);
}

}  // namespace
}  // namespace fulcrum::executor
