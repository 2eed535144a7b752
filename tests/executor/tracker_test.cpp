// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// What the tracker learns from times that tests make up: spikes, drift, recovery, labels, credit, many threads.
#include "executor/tracker.h"

#include <gtest/gtest.h>

#include <cmath>
#include <thread>

#include "executor/tracker_gather.h"

namespace fulcrum::executor {
namespace {

constexpr Tracker::Cell kDevice{
    .op = 3, .candidate = 2, .residency = 0, .size_class = 20, .place = Place::device};
constexpr Tracker::Cell kHost{
    .op = 3, .candidate = 0, .residency = 0, .size_class = 20, .place = Place::host};

void repeat(Tracker& tracker, const Tracker::Cell& cell, int times, double predicted, double measured) {
  for (int i = 0; i < times; ++i) tracker.record(cell, predicted, measured);
}

TEST(Tracker, KnowsNothingBeforeTheFirstSample) {
  const Tracker tracker;
  EXPECT_EQ(tracker.correction(kDevice), 0);
  EXPECT_EQ(tracker.doubt(kDevice), 0);
  EXPECT_EQ(tracker.samples(kDevice), 0);
  EXPECT_EQ(tracker.last_seconds(kDevice), (std::array<double, 3>{}));
}

TEST(Tracker, LearnsAFactorThatStays) {
  Tracker tracker;
  repeat(tracker, kDevice, 12, 1e-3, 2e-3);
  EXPECT_NEAR(tracker.correction(kDevice), std::log(2.0), 0.01);
  EXPECT_LT(tracker.doubt(kDevice), 0.3);
  EXPECT_EQ(tracker.samples(kDevice), 12);
}

TEST(Tracker, TellsADecisionAboutBothOfItsCandidates) {
  Tracker tracker;
  repeat(tracker, kDevice, 12, 1e-3, 2e-3);
  repeat(tracker, kHost, 12, 1e-3, 0.5e-3);
  const auto told = tracker.corrections(kDevice.op, 0, 20, kDevice.candidate, true, kHost.candidate, false);
  EXPECT_NEAR(told.first, std::log(2.0), 0.01);
  EXPECT_NEAR(told.second, std::log(0.5), 0.01);
  EXPECT_NEAR(told.first_factor, 2, 0.02);
  EXPECT_NEAR(told.second_factor, 0.5, 0.005);
  EXPECT_EQ(told.first, tracker.correction(kDevice));
  EXPECT_EQ(told.second, tracker.correction(kHost));
  EXPECT_EQ(tracker.corrections(kDevice.op, 0, 21, kDevice.candidate, true, kHost.candidate, false).first, 0);
  EXPECT_EQ(tracker.corrections(7, 0, 20, kDevice.candidate, true, kHost.candidate, false).second, 0);
}

TEST(Tracker, KeepsTheFirstTwoCallsApart) {
  Tracker tracker;
  EXPECT_FALSE(tracker.record(kDevice, 1e-3, 400e-3));
  EXPECT_FALSE(tracker.record(kDevice, 1e-3, 400e-3));
  EXPECT_EQ(tracker.correction(kDevice), 0);
  EXPECT_EQ(tracker.samples(kDevice), 2);
  EXPECT_FLOAT_EQ(static_cast<float>(tracker.last_seconds(kDevice)[0]), 400e-3F);
}

TEST(Tracker, ForgetsThreeFirstSamplesThatAreFourHundredTimesTooSlow) {
  Tracker tracker;
  for (int i = 0; i < 3; ++i) {
    tracker.record(kDevice, 1e-3, 400e-3);
    EXPECT_LT(tracker.correction(kDevice), 0.1) << "after spike " << i;
  }
  repeat(tracker, kDevice, 10, 1e-3, 1e-3);
  EXPECT_NEAR(tracker.correction(kDevice), 0, 0.02);
}

TEST(Tracker, StandsLoneSpikesInALongRun) {
  Tracker tracker;
  repeat(tracker, kDevice, 20, 1e-3, 1e-3);
  for (int i = 0; i < 200; ++i) {
    tracker.record(kDevice, 1e-3, i % 10 == 0 ? 0.3 : 1e-3);
    ASSERT_NEAR(tracker.correction(kDevice), 0, 0.05) << "after sample " << i;
  }
  EXPECT_EQ(tracker.alarms(), 0);
}

TEST(Tracker, SeesADeviceThreeTimesSlowerWithinFiveSamples) {
  Tracker tracker;
  repeat(tracker, kDevice, 50, 1e-3, 1e-3);
  bool told = false;
  for (int i = 0; i < 5; ++i) told |= tracker.record(kDevice, 1e-3, 3e-3);
  EXPECT_TRUE(told);
  EXPECT_EQ(tracker.alarms(), 1);
  EXPECT_GT(tracker.correction(kDevice), std::log(2.5));
}

TEST(Tracker, DoubtsAfterAnAlarmAndTrustsAgain) {
  Tracker tracker;
  repeat(tracker, kDevice, 50, 1e-3, 1e-3);
  const float before = tracker.doubt(kDevice);
  repeat(tracker, kDevice, 4, 1e-3, 3e-3);
  EXPECT_GT(tracker.doubt(kDevice), 10 * before);
  repeat(tracker, kDevice, 100, 1e-3, 3e-3);
  EXPECT_LT(tracker.doubt(kDevice), 2 * before);
  EXPECT_NEAR(tracker.correction(kDevice), std::log(3.0), 0.02);
}

TEST(Tracker, SeesTheRecoveryAsFast) {
  Tracker tracker;
  repeat(tracker, kDevice, 50, 1e-3, 1e-3);
  repeat(tracker, kDevice, 50, 1e-3, 3e-3);
  repeat(tracker, kDevice, 5, 1e-3, 1e-3);
  EXPECT_LT(tracker.correction(kDevice), 0.1);
}

TEST(Tracker, NoticesASlowCreep) {
  Tracker tracker;
  for (int i = 0; i < 300; ++i) tracker.record(kDevice, 1e-3, 1e-3 * std::exp(i * 0.003));
  EXPECT_NEAR(tracker.correction(kDevice), 0.9, 0.05);
}

TEST(Tracker, NeverBooksDeviceTimeAsCpuTime) {
  Tracker tracker;
  repeat(tracker, kDevice, 30, 1e-3, 50e-3);
  EXPECT_EQ(tracker.correction(kHost), 0);
  Tracker::Cell mislabelled = kDevice;
  mislabelled.place = Place::host;  // even with everything else the same
  EXPECT_EQ(tracker.correction(mislabelled), 0);
  EXPECT_EQ(tracker.samples(mislabelled), 0);
}

TEST(Tracker, KeepsSizesResidenciesCandidatesAndOpsApart) {
  Tracker tracker;
  repeat(tracker, kHost, 30, 1e-3, 5e-3);
  for (const Tracker::Cell other : {Tracker::Cell{4, 0, 0, 20, Place::host},
                                    {3, 1, 0, 20, Place::host},
                                    {3, 0, 1, 20, Place::host},
                                    {3, 0, 0, 21, Place::host}}) {
    EXPECT_EQ(tracker.correction(other), 0);
    EXPECT_EQ(tracker.samples(other), 0);
  }
}

TEST(Tracker, TakesCellsThatDoNotExistWithoutHarm) {
  Tracker tracker;
  for (const Tracker::Cell odd : {Tracker::Cell{-1, 0, 0, 0, Place::host},
                                  {100000, 0, 0, 0, Place::host},
                                  {0, 24, 0, 0, Place::host},
                                  {0, 0, 3, 0, Place::host},
                                  {0, 0, 0, 64, Place::host}}) {
    EXPECT_FALSE(tracker.record(odd, 1, 2));
    EXPECT_EQ(tracker.correction(odd), 0);
  }
  EXPECT_FALSE(tracker.record(kHost, 0, 1));
  EXPECT_FALSE(tracker.record(kHost, 1, 0));
  EXPECT_FALSE(tracker.record(kHost, 1, std::nan("")));
  EXPECT_EQ(tracker.samples(kHost), 0);
}

TEST(Tracker, AGivenUpCallCountsAsAtLeastThatLong) {
  Tracker tracker;
  repeat(tracker, kDevice, 20, 1e-3, 1e-3);
  for (int i = 0; i < 5; ++i) tracker.record_at_least(kDevice, 1e-3, 20e-3);
  EXPECT_GT(tracker.correction(kDevice), std::log(10.0));
  // Given up early: it may well have been about to end, and nothing gets better by that.
  const float before = tracker.correction(kDevice);
  for (int i = 0; i < 20; ++i) tracker.record_at_least(kDevice, 1e-3, 1e-4);
  EXPECT_GE(tracker.correction(kDevice), before - 0.01F);
}

Tracker::Cell device_cell(int op) { return {op, 1, 0, 18, Place::device}; }

TEST(Tracker, AShiftOfTheWholeDeviceReachesCellsThatWereNotSeen) {
  Tracker tracker;
  for (int op = 0; op < 5; ++op) repeat(tracker, device_cell(op), 20, 1e-3, 1e-3);
  for (int i = 0; i < 8; ++i) {
    for (int op = 0; op < 4; ++op) tracker.record(device_cell(op), 1e-3, 3e-3);
  }
  EXPECT_NEAR(tracker.device_shift(), std::log(3.0), 0.15);
  EXPECT_GT(tracker.correction(device_cell(4)), std::log(2.5)) << "seen before, not since";
  EXPECT_GT(tracker.correction(device_cell(9)), std::log(2.5)) << "never seen";
  EXPECT_EQ(tracker.correction({9, 0, 0, 18, Place::host}), 0) << "the CPU did not get slower";
}

TEST(Tracker, AnOpThatIsOffSaysNothingAboutTheDevice) {
  Tracker tracker;
  for (int op = 0; op < 5; ++op) repeat(tracker, device_cell(op), 20, 1e-3, 1e-3);
  for (int i = 0; i < 40; ++i) tracker.record(device_cell(0), 1e-3, 4e-3);
  EXPECT_NEAR(tracker.device_shift(), 0, 0.02);
  EXPECT_NEAR(tracker.correction(device_cell(3)), 0, 0.05);
  EXPECT_NEAR(tracker.correction(device_cell(0)), std::log(4.0), 0.05);
}

TEST(Tracker, AsksForNewDecisionsOnlyWhenSomethingMoved) {
  Tracker tracker;
  repeat(tracker, kHost, 20, 1e-3, 1.5e-3);
  int told = 0;
  for (int i = 0; i < 1000; ++i) told += tracker.record(kHost, 1e-3, 1.5e-3 * (1 + 0.01 * (i % 3))) ? 1 : 0;
  EXPECT_LE(told, 1);
}

TEST(Tracker, AsksForFewNewDecisionsWhereTimesScatter) {
  Tracker tracker;
  int told = 0;
  for (std::uint64_t i = 0; i < 2000; ++i) {
    const double noise = 0.25 * static_cast<double>(ops::random_normal(5, i));
    told += tracker.record(kHost, 1e-3, 1e-3 * std::exp(noise)) ? 1 : 0;
  }
  EXPECT_LE(told, 100);
  EXPECT_NEAR(tracker.correction(kHost), 0, 0.3);
}

TEST(Tracker, ExploresWithinOnePercentOfTheTimeSpent) {
  Tracker tracker(0.01);
  EXPECT_FALSE(tracker.explore(1e-3, 1.5)) << "nothing was spent yet";
  double explored = 0;
  for (int call = 0; call < 10000; ++call) {
    tracker.spend(10e-3);
    if (tracker.explore(5e-3, 1.5)) explored += 5e-3;
  }
  EXPECT_GT(explored, 0.9);
  EXPECT_LE(explored, 1.0 + 1e-9);
  EXPECT_NEAR(tracker.explored_seconds(), explored, 1e-6);
}

TEST(Tracker, DoesNotTryWhatIsHopeless) {
  Tracker tracker(0.01);
  tracker.spend(1000);
  EXPECT_FALSE(tracker.explore(1e-3, 50));
  EXPECT_TRUE(tracker.explore(1e-3, 2));
}

TEST(Tracker, ExploresNothingWithoutCredit) {
  Tracker tracker(0);
  tracker.spend(1000);
  EXPECT_FALSE(tracker.explore(0, 1));
}

TEST(Tracker, GivesBackWhatATrialDidNotCost) {
  Tracker tracker(0.01);
  tracker.spend(1);
  EXPECT_TRUE(tracker.explore(9e-3, 2));
  EXPECT_FALSE(tracker.explore(9e-3, 2));
  tracker.settle(9e-3, -1e-3);
  EXPECT_TRUE(tracker.explore(9e-3, 2));
  tracker.settle(9e-3, 20e-3);
  EXPECT_NEAR(tracker.explored_seconds(), 20e-3, 1e-9) << "and one that cost more is a debt";
  tracker.spend(1.5);
  EXPECT_FALSE(tracker.explore(9e-3, 2));
}

TEST(Tracker, TriesAgainWhatWasFasterOnceOrShouldBeByTheTable) {
  Tracker tracker(0.01);
  tracker.spend(1000);
  repeat(tracker, kDevice, 50, 1e-3, 1e-3);
  repeat(tracker, kDevice, 20, 1e-3, 100e-3);
  EXPECT_TRUE(tracker.explore(kDevice, 99e-3, 50));
  Tracker::Cell always_slow = kDevice;
  always_slow.op = 5;
  repeat(tracker, always_slow, 70, 1e-3, 100e-3);
  EXPECT_TRUE(tracker.explore(always_slow, 99e-3, 50)) << "as priced it would be twice as fast as the choice";
  EXPECT_FALSE(tracker.explore(always_slow, 99e-3, 500)) << "as priced it would still be five times slower";
}

TEST(Tracker, DoesNotTryOverAndOverWhatItKnowsToBeSlower) {
  Tracker tracker(0.01);
  tracker.spend(1);
  repeat(tracker, kHost, 20, 2e-3, 2e-3);
  EXPECT_FALSE(tracker.explore(kHost, 1e-3, 2)) << "there is credit, but nothing to learn";
  EXPECT_TRUE(tracker.explore(kHost, 1e-4, 1.05)) << "a close call";
  tracker.spend(1.1);
  EXPECT_TRUE(tracker.explore(kHost, 1e-3, 2)) << "that was long ago";
}

TEST(Tracker, CountsShortCallsOfManyThreads) {
  Tracker tracker(0.01);
  std::vector<std::thread> threads;
  for (int t = 0; t < 16; ++t) {
    threads.emplace_back([&tracker] {
      for (int i = 0; i < 6400; ++i) tracker.spend(1e-6);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(tracker.explore(0.0099 * 0.1024, 1));
  EXPECT_FALSE(tracker.explore(0.0002 * 0.1024, 1));
}

TEST(Tracker, SixteenThreadsLearnAtOnceAndLoseNothing) {
  Tracker tracker;
  std::vector<std::thread> threads;
  for (int t = 0; t < 16; ++t) {
    threads.emplace_back([&tracker, t] {
      for (int i = 0; i < 2000; ++i) {
        const Tracker::Cell cell{.op = i % 40,
                                 .candidate = static_cast<std::uint8_t>(i % 3),
                                 .size_class = 10,
                                 .place = i % 2 == 0 ? Place::device : Place::host};
        tracker.record(cell, 1e-3, i % 97 == t ? 1 : 2e-3);
        tracker.spend(1e-5);
        tracker.explore(1e-6, 1.2);
        EXPECT_LE(tracker.correction(cell), 7);  // ln 1000 is the largest sample
        EXPECT_GE(tracker.doubt(cell), 0);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::int64_t samples = 0;
  for (int op = 0; op < 40; ++op) {
    for (std::uint8_t candidate = 0; candidate < 3; ++candidate) {
      for (const Place place : {Place::host, Place::device}) {
        const Tracker::Cell cell{op, candidate, 0, 10, place};
        samples += tracker.samples(cell);
        if (tracker.samples(cell) > 100) {
          EXPECT_NEAR(tracker.correction(cell), std::log(2.0), 0.05);
        }
      }
    }
  }
  EXPECT_EQ(samples, 16 * 2000);
}

TEST(Tracker, SamplesAsExpectedAreHandedOnAFewAtATimeAndNoneIsLost) {
  Tracker tracker;
  repeat(tracker, kHost, 50, 1e-5, 1.1e-5);
  EXPECT_EQ(tracker.samples(kHost), 50);
  std::int64_t before = tracker.handed_on();
  for (int i = 0; i < 400; ++i) tracker.record(kHost, 1e-5, 1.1e-5 * (1 + 0.01 * (i % 7 - 3)));
  EXPECT_LE(tracker.handed_on() - before, 400 / Gatherer::kLeast);
  EXPECT_GE(tracker.handed_on() - before, 400 / Gatherer::kMost);
  EXPECT_EQ(tracker.samples(kHost), 450);
  before = tracker.handed_on();
  tracker.record(kHost, 1e-5, 1.12e-5);
  EXPECT_EQ(tracker.handed_on(), before) << "it waits for others";
  EXPECT_EQ(tracker.samples(kHost), 451) << "whoever asks gets all";
  EXPECT_FLOAT_EQ(static_cast<float>(tracker.last_seconds(kHost)[0]), 1.12e-5F);
  EXPECT_NEAR(tracker.correction(kHost), std::log(1.1), 0.02);
}

TEST(Tracker, ASurpriseIsLearnedAtOnceAfterWhatWasGatheredBeforeIt) {
  Tracker tracker;
  repeat(tracker, kHost, 50, 1e-5, 1e-5);
  ASSERT_EQ(tracker.samples(kHost), 50);
  repeat(tracker, kHost, 2, 1e-5, 1e-5);
  bool told = false;
  for (int i = 0; i < 5; ++i) told |= tracker.record(kHost, 1e-5, 3e-5);
  EXPECT_TRUE(told);
  EXPECT_EQ(tracker.alarms(), 1);
  EXPECT_GT(tracker.correction(kHost), std::log(2.5));
  EXPECT_EQ(tracker.samples(kHost), 57);
}

TEST(Tracker, CallsToTheDeviceAreLearnedOneByOne) {
  Tracker tracker;
  repeat(tracker, kDevice, 50, 1e-5, 1e-5);
  EXPECT_EQ(tracker.handed_on(), 0) << "nothing was gathered";
  EXPECT_EQ(tracker.known(kDevice).samples, 50);
}

TEST(Tracker, WhatACellLearnsOnBehalfOfAnotherIsToldWithItsNextSample) {
  Gatherer places;
  Tracker::Cell other = kHost;  // one whose samples wait at the same place
  do {
    ++other.op;
  } while (&places.slot_of(Gatherer::key_of(other)) != &places.slot_of(Gatherer::key_of(kHost)));
  Tracker tracker;
  repeat(tracker, kHost, 60, 1e-5, 1e-5);
  ASSERT_EQ(tracker.samples(kHost), 60);
  // Each a little slower than expected; three wait when the other cell comes, and the fifth raises the alarm.
  for (int round = 0; round < 2; ++round) {
    for (int i = 0; i < 3; ++i) EXPECT_FALSE(tracker.record(kHost, 1e-5, 1.08e-5));
    EXPECT_FALSE(tracker.record(other, 1e-5, 1e-5)) << "not its business";
  }
  EXPECT_EQ(tracker.alarms(), 1);
  EXPECT_TRUE(tracker.record(kHost, 1e-5, 1.08e-5));
  EXPECT_FALSE(tracker.record(kHost, 1e-5, 1.08e-5)) << "told once";
}

TEST(TrackedCell, SeveralSamplesAtOnceLeaveItAsOneAfterTheOtherDo) {
  const auto sample_of = [](int i) {
    return TrackedCell::Sample{0.1F + 0.02F * static_cast<float>(i % 7 - 3), 1e-5F + 1e-7F * i};
  };
  TrackedCell one, several;
  std::vector<TrackedCell::Sample> group;
  int next = 0;
  for (const int size : {1, 3, 8, 5, 7, 4, 8, 6, 8, 8, 8}) {  // the first calls among them
    group.clear();
    for (int i = 0; i < size; ++i, ++next) {
      group.push_back(sample_of(next));
      one.learn(group.back().ln, group.back().seconds, 0);
    }
    several.learn(group, 0);
    EXPECT_EQ(several.count(), one.count());
    EXPECT_EQ(several.last_seconds(), one.last_seconds());
  }
  EXPECT_NEAR(several.value(), one.value(), 0.01);
  EXPECT_NEAR(several.value(), 0.1, 0.02);
  EXPECT_NEAR(several.doubt(), one.doubt(), 0.1 * one.doubt());
  EXPECT_LT(several.doubt(), 0.05) << "their scatter was seen";
  // One that has moved raises the same alarm, in the middle of a group or at its end.
  group.assign(8, {0.1F, 1e-5F});
  for (std::size_t i = 4; i < 8; ++i) group[i].ln = 1;
  bool alarm = false;
  for (const auto& sample : group) alarm |= one.learn(sample.ln, sample.seconds, 0).alarm;
  EXPECT_TRUE(alarm);
  EXPECT_TRUE(several.learn(group, 0).alarm);
  EXPECT_NEAR(several.value(), one.value(), 0.05);
  EXPECT_NEAR(several.value(), 1, 0.05);
}

TEST(Tracker, SixteenThreadsThatSeeWhatIsExpectedSeldomWriteWhatTheyShare) {
  Tracker tracker;
  repeat(tracker, kHost, 50, 1e-5, 1e-5);
  const std::int64_t before = tracker.handed_on();
  std::vector<std::thread> threads;
  for (int t = 0; t < 16; ++t) {
    threads.emplace_back([&tracker, t] {
      for (int i = 0; i < 1000; ++i) tracker.record(kHost, 1e-5, 1e-5 * (1 + 0.01 * ((i + t) % 7 - 3)));
    });
  }
  for (std::thread& thread : threads) thread.join();
  const std::int64_t written = tracker.handed_on() - before;
  EXPECT_EQ(tracker.samples(kHost), 50 + 16 * 1000);
  EXPECT_LE(written, 16 * 1000 / Gatherer::kLeast + 16);
  EXPECT_EQ(tracker.alarms(), 0);
}

}  // namespace
}  // namespace fulcrum::executor
