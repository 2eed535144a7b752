// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// What a simulated run waits for where the trace says it in a roundabout way: room on the device and in the queue, copies
// that return early, frees that do not drain, nodes of a graph side by side.
#include <fulcrum/trace.h>
#include <gtest/gtest.h>

#include "support/traces.h"
#include "trace/simulated.h"

namespace fulcrum::test {
namespace {

void place(GpuTrace::Op& op, std::int64_t begin_ns, std::int64_t length_ns) {
  op.begin_ns = begin_ns;
  op.end_ns = begin_ns + length_ns;
}

TEST(SimulatedWaits, AKernelMayWaitForRoomUntilAnotherRunsOutOfBlocks) {
  // Grids that fill the device, and ones that take its shared memory: these are known by when they begin alone.
  for (const int blocks_per_sm : {9, 3}) {
    TraceBuilder t;
    const auto one = t.stream().current_stream();
    const auto two = t.stream().current_stream();
    for (int i = 0; i < 6; ++i) t.on_stream(i % 2 ? two : one).launch("k", 132 * blocks_per_sm, 256, 500'000);
    GpuTrace trace = t.trace();
    // Each comes in 50 us before the one of the other stream ends.
    for (std::size_t i = 0; i < trace.ops.size(); ++i)
      place(trace.ops[i], 4'000 + std::int64_t(i) * 450'000, 500'000);
    Change change;
    for (std::uint32_t i = 0; i < 6; ++i) change.op_ns[i] = 250'000;
    EXPECT_NEAR(saved_ns(trace, change), 6 * 250'000, 10'000) << blocks_per_sm;
    // One alone that becomes shorter lets the others in sooner.
    Change first;
    first.op_ns[0] = 250'000;
    EXPECT_NEAR(saved_ns(trace, first), 250'000, 10'000) << blocks_per_sm;
  }
}

TEST(SimulatedWaits, NodesOfAGraphThatRunSideBySideDoNotWaitForEachOther) {
  TraceBuilder t;
  t.stream();
  t.graph_launch({{"first", 132, 256, 100'000},
                  {"left", 132, 256, 500'000},
                  {"right", 132, 256, 500'000},
                  {"last", 132, 256, 100'000}});
  GpuTrace trace = t.trace();
  place(trace.ops[2], trace.ops[1].begin_ns + 10'000, 500'000);
  place(trace.ops[3], trace.ops[2].end_ns + 1'000, 100'000);
  Change change;
  change.op_ns[1] = 10'000;
  // Right is what the last one waits for, and right waits for the first.
  EXPECT_NEAR(saved_ns(trace, change), 0, 1'000);
}

TEST(SimulatedWaits, APageableCopyMayReturnALittleBeforeItEnds) {
  TraceBuilder t;
  for (int i = 0; i < 4; ++i)
    t.copy_h2d(10'000'000, MemoryKind::pageable, false).launch("k", 132, 256, 50'000);
  GpuTrace trace = t.trace();
  Change change;
  for (std::uint32_t i = 0; i < trace.ops.size(); ++i)
    if (trace.ops[i].kind == GpuOpKind::copy) change.op_ns[i] = 201'500;
  for (const auto call : calls_of(trace, CallKind::copy)) trace.calls[call].end_ns -= 61'000;
  EXPECT_NEAR(saved_ns(trace, change), 4 * 800'000, 4 * 70'000);
}

TEST(SimulatedWaits, LaunchesWaitForRoomInTheQueueAlsoWhenThatIsShort) {
  constexpr std::size_t kQueue = 1024, kLaunches = 4000;
  constexpr std::int64_t kKernelNs = 10'000, kShortNs = 4'000;
  TraceBuilder t;
  for (std::size_t i = 0; i < kLaunches; ++i) t.launch("work", 132, 256, kKernelNs);
  GpuTrace trace = t.trace();
  std::int64_t now = trace.calls[kQueue].begin_ns;
  for (std::size_t i = kQueue; i < kLaunches; ++i) {
    GpuTrace::Call& call = trace.calls[i];
    call.begin_ns = now + 500;
    call.end_ns = now = std::max(call.begin_ns + 2200, trace.ops[i - kQueue].end_ns + 1500);
  }
  Change shorter;
  for (std::uint32_t i = 0; i < kLaunches; ++i) shorter.op_ns[i] = kShortNs;
  EXPECT_NEAR(saved_ns(trace, shorter), kLaunches * double(kKernelNs - kShortNs),
              0.05 * kLaunches * kKernelNs);
}

TEST(SimulatedWaits, AFreeThatReturnsWhileWorkRunsHasNotDrainedTheDevice) {
  TraceBuilder t;
  const auto one = t.stream().current_stream();
  const auto two = t.stream().current_stream();
  t.on_stream(two).launch("long", 32, 256, 300'000);
  t.on_stream(one).launch("short", 32, 256, 100'000).free();
  t.on_stream(one).launch("next", 32, 256, 1'000'000);
  GpuTrace trace = t.trace();
  const auto freed = calls_of(trace, CallKind::free).at(0);
  GpuTrace::Call &free_call = trace.calls[freed], &launch = trace.calls[freed + 1];
  free_call.end_ns = free_call.begin_ns + 150'000;  // the short one has ended by then, the long one has not
  launch.begin_ns = free_call.end_ns;
  launch.end_ns = launch.begin_ns + 2'200;
  place(trace.ops[2], launch.begin_ns + 4'000, 1'000'000);
  Change change;
  change.op_ns[1] = 10'000;
  EXPECT_NEAR(saved_ns(trace, change), 0, 1'000);
}

}  // namespace
}  // namespace fulcrum::test
