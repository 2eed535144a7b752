// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// What a change to a run would save, on runs small enough to work it out by hand.
#include <fulcrum/trace.h>
#include <gtest/gtest.h>

#include "support/traces.h"
#include "trace/simulated.h"

namespace fulcrum::test {
namespace {

std::vector<std::uint32_t> ops_named(const GpuTrace& trace, const std::string& name) {
  std::vector<std::uint32_t> result;
  for (std::uint32_t i = 0; i < trace.ops.size(); ++i) {
    if (trace.ops[i].kind == GpuOpKind::kernel && trace.shapes[trace.ops[i].shape].name == name)
      result.push_back(i);
  }
  return result;
}

TEST(Simulation, AShorterKernelOnTheCriticalPathSavesWhatItIsShorter) {
  TraceBuilder t;
  t.launch("a", 132, 256, 100'000).launch("b", 132, 256, 50'000).launch("c", 132, 256, 80'000);
  const GpuTrace trace = t.trace();
  EXPECT_DOUBLE_EQ(saved_ns(trace, {.op_ns = {{1, 20'000}}}), 30'000);
}

// A host that is far ahead waits in its launches for room in the queue, and not when there is less to wait for. Streams
// that wait for each other leave room for fewer.
TEST(Simulation, LaunchesThatWaitForRoomInTheQueueBecomeShorterWithTheKernels) {
  constexpr int kLaunches = 3000;
  constexpr std::int64_t kKernelNs = 100'000, kShortNs = 10'000;
  for (const int queue : {1024, 400}) {
    TraceBuilder t;
    for (int i = 0; i < kLaunches; ++i) t.launch("work", 132, 256, kKernelNs);
    GpuTrace trace = t.trace();
    std::int64_t now = trace.calls[std::size_t(queue)].begin_ns;
    for (int i = queue; i < kLaunches;
         ++i) {  // a launch returns when the op so many places before it is done
      GpuTrace::Call& call = trace.calls[std::size_t(i)];
      call.begin_ns = now + 500;
      call.end_ns = now = std::max(call.begin_ns + 2200, trace.ops[std::size_t(i - queue)].end_ns + 1500);
    }
    Change shorter;
    for (std::uint32_t i = 0; i < kLaunches; ++i) shorter.op_ns[i] = kShortNs;
    EXPECT_NEAR(saved_ns(trace, shorter), kLaunches * double(kKernelNs - kShortNs),
                0.02 * kLaunches * kKernelNs)
        << queue;
  }
}

TEST(Simulation, AKernelOffTheCriticalPathSavesNothing) {
  TraceBuilder t;
  const auto one = t.stream().current_stream();
  const auto two = t.stream().current_stream();
  t.on_stream(one).launch("long", 10, 256, 500'000).on_stream(two).launch("beside", 10, 256, 100'000);
  const GpuTrace trace = t.trace();
  EXPECT_EQ(saved_ns(trace, {.op_ns = {{1, 1'000}}}), 0);
  EXPECT_DOUBLE_EQ(saved_ns(trace, {.op_ns = {{0, 400'000}}}), 100'000);
}

TEST(Simulation, TwoFixesThatOverlapSaveLessTogetherThanTheirSum) {
  TraceBuilder t;
  const auto one = t.stream().current_stream();
  const auto two = t.stream().current_stream();
  t.on_stream(one).launch("a", 10, 256, 300'000).on_stream(two).launch("b", 10, 256, 290'000);
  t.device_sync().on_stream(one).launch("c", 10, 256, 50'000);
  const GpuTrace trace = t.trace();
  const double a = saved_ns(trace, {.op_ns = {{0, 100'000}}}), b = saved_ns(trace, {.op_ns = {{1, 100'000}}});
  const double both = saved_ns(trace, {.op_ns = {{0, 100'000}, {1, 100'000}}});
  EXPECT_GT(both, a + b);  // either alone is bounded by the other
  const double host = saved_ns(trace, {.op_ns = {{0, 1'000}}}),
               same = saved_ns(trace, {.op_ns = {{0, 1'000}, {1, 290'000}}});
  EXPECT_EQ(host, same);
  // The launches and the kernels of a step hide each other: graph and faster kernels together give less than both.
  const GpuTrace step = launch_bound();
  const Timeline timeline = trace::timeline(step);
  const auto what_if = trace::what_if(step, timeline);
  Change graph, faster, together;
  for (std::uint32_t i = 1; i < step.ops.size(); ++i) {
    graph.not_launched.insert(i);
    faster.op_ns[i] = 300;
  }
  together = graph;
  together.op_ns = faster.op_ns;
  const double all = what_if(together).seconds;
  EXPECT_GT(what_if(graph).seconds, 0);
  EXPECT_GE(all, what_if(graph).seconds);
  EXPECT_LT(all, timeline.seconds);
}

TEST(Simulation, AWaitThatIsGoneLetsTheHostRunAhead) {
  // launch 2.2 us, kernel from 4 to 104 us, sync returns at 106.5, host works 20 us, next launch at 126.5.
  TraceBuilder t;
  for (int i = 0; i < 4; ++i) t.launch("k", 132, 256, 100'000).device_sync().host_work(20'000);
  const GpuTrace trace = t.trace();
  const auto syncs = calls_of(trace, CallKind::device_sync);
  Change change;
  change.no_wait.insert(syncs.begin(), syncs.end());
  // Three gaps of 2.5 + 20 + 4 us become three of 1 us.
  EXPECT_DOUBLE_EQ(saved_ns(trace, change), 3 * (26'500 - 1'000));
}

TEST(Simulation, FasterHostWorkSavesItWhereTheGpuWaitsForIt) {
  TraceBuilder t;
  for (int i = 0; i < 5; ++i) t.launch("k", 132, 256, 10'000).device_sync().host_work(100'000);
  const GpuTrace trace = t.trace();
  EXPECT_DOUBLE_EQ(saved_ns(trace, {.host_scale = 0.5}), 4 * 50'000);
  // The same host work in front of a queue that is never empty is free.
  TraceBuilder busy;
  for (int i = 0; i < 5; ++i) busy.launch("k", 132, 256, 500'000).host_work(100'000);
  EXPECT_EQ(saved_ns(busy.trace(), {.host_scale = 0.5}), 0);
}

TEST(Simulation, HostTimeBeforeOneCallCanGoAlone) {
  TraceBuilder t;
  for (int i = 0; i < 5; ++i) t.launch("k", 132, 256, 10'000).device_sync().host_work(100'000);
  const GpuTrace trace = t.trace();
  const auto launches = calls_of(trace, CallKind::launch);
  EXPECT_DOUBLE_EQ(saved_ns(trace, {.host_before_ns = {{launches[2], 10'000}}}), 90'000);
}

TEST(Simulation, NodesOfAGraphNoLongerWaitForTheHost) {
  TraceBuilder t;
  for (int i = 0; i < 10; ++i) t.host_work(20'000).launch("k", 132, 256, 2'000);
  const GpuTrace trace = t.trace();
  Change change;
  for (std::uint32_t i = 1; i < 10; ++i) change.not_launched.insert(i);
  // Nine periods of 22.2 us become nine of a kernel and next to nothing: an eighth of 1 us.
  EXPECT_DOUBLE_EQ(saved_ns(trace, change), 9 * (22'200 - 2'125));
}

TEST(Simulation, NodesFollowEachOtherAsCloselyAsThoseOfGraphsInTheTrace) {
  TraceBuilder t({.graph_node_gap = 300});
  for (int i = 0; i < 10; ++i) t.host_work(20'000).launch("k", 132, 256, 2'000);
  t.device_sync().graph_launch(std::vector<TraceNode>(8, {"node", 132, 256, 2'000}));
  const GpuTrace trace = t.trace();
  Change change;
  for (std::uint32_t i = 1; i < 10; ++i) change.not_launched.insert(i);
  EXPECT_DOUBLE_EQ(saved_ns(trace, change), 9 * (22'200 - 2'300));
}

TEST(Simulation, WhatTracingAddsToLaunchesIsNotCountedAsSaved) {
  // A launch of 2.2 us of which tracing is 1 us, 20 us of host work, ten kernels that the GPU waits for.
  TraceBuilder t;
  for (int i = 0; i < 10; ++i) t.host_work(20'000).launch("k", 132, 256, 2'000);
  GpuTrace trace = t.trace();
  trace.processes[0].overhead_seconds = 10e-6;
  const Timeline timeline = trace::timeline(trace);
  ASSERT_EQ(timeline.tracing_per_launch.from, "this trace");
  Change change;
  for (std::uint32_t i = 1; i < 10; ++i) change.not_launched.insert(i);
  const double untraced = 9 * 21'200 + 2'000, graph = 10 * 2'000 + 9 * 125;
  const Saved saved = trace::what_if(trace, timeline)(change);
  EXPECT_NEAR(saved.share, 1 - graph / untraced, 1e-9);
  EXPECT_NEAR(saved.seconds, saved.share * timeline.seconds, 1e-15);
}

TEST(Simulation, ARecordCostsWhatWindowsLostAndNotWhatCountingLaunchesOutsideOfThemDid) {
  TraceBuilder t;
  for (int i = 0; i < 10; ++i) t.host_work(20'000).launch("k", 132, 256, 2'000);
  GpuTrace trace = t.trace();
  // Few of the run's launches are in the file; records took a twentieth of the time of those.
  trace.processes[0].overhead_seconds = 1;
  trace.processes[0].full_overhead_share = 0.05;
  EXPECT_NEAR(trace::timeline(trace).tracing_per_launch.seconds, 22.2e-6 * 0.05 / 1.05, 0.15e-6);
}

TEST(Simulation, KernelsThatFillTheDeviceDoNotRunSideBySideBecauseCopiesAreFaster) {
  TraceBuilder t;
  t.stream();
  const std::uint32_t first = t.current_stream();
  t.stream();
  const std::uint32_t second = t.current_stream();
  constexpr int kKernels = 40;
  for (int i = 0; i < kKernels; ++i) {
    t.on_stream(i % 2 == 0 ? first : second)
        .copy_h2d(16 << 20, MemoryKind::pageable, false)
        .launch("k", 1056, 256, 1'000'000);
  }
  const GpuTrace trace = t.trace();
  Change change;
  for (std::uint32_t i = 0; i < trace.ops.size(); ++i) {
    if (trace.ops[i].kind == GpuOpKind::copy) change.op_ns[i] = 300'000;
  }
  for (const auto call : calls_of(trace, CallKind::copy)) {
    change.no_wait.insert(call);
    change.call_ns[call] = 2'000;
  }
  const double left = trace::timeline(trace).seconds * 1e9 - saved_ns(trace, change);
  // A step of two kernels is no part of the timeline. Side by side they would take 650 us each.
  EXPECT_GE(left, (kKernels - 2) * 1e6);
  EXPECT_LT(left, (kKernels + 2) * 1e6);
}

TEST(Simulation, WhatTracingAddsToAGraphIsNotPartOfTheRun) {
  // Launching 100 nodes takes 5.5 us, but 116 us when each gets a record.
  const std::vector<TraceNode> nodes(100, {"node", 8, 256, 1'000});
  const auto trace_of = [&](std::int64_t call_ns) {
    TraceBuilder t({.graph_call = call_ns, .graph_latency = call_ns + 500, .graph_node_gap = 50});
    t.stream();
    for (int i = 0; i < 30; ++i) t.graph_launch(nodes).stream_sync();
    return t.trace();
  };
  const GpuTrace quick = trace_of(5'500), slow = trace_of(116'000);
  const Timeline a = trace::timeline(quick), b = trace::timeline(slow);
  EXPECT_NEAR(b.seconds, a.seconds, 0.06 * a.seconds);
  EXPECT_NEAR(b.iterations.median_seconds, a.iterations.median_seconds, 0.06 * a.iterations.median_seconds);
  EXPECT_GT(b.busy_share(), 0.8);
  EXPECT_FALSE(b.notes.empty());
  Change change;
  for (const auto call : calls_of(slow, CallKind::stream_sync)) change.no_wait.insert(call);
  EXPECT_NEAR(trace::what_if(slow, b)(change).share, trace::what_if(quick, a)(change).share, 0.05);
}

TEST(Simulation, ACallThatIsGoneTakesItsWaitWithIt) {
  TraceBuilder t;
  for (int i = 0; i < 4; ++i) t.launch("k", 132, 256, 100'000).free().alloc(1 << 20);
  const GpuTrace trace = t.trace();
  Change change;
  for (const auto kind : {CallKind::free, CallKind::alloc}) {
    for (const auto call : calls_of(trace, kind)) change.call_ns[call] = 0;
  }
  // A gap is 40 us of free, 40 us of alloc and 4 us of launch; then 1 us.
  EXPECT_DOUBLE_EQ(saved_ns(trace, change), 3 * (84'000 - 1'000));
}

TEST(Simulation, AFreeThatIsOnlyShorterStillWaits) {
  TraceBuilder t;
  for (int i = 0; i < 4; ++i) t.launch("k", 132, 256, 100'000).free();
  const GpuTrace trace = t.trace();
  Change change;
  for (const auto call : calls_of(trace, CallKind::free)) change.call_ns[call] = 10'000;
  EXPECT_DOUBLE_EQ(saved_ns(trace, change), 3 * 30'000);
}

TEST(Simulation, ASynchronousCopyBlocksTheHostUntilItEnds) {
  TraceBuilder t;
  for (int i = 0; i < 4; ++i) {
    t.copy_h2d(10'000'000, MemoryKind::pageable, false).launch("k", 132, 256, 50'000);
  }
  const GpuTrace trace = t.trace();
  // 1 ms + 1.5 us of copy become 0.2 ms; the call returns as much sooner.
  Change change;
  for (std::uint32_t i = 0; i < trace.ops.size(); ++i) {
    if (trace.ops[i].kind == GpuOpKind::copy) change.op_ns[i] = 201'500;
  }
  EXPECT_DOUBLE_EQ(saved_ns(trace, change), 4 * 800'000);
}

TEST(Simulation, APageableCopyThatIsPinnedIsNotStagedByTheHost) {
  // Real pageable copies: the host fills a buffer before the copy begins, and empties one after it has ended.
  TraceBuilder t;
  for (int i = 0; i < 6; ++i) {
    t.copy_h2d(10'000, MemoryKind::pageable, false)
        .launch("k", 132, 256, 50'000)
        .device_sync()
        .host_work(1'000);
  }
  GpuTrace trace = t.trace();
  std::int64_t later = 0;
  std::size_t copies = 0;
  for (std::size_t i = 0; i < trace.ops.size(); ++i) {
    if (trace.ops[i].kind == GpuOpKind::copy) later += 200'000, ++copies;
    trace.ops[i].begin_ns += later, trace.ops[i].end_ns += later;
  }
  later = 0;
  for (auto& call : trace.calls) {
    call.begin_ns += later;
    if (call.kind == CallKind::copy) later += 200'000;
    call.end_ns += later;
  }
  Change change;
  for (std::uint32_t i = 0; i < trace.ops.size(); ++i) {
    if (trace.ops[i].kind == GpuOpKind::copy) change.op_ns[i] = trace.ops[i].duration_ns() - 500;
  }
  EXPECT_NEAR(saved_ns(trace, change), 200'000.0 * double(copies - 1), 10'000);
}

// What a copy's call takes beside waiting for its op is in the call itself, whatever other copies took.
TEST(Simulation, ACopyThatWaitsIsShorterByWhatItsOpIs) {
  TraceBuilder t;
  t.copy_h2d(4096);
  for (int i = 0; i < 6; ++i) t.launch("k", 132, 256, 50'000).copy_d2h(8 << 20, MemoryKind::pageable, false);
  GpuTrace trace = t.trace();
  trace.calls[calls_of(trace, CallKind::copy)[0]].begin_ns -= 900'000;
  Change change;
  double shorter = 0;
  for (std::uint32_t i = 0; i < trace.ops.size(); ++i) {
    if (trace.ops[i].copy != CopyKind::d2h || trace.ops[i].kind != GpuOpKind::copy) continue;
    change.op_ns[i] = trace.ops[i].duration_ns() / 4;
    shorter += 0.75 * double(trace.ops[i].duration_ns());
  }
  EXPECT_NEAR(saved_ns(trace, change), shorter, 0.05 * shorter);
}

TEST(Simulation, ASyncNoLongerGivesBackWhatAPoolKeeps) {
  TraceBuilder t({.sync_return = 90'000, .pool_call = 60'000});
  t.stream();
  for (int i = 0; i < 5; ++i) {
    t.pool_alloc(1 << 20).launch("k", 132, 256, 100'000).pool_free().stream_sync();
  }
  const GpuTrace trace = t.trace();
  Change change;
  for (const auto kind : {CallKind::pool_alloc, CallKind::pool_free}) {
    for (const auto call : calls_of(trace, kind)) change.call_ns[call] = 0;
  }
  // From kernel to kernel 90 us of return, 60 us of allocation and 4 us of launch; then 4 us of each.
  EXPECT_NEAR(saved_ns(trace, change), 4 * (154'000 - 8'000), 4'000);
}

TEST(Simulation, OpsThatAreGoneTakeTheirCallsWithThem) {
  TraceBuilder t;
  for (int i = 0; i < 4; ++i) {
    t.copy_h2d(4, MemoryKind::pageable, false).launch("k", 132, 256, 50'000).device_sync();
  }
  const GpuTrace trace = t.trace();
  Change change;
  for (std::uint32_t i = 0; i < trace.ops.size(); ++i) {
    if (trace.ops[i].kind == GpuOpKind::copy) change.gone.insert(i);
  }
  // From one kernel to the next: sync 2.5, copy 4 + 1.5 + 1, launch 4 us; then 2.5 + 4. The first copy goes as well.
  const auto lead = trace.ops[1].begin_ns - trace.ops[0].begin_ns;
  EXPECT_NEAR(saved_ns(trace, change), 3 * 6'500 + double(lead), 1e-3);
}

TEST(Simulation, ACopyInItsOwnStreamRunsBesideKernelsAndIsStillWaitedFor) {
  const auto saved = [](std::int64_t kernel_ns) {
    TraceBuilder t;
    t.stream();
    for (int i = 0; i < 4; ++i) t.copy_h2d(5'500'000).launch("k", 8, 256, kernel_ns);
    const GpuTrace trace = t.trace();
    Change change;
    for (std::uint32_t i = 0; i < trace.ops.size(); ++i) {
      if (trace.ops[i].kind == GpuOpKind::copy) change.own_stream.insert(i);
    }
    return saved_ns(trace, change);
  };
  // Copy 101.5 and kernel 100 us in turns, with 1 us between: then copies one behind the other, and the last kernel.
  EXPECT_DOUBLE_EQ(saved(100'000), 4 * 101'500 + 4 * 100'000 + 7 * 1'000 - (4 * 101'500 + 1'000 + 100'000));
  // Longer kernels still follow each other: the first copy, then they decide.
  EXPECT_DOUBLE_EQ(saved(150'000), 4 * 101'500 + 4 * 150'000 + 7 * 1'000 - (101'500 + 4 * 151'000));
}

TEST(Simulation, KernelsThatFillTheDeviceGainNothingFromStreamsOfTheirOwn) {
  TraceBuilder t;
  for (int i = 0; i < 4; ++i) t.launch("full", 132 * 8, 256, 100'000);
  GpuTrace trace = t.trace();
  EXPECT_EQ(saved_ns(trace, {.own_stream = {1, 2, 3}}), 0);
  TraceBuilder small;
  for (int i = 0; i < 4; ++i) small.launch("small", 8, 256, 100'000);
  trace = small.trace();
  EXPECT_GT(saved_ns(trace, {.own_stream = {1, 2, 3}}), 250'000);
}

TEST(Simulation, EventsOrderStreams) {
  TraceBuilder t;
  const auto one = t.stream().current_stream();
  const auto two = t.stream().current_stream();
  t.on_stream(one).launch("first", 8, 256, 200'000).record_event(1);
  t.on_stream(two).stream_wait(1).launch("second", 8, 256, 100'000);
  EXPECT_DOUBLE_EQ(saved_ns(t.trace(), {.op_ns = {{0, 50'000}}}), 150'000);
}

TEST(Simulation, AnEventThatIsUsedAgainMeansItsLastRecord) {
  TraceBuilder t;
  const auto one = t.stream().current_stream();
  const auto two = t.stream().current_stream();
  for (int i = 0; i < 2; ++i) {
    t.on_stream(one).launch("long", 8, 256, 200'000).record_event(1);
    t.on_stream(two).stream_wait(1).launch("short", 8, 256, 10'000);
  }
  const GpuTrace trace = t.trace();
  // The end hangs on both long kernels, not on the first alone.
  const auto longs = ops_named(trace, "long");
  EXPECT_DOUBLE_EQ(saved_ns(trace, {.op_ns = {{longs[1], 100'000}}}), 100'000);
}

TEST(Simulation, TheLegacyDefaultStreamOrdersBlockingStreams) {
  TraceBuilder t;
  const auto blocking = t.stream({.blocking = true}).current_stream();
  t.on_stream(blocking).launch("a", 8, 256, 200'000).on_stream(0).launch("b", 8, 256, 200'000);
  EXPECT_DOUBLE_EQ(saved_ns(t.trace(), {.op_ns = {{0, 50'000}}}), 150'000);
  TraceBuilder free_running;
  const auto own = free_running.stream().current_stream();
  free_running.on_stream(own).launch("a", 8, 256, 200'000).on_stream(0).launch("b", 8, 256, 200'000);
  EXPECT_EQ(saved_ns(free_running.trace(), {.op_ns = {{0, 50'000}}}), 0);
}

TEST(Simulation, OrderCountsAlsoWhereItDidNotDecide) {
  // The second op came late by itself; with a longer first one it has to wait for it.
  TraceBuilder events;
  const auto one = events.stream().current_stream();
  const auto two = events.stream().current_stream();
  events.on_stream(one).launch("first", 8, 256, 10'000).record_event(1).host_work(50'000);
  events.on_stream(two).stream_wait(1).launch("second", 8, 256, 10'000);
  TraceBuilder legacy;
  const auto blocking = legacy.stream({.blocking = true}).current_stream();
  legacy.on_stream(0)
      .launch("first", 8, 256, 10'000)
      .host_work(50'000)
      .on_stream(blocking)
      .launch("second", 8, 256, 10'000);
  for (const GpuTrace& trace : {events.trace(), legacy.trace()}) {
    const auto span = trace.ops[1].end_ns - trace.ops[0].begin_ns;
    EXPECT_NEAR(saved_ns(trace, {.op_ns = {{0, 500'000}}}), double(span) - (500'000 + 1'000 + 10'000), 1e-3);
  }
}

TEST(Simulation, PollingEndsWhenTheWorkDoes) {
  TraceBuilder t;
  for (int i = 0; i < 3; ++i) {
    t.launch("k", 132, 256, 100'000);
    while (t.host_now() < t.last_op().end_ns + 500) t.query();
    t.host_work(5'000);
  }
  const GpuTrace trace = t.trace();
  const double saved = saved_ns(trace, {.op_ns = {{0, 20'000}, {1, 20'000}}});
  EXPECT_NEAR(saved, 160'000, 2'000);
}

TEST(Simulation, TheThreadOfTheBackwardPassTakesTurnsWithTheMainThread) {
  TraceBuilder t;
  t.thread("backward").on_thread(0);
  for (int step = 0; step < 6; ++step) {
    for (int i = 0; i < 5; ++i) t.host_work(20'000).launch("forward", 8, 256, 2'000);
    t.on_thread(1).at(t.host_now()).join_thread(0);
    for (int i = 0; i < 5; ++i) t.host_work(20'000).launch("backward", 8, 256, 2'000);
    t.on_thread(0).join_thread(1);
  }
  const GpuTrace trace = t.trace();
  const Timeline timeline = trace::timeline(trace);
  ASSERT_TRUE(timeline.simulated) << timeline.why_not;
  // With half the host work the run takes half as long: neither thread holds the other to its old times.
  const auto what_if = trace::what_if(trace, timeline);
  EXPECT_NEAR(what_if({.host_scale = 0.5}).share, 0.5 * 20.0 / 22.2, 0.03);
  // Nor when one of them alone becomes faster.
  Change forward;
  for (std::uint32_t c = 0; c < trace.calls.size(); ++c) {
    if (trace.calls[c].thread == 0) forward.host_before_ns[c] = 0;
  }
  EXPECT_NEAR(what_if(forward).share, 0.5 * 20.0 / 22.2, 0.05);
}

TEST(Simulation, WindowsAreSimulatedOnTheirOwnAndSummed) {
  TraceBuilder t;
  for (int window = 0; window < 3; ++window) {
    t.window_begin();
    for (int i = 0; i < 4; ++i) t.launch("k", 132, 256, 10'000).device_sync().host_work(100'000);
    t.window_end();
    for (int i = 0; i < 40; ++i) t.launch("k", 132, 256, 10'000).device_sync().host_work(100'000);
  }
  const GpuTrace trace = t.trace();
  ASSERT_EQ(trace.ops.size(), 12u);
  EXPECT_DOUBLE_EQ(saved_ns(trace, {.host_scale = 0.5}), 3 * 3 * 50'000);
}

}  // namespace
}  // namespace fulcrum::test
