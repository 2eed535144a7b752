// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// What launching and queueing cost, as a trace shows it: which observations count, and when there are too few of them.
#include <fulcrum/trace.h>
#include <gtest/gtest.h>

#include <functional>

#include "support/traces.h"

namespace fulcrum::test {
namespace {

using trace::timeline;

constexpr double kProfile = 9e-6;
trace::Costs profile() {
  return {.from = "profile x", .back_to_back_seconds = kProfile, .launch_seconds = kProfile};
}

/// Ops one behind the other, so far apart.
void spread(GpuTrace& trace, const std::function<std::int64_t(std::size_t)>& gap_ns) {
  for (std::size_t i = 1; i < trace.ops.size(); ++i) {
    const std::int64_t length_ns = trace.ops[i].duration_ns();
    trace.ops[i].begin_ns = trace.ops[i - 1].end_ns + gap_ns(i);
    trace.ops[i].end_ns = trace.ops[i].begin_ns + length_ns;
  }
}

GpuTrace burst(int launches) {
  TraceBuilder t;
  t.stream();
  for (int i = 0; i < launches; ++i) t.launch("k", 132, 256, 50'000);
  return t.trace();
}

TEST(Costs, BackToBackIsASmallGapAndNotAUsualOne) {
  GpuTrace trace = burst(100);
  spread(trace, [](std::size_t i) { return i % 5 < 2 ? 1'000 : 3'000; });
  EXPECT_DOUBLE_EQ(timeline(trace, profile()).back_to_back.seconds, 1e-6);
}

TEST(Costs, WhatIsLongBetweenQueuedOpsHasAnotherReason) {
  GpuTrace trace = burst(100);
  spread(trace, [](std::size_t i) { return i % 10 == 0 ? 1'000 : 8'000; });
  EXPECT_DOUBLE_EQ(timeline(trace, profile()).back_to_back.seconds, 1e-6);
}

TEST(Costs, ALaunchThatWasStillOnItsWaySaysNothingAboutTheQueue) {
  TraceBuilder t({.launch_latency = 7'000});
  t.stream();
  for (int i = 0; i < 110; ++i) {
    t.launch("k", 132, 256, 10'000);
    // The second call ends half a microsecond before the first kernel does, but for each eleventh.
    if (i % 11 != 0) t.host_work(12'100);
    t.launch("k", 132, 256, 10'000).device_sync();
  }
  const GpuTrace trace = t.trace();
  ASSERT_EQ(trace.ops[3].begin_ns - trace.ops[2].end_ns, 4'300);
  EXPECT_DOUBLE_EQ(timeline(trace, profile()).back_to_back.seconds, 1e-6);
}

TEST(Costs, AFewQueuedOpsAmongVeryManyAreOddOnes) {
  const auto trace_of = [](int alone) {
    TraceBuilder t;
    t.stream();
    for (int i = 0; i < alone; ++i) t.launch("k", 132, 256, 10'000).device_sync();
    for (int i = 0; i < 6; ++i) t.launch("k", 132, 256, 10'000).launch("k", 132, 256, 10'000).device_sync();
    return t.trace();
  };
  EXPECT_EQ(timeline(trace_of(1'100), profile()).back_to_back.from, "this trace");
  EXPECT_EQ(timeline(trace_of(1'300), profile()).back_to_back.from, "profile x");
}

TEST(Costs, GapsBetweenKernelsGoBeforeThoseOfCopies) {
  TraceBuilder t;
  t.stream();
  for (int i = 0; i < 20; ++i) {
    t.copy_h2d(1 << 20);
    for (int k = 0; k < 2; ++k) t.launch("k", 132, 256, 50'000);
  }
  GpuTrace trace = t.trace();
  spread(trace, [&](std::size_t i) {
    const bool kernels = trace.ops[i - 1].kind == GpuOpKind::kernel && trace.ops[i].kind == GpuOpKind::kernel;
    return kernels ? 3'000 : 1'000;
  });
  EXPECT_DOUBLE_EQ(timeline(trace, profile()).back_to_back.seconds, 3e-6);
}

TEST(Costs, AKernelThatWaitedForPagesSaysNothingAboutTheLatency) {
  TraceBuilder t;
  t.stream();
  for (int i = 0; i < 20; ++i) {
    t.launch("k", 132, 256, 10'000);
    if (i % 5 < 3) t.skew_last_op(98'000);
    t.device_sync().host_work(200'000);
  }
  EXPECT_DOUBLE_EQ(timeline(t.trace()).launch_latency.seconds, 1.8e-6);
}

TEST(Costs, FourObservationsAreTooFew) {
  const auto from = [](int launches) {
    TraceBuilder t;
    for (int i = 0; i < launches; ++i) t.launch("k", 132, 256, 10'000).device_sync();
    return timeline(t.trace(), profile()).launch.from;
  };
  EXPECT_EQ(from(4), "profile x");
  EXPECT_EQ(from(5), "this trace");
}

TEST(Costs, LaunchesThatWaitForRoomInTheQueueAreNoLaunches) {
  constexpr std::size_t kQueue = 400, kLaunches = 3000;
  GpuTrace trace = burst(kLaunches);
  std::int64_t now = trace.calls[kQueue].begin_ns;
  for (std::size_t i = kQueue; i < kLaunches; ++i) {
    GpuTrace::Call& call = trace.calls[i];
    call.begin_ns = now + 500;
    call.end_ns = now = std::max(call.begin_ns + 2200, trace.ops[i - kQueue].end_ns + 1500);
  }
  EXPECT_DOUBLE_EQ(timeline(trace, profile()).launch.seconds, 2.2e-6);
}

TEST(Costs, AGraphOfManyNodesMayTakeALittleLongerToLaunchWithoutTracing) {
  const std::vector<TraceNode> nodes(100, {"node", 8, 256, 1'000});
  const auto notes = [&](std::int64_t call_ns) {
    TraceBuilder t({.graph_call = call_ns, .graph_latency = call_ns + 500, .graph_node_gap = 50});
    t.stream();
    for (int i = 0; i < 30; ++i) t.graph_launch(nodes).stream_sync();
    return timeline(t.trace()).notes.size();
  };
  EXPECT_EQ(notes(11'000), 0u);  // 6 us, and 50 ns a node
  EXPECT_GT(notes(60'000), 0u);
}

}  // namespace
}  // namespace fulcrum::test
