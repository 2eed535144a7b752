// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Rules about a GPU that waits for its host: launches, waits, allocations, host compute.
#include "support/timeline_rules.h"

namespace fulcrum::test {
namespace {

constexpr std::int64_t kFilling = 132 * 16;

// 50 us kernels with a wait after each: launch to begin 4, kernel 50, return 2.5.
GpuTrace waits_after_each(int kernels, std::int64_t kernel_ns = 50'000) {
  TraceBuilder t;
  t.alloc(1 << 20);
  for (int i = 0; i < kernels; ++i) t.launch("step(float*)", kFilling, 256, kernel_ns).device_sync();
  return t.trace();
}

TEST(SyncStall, FindsAWaitAfterEveryKernel) {
  const Traced traced(waits_after_each(200));
  const auto findings = traced.findings("sync_stall");
  ASSERT_EQ(findings.size(), 1u);
  // Idle 6.5 us of 56.5, of which 1 stays between two queued kernels; 4 of it after the wait.
  expect_saved(findings[0], 4, 5.5, 56.5);
  EXPECT_EQ(findings[0].grade, Evidence::measured);
  EXPECT_FALSE(findings[0].change.no_wait.empty());
}

TEST(SyncStall, KeepsSilentAboutOneWaitAStepThatCostsLittle) {
  TraceBuilder t;
  for (int i = 0; i < 50; ++i) {
    for (int k = 0; k < 10; ++k) t.launch("step(float*)", kFilling, 256, 100'000);
    t.device_sync();  // 6.5 us of 1015
  }
  EXPECT_TRUE(Traced(t.trace()).findings("sync_stall").empty());
  TraceBuilder one;
  for (int i = 0; i < 100; ++i) one.launch("step(float*)", kFilling, 256, 200'000).device_sync();  // 3 %
  EXPECT_TRUE(Traced(one.trace()).findings("sync_stall").empty());
  TraceBuilder read;
  for (int i = 0; i < 100; ++i)
    read.launch("step(float*)", kFilling, 256, 150'000).copy_d2h(4).stream_sync();  // below a tenth
  EXPECT_TRUE(Traced(read.trace()).findings("sync_stall").empty());
}

// A framework takes 12 us for each launch, and 90 us from a result that it read to its next one; its kernels take longer
// than that all together, so without the wait it would keep up.
TEST(SyncStall, OwnsTheLaunchesThatComeLateAfterAWaitWithoutWhichTheHostKeepsUp) {
  TraceBuilder t;
  for (int i = 0; i < 60; ++i) {
    t.host_work(90'000);
    for (int k = 0; k < 30; ++k)
      t.host_work(10'000).launch("op(float*)", kFilling, 256, k < 6 ? 4'000 : 30'000);
    t.copy_d2h(4).stream_sync();
  }
  const Traced traced(t.trace());
  const auto findings = traced.findings("sync_stall");
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_GT(findings[0].saved_high, 0.1) << findings[0].claim;
  EXPECT_NE(findings[0].claim.find("Reading results back"), std::string::npos) << findings[0].claim;
  EXPECT_TRUE(traced.findings("idle_gaps").empty());
  EXPECT_TRUE(traced.findings("launch_bound").empty());
}

TEST(SyncStall, IsNotSureAboutWaitsForResults) {
  TraceBuilder t;
  for (int i = 0; i < 100; ++i) t.launch("step(float*)", kFilling, 256, 50'000).copy_d2h(4).stream_sync();
  const auto findings = Traced(t.trace()).findings("sync_stall");
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].saved_low, 0);
  EXPECT_GT(findings[0].saved_high, 0.05);
}

TEST(SyncStall, FindsAFewBytesReadBackByASynchronousCopy) {
  TraceBuilder t;
  for (int i = 0; i < 100; ++i) {
    t.launch("step(float*)", kFilling, 256, 50'000).copy_d2h(8, MemoryKind::pageable, false);
  }
  const Traced traced(t.trace());
  const auto findings = traced.findings("sync_stall");
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].saved_low, 0);
  EXPECT_TRUE(traced.findings("pageable_copy").empty());
}

TEST(SyncStall, FindsWaitingByPolling) {
  TraceBuilder t;
  for (int i = 0; i < 100; ++i) {
    t.launch("step(float*)", kFilling, 256, 30'100);
    while (t.host_now() < t.last_op().end_ns) t.query();
  }
  const Traced traced(t.trace());
  EXPECT_EQ(traced.findings("sync_stall").size(), 1u);
  EXPECT_TRUE(traced.findings("launch_bound").empty());
}

TEST(SyncStall, IsSilentOnCleanTraces) { expect_silent_on_clean("sync_stall"); }

TEST(LaunchBound, FindsKernelsShorterThanTheirLaunches) {
  TraceBuilder t;
  t.alloc(1 << 20);
  for (int step = 0; step < 40; ++step) {
    t.launch("first(float*)", kFilling, 256, 1'200);
    for (int i = 0; i < 39; ++i) t.host_work(2'000).launch("next(float*)", kFilling, 256, 1'200);
    t.host_work(2'000);
  }
  const Traced traced(t.trace());
  const auto findings = traced.findings("launch_bound");
  ASSERT_EQ(findings.size(), 1u);
  // A kernel every 4.2 us, as a node every 1.2 + 0.125: 0.2 less or 0.5 more between two of them. With the host's 2 us
  // left where they are every 2.0.
  EXPECT_NEAR(findings[0].saved_low, 0.95 * (4.2 - 2.0 - 0.5) / 4.2 - 0.01, 0.02);
  EXPECT_NEAR(findings[0].saved_high, 1.05 * (4.2 - 1.2) / 4.2 + 0.01, 0.02);
  EXPECT_EQ(findings[0].grade, Evidence::measured);
}

TEST(LaunchBound, GainsWhatTheHostTakesBetweenKernels) {
  const Traced traced(launch_bound());
  const auto findings = traced.findings("launch_bound");
  ASSERT_EQ(findings.size(), 1u);
  // A kernel every 5.2 us, 1.8 of it busy. As nodes they follow each other in 0.125, or up to 0.2 faster; with the host's
  // 3 us left where they are: every 3.03 us, and 0.5 more between nodes. Three kernels repeat, of which a graph of one
  // such step launches the first.
  EXPECT_NEAR(findings[0].saved_low, 2. / 3 * 0.95 * (5.2 - 3.03 - 0.5) / 5.2 - 0.01, 0.005);
  EXPECT_NEAR(findings[0].saved_high, 1.05 * (5.2 - 1.8) / 5.2 + 0.01, 0.02);
  EXPECT_FALSE(findings[0].change.not_launched.empty());
}

TEST(LaunchBound, OneKernelAgainAndAgainMayBecomeALoopInIt) {
  const auto high = [](int kernels, std::int64_t ns) {
    TraceBuilder t;
    for (int i = 0; i < 600; ++i)
      t.host_work(3'000).launch("k" + std::to_string(i % kernels) + "(float*)", kFilling, 256, ns);
    const auto findings = Traced(t.trace()).findings("launch_bound");
    return findings.size() == 1 ? findings[0].saved_high : -1;
  };
  EXPECT_NEAR(high(1, 1'000) - high(2, 1'000), 1.05 * 0.45 / 5.2, 0.01);
  EXPECT_NEAR(high(1, 1'200) - high(2, 1'200), 0, 0.01) << "it does something";
}

TEST(LaunchBound, AtTheLowEndAGraphHoldsOneStep) {
  const auto low = [](int kernels) {
    TraceBuilder t;
    for (int i = 0; i < 600; ++i)
      t.host_work(3'000).launch("k" + std::to_string(i % kernels) + "(float*)", kFilling, 256, 1'800);
    const auto findings = Traced(t.trace()).findings("launch_bound");
    return findings.size() == 1 ? findings[0].saved_low : -1;
  };
  const double whole = (5.2 - 3.03 - 0.5) / 5.2;  // as above
  EXPECT_NEAR(low(1), 0.95 * whole - 0.01, 0.01) << "one launch is no graph";
  EXPECT_NEAR(low(2), 0.95 * whole / 2 - 0.01, 0.01);
  EXPECT_NEAR(low(3), 0.95 * whole * 2 / 3 - 0.01, 0.01);
  EXPECT_GT(low(6), 0.95 * whole * 4 / 5 - 0.01);
}

TEST(LaunchBound, KnowsWhatTracingCost) {
  const Traced plain(launch_bound()), slowed(launch_bound(), {.record_seconds = 1e-6});
  const auto before = plain.findings("launch_bound"), after = slowed.findings("launch_bound");
  ASSERT_EQ(before.size(), 1u);
  ASSERT_EQ(after.size(), 1u);
  EXPECT_LT(after[0].saved_low, before[0].saved_low);
  EXPECT_LE(after[0].saved_high, before[0].saved_high);
}

TEST(LaunchBound, LeavesWaitsToTheRuleAboutThem) {
  const Traced traced(waits_after_each(300, 2'000));
  EXPECT_TRUE(traced.findings("launch_bound").empty());
  EXPECT_EQ(traced.findings("sync_stall").size(), 1u);
}

TEST(LaunchBound, KeepsSilentWhereKernelsHideTheLaunches) {
  EXPECT_TRUE(Traced(launch_bound(30, 60)).findings("idle_gaps").empty());
  TraceBuilder t;
  for (int i = 0; i < 500; ++i) t.host_work(1'000).launch("step(float*)", kFilling, 256, 5'000);
  EXPECT_TRUE(Traced(t.trace()).findings("launch_bound").empty());
}

TEST(LaunchBound, IsSilentOnCleanTraces) { expect_silent_on_clean("launch_bound"); }

TEST(IdleGaps, FindsHostComputeBetweenLaunches) {
  TraceBuilder t;
  t.alloc(1 << 20);
  for (int i = 0; i < 500; ++i) t.host_work(397'800).launch("step(float*)", kFilling, 256, 100'000);
  const Traced traced(t.trace());
  const auto findings = traced.findings("idle_gaps");
  ASSERT_EQ(findings.size(), 1u);
  // 400 us a step, 300 idle, 1 of it stays; at the least 65 of the 100 busy ones hide host time, which becomes a tenth
  // longer.
  expect_saved(findings[0], 65 - 29.9, 299, 400);
  EXPECT_NE(findings[0].evidence.back().find("not checked"), std::string::npos);
  EXPECT_TRUE(traced.findings("launch_bound").empty());
  EXPECT_TRUE(traced.findings("sync_stall").empty());
  // Half of that where the host's work is most of the step.
  TraceBuilder more;
  for (int i = 0; i < 500; ++i) more.host_work(997'800).launch("step(float*)", kFilling, 256, 100'000);
  const auto bound = Traced(more.trace()).findings("idle_gaps");
  ASSERT_EQ(bound.size(), 1u);
  EXPECT_NEAR(bound[0].saved_low, 0.95 * 32.5 / 1000 - 0.01, 0.003);
}

TEST(IdleGaps, SurelyHidesMostOfWhatIsShorterThanTheGpusWork) {
  TraceBuilder t;
  for (int i = 0; i < 200; ++i)
    t.launch("step(float*)", kFilling, 256, 100'000).device_sync().host_work(50'000);
  const auto findings = Traced(t.trace()).findings("idle_gaps");
  ASSERT_EQ(findings.size(), 1u);
  // A step of 156.5 us, of which 55.5 are idle.
  EXPECT_NEAR(findings[0].saved_low, 0.95 * 0.65 * 55.5 / 156.5 - 0.01, 0.003);
}

TEST(IdleGaps, KeepsSilentWhereTheHostRunsAhead) {
  TraceBuilder t;
  for (int i = 0; i < 100; ++i) t.host_work(90'000).launch("step(float*)", kFilling, 256, 100'000);
  EXPECT_TRUE(Traced(t.trace()).findings("idle_gaps").empty());
}

TEST(IdleGaps, LeavesGapsAfterPromptLaunchesToTheRuleAboutWaits) {
  EXPECT_TRUE(Traced(waits_after_each(200)).findings("idle_gaps").empty());
}

TEST(IdleGaps, OwnsHostComputeBehindAWait) {
  TraceBuilder t;
  for (int i = 0; i < 200; ++i)
    t.launch("step(float*)", kFilling, 256, 30'000).device_sync().host_work(40'000);
  const Traced traced(t.trace());
  EXPECT_EQ(traced.findings("idle_gaps").size(), 1u);
  EXPECT_TRUE(traced.findings("launch_bound").empty());
  EXPECT_TRUE(traced.findings("sync_stall").empty());
}

TEST(IdleGaps, OwnsHostComputeBehindASynchronousCopy) {
  // Shorter than what a framework takes to launch something: that it comes behind a wait tells it from that.
  TraceBuilder t;
  for (int i = 0; i < 200; ++i)
    t.launch("step(float*)", kFilling, 256, 60'000)
        .copy_d2h(4 << 10, MemoryKind::pinned, false)
        .host_work(12'000);
  const Traced traced(t.trace());
  const auto findings = traced.findings("idle_gaps");
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_NE(findings[0].evidence[0].find("1 gap a step"), std::string::npos) << findings[0].evidence[0];
  EXPECT_TRUE(traced.findings("launch_bound").empty());
}

TEST(IdleGaps, NamesTheFunction) {
  TraceBuilder t;
  for (int i = 0; i < 50; ++i) t.host_work(397'800).launch("step(float*)", kFilling, 256, 100'000);
  Traced traced(t.trace());
  for (auto& gap : traced.timeline.gaps) gap.function = "prepare_batch";
  const auto findings = traced.findings("idle_gaps");
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].claim, "The GPU idles 75 % of the time while the host is in prepare_batch");
}

TEST(IdleGaps, IsSilentOnCleanTraces) { expect_silent_on_clean("idle_gaps"); }

TEST(AllocInLoop, FindsMemoryAllocatedAndFreedInEveryStep) {
  TraceBuilder t;
  for (int i = 0; i < 500; ++i) t.alloc(32 << 20).launch("step(float*)", kFilling, 256, 100'000).free();
  const Traced traced(t.trace());
  const auto findings = traced.findings("alloc_in_loop");
  ASSERT_EQ(findings.size(), 1u);
  // 184 us a step: 40 to allocate, 4 to the kernel, 100, 40 to free. Alone, kernels follow each other every 101.
  EXPECT_NEAR(findings[0].saved_high, 1.05 * 83 / 184 + 0.01, 0.003);
  EXPECT_GT(findings[0].saved_low, 0.15);
  EXPECT_TRUE(traced.findings("sync_stall").empty());
  EXPECT_TRUE(traced.findings("idle_gaps").empty());
}

TEST(AllocInLoop, KeepsSilentAboutAPoolThatIsOne) {
  TraceBuilder t;
  for (int i = 0; i < 100; ++i)
    t.pool_alloc(32 << 20).launch("step(float*)", kFilling, 256, 100'000).pool_free();
  EXPECT_TRUE(Traced(t.trace()).findings("alloc_in_loop").empty());
  // Several a step behind a wait, each as quick as a launch: the GPU idles for them, and yet nothing is allocated.
  TraceBuilder waits({.pool_call = 1'500});
  for (int i = 0; i < 100; ++i) {
    for (int k = 0; k < 6; ++k) waits.pool_alloc(32 << 20);
    waits.launch("step(float*)", kFilling, 256, 60'000);
    for (int k = 0; k < 6; ++k) waits.pool_free();
    waits.device_sync();
  }
  EXPECT_TRUE(Traced(waits.trace()).findings("alloc_in_loop").empty());
}

TEST(AllocInLoop, KeepsSilentAboutWarmUp) {
  TraceBuilder t;
  for (int i = 0; i < 8; ++i) t.alloc(32 << 20).launch("warm(float*)", kFilling, 256, 100'000);
  for (int i = 0; i < 100; ++i) t.launch("step(float*)", kFilling, 256, 100'000);
  EXPECT_TRUE(Traced(t.trace()).findings("alloc_in_loop").empty());
}

TEST(AllocInLoop, OwnsGapsOfSlowAllocationsBehindAWait) {
  TraceBuilder t({.pool_call = 60'000});
  for (int i = 0; i < 200; ++i) {
    t.pool_alloc(64 << 20).launch("step(float*)", kFilling, 256, 100'000).pool_free().device_sync();
  }
  const Traced traced(t.trace());
  EXPECT_EQ(traced.findings("alloc_in_loop").size(), 1u);
  EXPECT_TRUE(traced.findings("sync_stall").empty());
}

TEST(AllocInLoop, IsSilentOnCleanTraces) { expect_silent_on_clean("alloc_in_loop"); }

// Steps that launch a graph of 40 kernels and wait for it; the first `instantiated` of them make the graph anew.
GpuTrace graph_steps(int instantiated, int count = 60, std::int64_t ns = 400'000) {
  TraceBuilder t;
  const std::vector<TraceNode> nodes(40, TraceNode{"node(float*)", kFilling, 256, 5'000});
  for (int i = 0; i < count; ++i) {
    if (i < instantiated) t.instantiate_graph(ns);
    t.graph_launch(nodes).stream_sync();
  }
  return t.trace();
}

TEST(SetupInLoop, FindsAGraphThatIsMadeAnewInEveryStep) {
  const Traced traced(graph_steps(400, 400));
  const auto findings = traced.findings("setup_in_loop");
  ASSERT_EQ(findings.size(), 1u);
  // 400 us, 6 to the first node, 40 of 5 with 0.7 between them, 2.5 to the end of the wait. Gone are the 400.
  const double step = 400 + 6 + 40 * 5 + 39 * 0.7 + 2.5;
  EXPECT_NEAR(traced.timeline.iterations.median_seconds, step * 1e-6, 1e-7);
  expect_saved(findings[0], 0.8 * 400, 400, step);
  EXPECT_NE(findings[0].claim.find("A graph is instantiated every step"), std::string::npos)
      << findings[0].claim;
  EXPECT_NEAR(traced.timeline.busy_share(), 200 / step, 0.01);
  for (const char* other : {"idle_gaps", "sync_stall", "launch_bound", "alloc_in_loop"})
    EXPECT_TRUE(traced.findings(other).empty()) << other;
}

TEST(SetupInLoop, FindsModulesThatAreLoadedAgain) {
  TraceBuilder t;
  for (int i = 0; i < 40; ++i)
    t.module_load(300'000).launch("step(float*)", kFilling, 256, 500'000).device_sync();
  const auto findings = Traced(t.trace()).findings("setup_in_loop");
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].subject, "modules");
}

TEST(SetupInLoop, KeepsSilentAboutWarmUpAndAHostThatRunsAhead) {
  EXPECT_TRUE(Traced(graph_steps(0)).findings("setup_in_loop").empty());
  EXPECT_TRUE(Traced(graph_steps(12)).findings("setup_in_loop").empty());  // then it keeps its graphs
  EXPECT_TRUE(Traced(graph_steps(12, 60, 60'000)).findings("setup_in_loop").empty());
  TraceBuilder ahead;
  const std::vector<TraceNode> nodes(40, TraceNode{"node(float*)", kFilling, 256, 50'000});
  for (int i = 0; i < 40; ++i) ahead.instantiate_graph(400'000).graph_launch(nodes);
  EXPECT_TRUE(Traced(ahead.trace()).findings("setup_in_loop").empty());
}

TEST(SetupInLoop, IsSilentOnCleanTraces) { expect_silent_on_clean("setup_in_loop"); }

TEST(QueryStorm, FindsAHostThatPolls) {
  TraceBuilder t;
  for (int i = 0; i < 20; ++i) {
    t.launch("step(float*)", kFilling, 256, 200'000);
    for (int q = 0; q < 300; ++q) t.query();
  }
  const auto findings = Traced(t.trace()).findings("query_storm");
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].saved_high, 0);
  EXPECT_NE(findings[0].claim.find("queries a step"), std::string::npos) << findings[0].claim;
}

TEST(QueryStorm, KeepsSilentAboutAFew) {
  TraceBuilder t;
  for (int i = 0; i < 20; ++i) {
    t.launch("step(float*)", kFilling, 256, 200'000);
    for (int q = 0; q < 20; ++q) t.query();
  }
  EXPECT_TRUE(Traced(t.trace()).findings("query_storm").empty());
}

TEST(QueryStorm, IsSilentOnCleanTraces) { expect_silent_on_clean("query_storm"); }

TEST(HostRules, WithoutCallsAreNotChecked) {
  const Traced traced(waits_after_each(200));
  for (const char* id : {"launch_bound", "idle_gaps", "sync_stall", "query_storm", "alloc_in_loop",
                         "pageable_copy", "small_copies", "redundant_copy", "no_overlap", "default_stream"}) {
    const auto looked = traced.without_calls(id);
    EXPECT_TRUE(looked.findings.empty()) << id;
    EXPECT_TRUE(looked.not_checked) << id;
  }
}

}  // namespace
}  // namespace fulcrum::test
