// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// The ledger: every instant of a call in exactly one phase. Timelines are written by hand or drawn.
#include "measure/ledger.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace fulcrum::measure {
namespace {

fulcrum_activity host(std::int32_t kind, double begin, double end) { return {kind, 0, begin, end}; }
fulcrum_activity tied(std::int32_t kind, std::uint32_t correlation, double begin, double end) {
  return {kind, correlation, begin, end};
}

double sum_of(const Ledger& ledger) {
  double sum = 0;
  for (const Phase& phase : phases()) sum += ledger.*phase.seconds;
  return sum;
}

TEST(Ledger, AnEmptyTimelineIsAllUnattributed) {
  const Ledger ledger = attribute({}, 1, 3);
  EXPECT_DOUBLE_EQ(ledger.unattributed, 2);
  EXPECT_DOUBLE_EQ(ledger.end_to_end_instrumented, 2);
  EXPECT_DOUBLE_EQ(ledger.residual(), 1);
}

TEST(Ledger, ARoundTripFallsIntoItsPhases) {
  const std::vector<fulcrum_activity> timeline = {
      tied(FULCRUM_ACTIVITY_LAUNCH, 1, 1, 2),   tied(FULCRUM_ACTIVITY_H2D, 1, 4, 6),
      tied(FULCRUM_ACTIVITY_LAUNCH, 2, 2, 3),   tied(FULCRUM_ACTIVITY_KERNEL, 2, 6, 9),
      tied(FULCRUM_ACTIVITY_LAUNCH, 3, 3, 3.5), tied(FULCRUM_ACTIVITY_D2H, 3, 9, 11),
      host(FULCRUM_ACTIVITY_SYNC, 3.5, 12),
  };
  const Ledger ledger = attribute(timeline, 0, 13);
  EXPECT_DOUBLE_EQ(ledger.unattributed, 2) << "before the first call and after the wait";
  EXPECT_DOUBLE_EQ(ledger.launch, 1);
  EXPECT_DOUBLE_EQ(ledger.queue, 2) << "enqueued and not started, also while the host enqueues more or waits";
  EXPECT_DOUBLE_EQ(ledger.h2d, 2);
  EXPECT_DOUBLE_EQ(ledger.kernel, 3);
  EXPECT_DOUBLE_EQ(ledger.d2h, 2);
  EXPECT_DOUBLE_EQ(ledger.sync, 1) << "the wake-up";
  EXPECT_DOUBLE_EQ(ledger.busy.at("sync"), 8.5) << "the whole wait";
  EXPECT_DOUBLE_EQ(ledger.busy.at("launch"), 2.5);
}

TEST(Ledger, OverlapGoesToTheStrongerPhaseAndStaysVisibleAsBusy) {
  const std::vector<fulcrum_activity> timeline = {host(FULCRUM_ACTIVITY_H2D, 0, 6),
                                                  host(FULCRUM_ACTIVITY_D2H, 2, 8),
                                                  host(FULCRUM_ACTIVITY_KERNEL, 3, 5)};
  const Ledger ledger = attribute(timeline, 0, 8);
  EXPECT_DOUBLE_EQ(ledger.kernel, 2);
  EXPECT_DOUBLE_EQ(ledger.d2h, 4);
  EXPECT_DOUBLE_EQ(ledger.h2d, 2);
  EXPECT_DOUBLE_EQ(ledger.busy.at("h2d") + ledger.busy.at("d2h") + ledger.busy.at("kernel"), 14);
}

TEST(Ledger, FaultStallsDoNotHideInTheKernel) {
  const std::vector<fulcrum_activity> timeline = {host(FULCRUM_ACTIVITY_KERNEL, 0, 10),
                                                  host(FULCRUM_ACTIVITY_MIGRATE, 2, 5)};
  const Ledger ledger = attribute(timeline, 0, 10);
  EXPECT_DOUBLE_EQ(ledger.migrate, 3);
  EXPECT_DOUBLE_EQ(ledger.kernel, 7);
}

TEST(Ledger, WhatLiesOutsideTheCallIsCutOff) {
  const std::vector<fulcrum_activity> timeline = {host(FULCRUM_ACTIVITY_KERNEL, -5, 1),
                                                  host(FULCRUM_ACTIVITY_D2H, 3, 20),
                                                  host(FULCRUM_ACTIVITY_ALLOC, 30, 40)};
  const Ledger ledger = attribute(timeline, 0, 4);
  EXPECT_DOUBLE_EQ(ledger.kernel, 1);
  EXPECT_DOUBLE_EQ(ledger.d2h, 1);
  EXPECT_DOUBLE_EQ(ledger.alloc, 0);
  EXPECT_DOUBLE_EQ(ledger.unattributed, 2);
}

TEST(Ledger, RandomTimelinesAlwaysAddUp) {
  stats::Random random(7);
  for (int trial = 0; trial < 500; ++trial) {
    std::vector<fulcrum_activity> timeline;
    const int count = static_cast<int>(random.uniform() * 40);
    for (int i = 0; i < count; ++i) {
      const double begin = random.uniform() * 1.4 - 0.2;
      timeline.push_back({static_cast<std::int32_t>(random.uniform() * 10),  // one kind is not known
                          static_cast<std::uint32_t>(random.uniform() * 8), begin,
                          begin + 0.3 * random.uniform()});
    }
    const Ledger ledger = attribute(timeline, 0, 1);
    EXPECT_NEAR(sum_of(ledger), 1, 1e-12);
    for (const Phase& phase : phases()) {
      EXPECT_GE(ledger.*phase.seconds, 0) << phase.name;
      const auto busy = ledger.busy.find(std::string(phase.name));
      if (busy != ledger.busy.end()) {
        EXPECT_LE(ledger.*phase.seconds, busy->second + 1e-12) << phase.name;
      }
    }
  }
}

TEST(Ledger, TheTypicalCallLeavesSlowOnesOutAndStillAddsUp) {
  std::vector<Ledger> calls;
  for (int i = 0; i < 40; ++i) {
    Ledger call;
    call.kernel = i < 36 ? 3 : 300;
    call.sync = 0.01 * i;
    call.end_to_end_instrumented = call.kernel + call.sync;
    calls.push_back(call);
  }
  const Ledger ledger = typical(calls);
  EXPECT_NEAR(ledger.kernel, 3, 1e-12);
  EXPECT_NEAR(sum_of(ledger), ledger.end_to_end_instrumented, 1e-12);
}

TEST(Ledger, TheRowSaysWhatTheTracingCouldNotExplainAndWhatItDisturbed) {
  Measurement bare;
  bare.op = "relu";
  bare.seconds.median = 100e-6;
  Measurement traced = bare;
  traced.ledger = Ledger{.kernel = 100e-6, .end_to_end_instrumented = 101e-6};
  traced.ledger->unattributed = 1e-6;
  auto row = join_ledger(bare, {traced, traced});
  ASSERT_TRUE(row.ok());
  EXPECT_TRUE(row->flags.empty());
  EXPECT_DOUBLE_EQ(row->ledger->end_to_end_bare, 100e-6);

  traced.ledger->unattributed = 7e-6;
  traced.ledger->end_to_end_instrumented = 107e-6;
  row = join_ledger(bare, {traced});
  EXPECT_EQ(row->flags, (std::vector<std::string>{"ledger_incomplete", "ledger_perturbed"}));

  EXPECT_FALSE(join_ledger(bare, {}).ok());
  EXPECT_FALSE(join_ledger(bare, {bare}).ok()) << "it holds no ledger";
}

}  // namespace
}  // namespace fulcrum::measure
