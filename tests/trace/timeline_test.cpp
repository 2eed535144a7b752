// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// The timeline of a trace: busy time, gaps and their causes, kernels, iterations, costs, counters.
#include <fulcrum/trace.h>
#include <gtest/gtest.h>

#include "support/traces.h"

namespace fulcrum::test {
namespace {

using trace::timeline;

const Timeline::Kernel& kernel_named(const GpuTrace& trace, const Timeline& line, const std::string& name) {
  for (const auto& kernel : line.kernels) {
    if (trace.shapes[kernel.shape].name == name) return kernel;
  }
  throw std::runtime_error("no kernel " + name);
}

/// Causes of steady gaps that are longer than what lies between queued ops.
std::map<GapCause, int> causes(const Timeline& line) {
  std::map<GapCause, int> result;
  for (const auto& gap : line.gaps) {
    if (gap.steady && gap.cause != GapCause::queue) ++result[gap.cause];
  }
  return result;
}

TEST(Timeline, OfNothingIsEmpty) {
  const Timeline line = timeline(GpuTrace{});
  EXPECT_EQ(line.seconds, 0);
  EXPECT_EQ(line.busy_share(), 0);
  EXPECT_FALSE(line.simulated);
  EXPECT_FALSE(line.why_not.empty());
}

TEST(Timeline, BusyTimeIsAUnionAndNotASumOverStreams) {
  TraceBuilder t;
  const auto one = t.stream().current_stream();
  const auto two = t.stream().current_stream();
  t.on_stream(one).launch("a", 8, 256, 100'000).on_stream(two).launch("b", 8, 256, 100'000);
  const Timeline line = timeline(t.trace());
  // The second begins 2.2 us after the first.
  EXPECT_DOUBLE_EQ(line.seconds, 102'200e-9);
  EXPECT_DOUBLE_EQ(line.devices.at(0).busy_seconds, 102'200e-9);
  EXPECT_DOUBLE_EQ(line.busy_share(), 1);
  EXPECT_EQ(line.devices[0].ops, 2);
}

TEST(Timeline, ExposedCopiesAreThoseWithoutAKernelBesideThem) {
  TraceBuilder t;
  const auto compute = t.stream().current_stream();
  const auto upload = t.stream().current_stream();
  t.on_stream(compute).launch("k", 132 * 8, 256, 300'000);         // from 4 to 304 us
  t.on_stream(upload).copy_h2d(55 * 100'000);                      // 101.5 us, hidden
  t.on_stream(compute).copy_d2h(55 * 50'000, MemoryKind::pinned);  // 51.5 us, from 305 us on
  const Timeline line = timeline(t.trace());
  EXPECT_NEAR(line.devices.at(0).exposed_copy_seconds, 51.5e-6, 1e-12);
  EXPECT_NEAR(line.devices[0].copy_seconds, 153e-6, 1e-12);
  EXPECT_NEAR(line.devices[0].kernel_seconds, 300e-6, 1e-12);
}

TEST(Timeline, SaysWhyTheGpuWaited) {
  struct Case {
    const char* what;
    GapCause cause;
    void (*between)(TraceBuilder&);
  };
  const Case cases[] = {
      {"host work", GapCause::host, [](TraceBuilder& t) { t.host_work(500'000); }},
      {"a wait", GapCause::sync, [](TraceBuilder& t) { t.device_sync(); }},
      {"a wait for an event", GapCause::sync, [](TraceBuilder& t) { t.record_event(1).event_sync(1); }},
      {"a wait and much host work", GapCause::host,
       [](TraceBuilder& t) { t.device_sync().host_work(200'000); }},
      {"memory", GapCause::alloc, [](TraceBuilder& t) { t.free().alloc(1 << 20); }},
      {"code", GapCause::module_load, [](TraceBuilder& t) { t.module_load(2'000'000, "jit"); }},
  };
  for (const Case& c : cases) {
    TraceBuilder t;
    t.launch("a", 132, 256, 50'000);
    c.between(t);
    t.launch("b", 132, 256, 50'000);
    const Timeline line = timeline(t.trace());
    ASSERT_EQ(line.gaps.size(), 1u) << c.what;
    EXPECT_EQ(line.gaps[0].cause, c.cause) << c.what << ": " << to_string(line.gaps[0].cause);
    EXPECT_EQ(line.gaps[0].before, 0u);
    EXPECT_EQ(line.gaps[0].after, 1u);
  }
}

TEST(Timeline, KernelsShorterThanTheirLaunchesWaitForLaunches) {
  const Timeline line = timeline(launch_bound());
  EXPECT_EQ(causes(line).size(), 1u);
  EXPECT_EQ(causes(line).begin()->first, GapCause::launch);
}

TEST(Timeline, NodesOfAGraphAreQueued) {
  const Timeline line = timeline(graph_inference_loop());
  int late = 0;
  for (const auto& [cause, count] : causes(line)) late += count;
  EXPECT_DOUBLE_EQ(line.back_to_back.seconds, 1e-6);  // and not the 0.7 us between nodes
  EXPECT_LE(late, 1);                                 // the first replay, which nothing was queued before
  EXPECT_GT(line.busy_share(), 0.95);
}

TEST(Timeline, TheHostInASynchronousCopyIsACopyGap) {
  TraceBuilder t;
  t.launch("a", 132, 256, 50'000)
      .copy_h2d(40, MemoryKind::pageable, false)
      .copy_h2d(40, MemoryKind::pageable, false);
  const Timeline line = timeline(t.trace());
  EXPECT_EQ(line.gaps.back().cause, GapCause::copy) << to_string(line.gaps.back().cause);
  EXPECT_GE(line.gaps.back().call, 0);
}

TEST(Timeline, KernelsAreGroupedByShape) {
  TraceBuilder t;
  for (int i = 0; i < 20; ++i) t.launch("k", 132 * 8, 256, 100'000 + i * 1'000).launch("k", 64, 256, 10'000);
  const GpuTrace trace = t.trace();
  const Timeline line = timeline(trace);
  ASSERT_EQ(line.kernels.size(), 2u);
  const auto& big = line.kernels[0];
  EXPECT_EQ(trace.shapes[big.shape].grid[0], 132 * 8);
  EXPECT_DOUBLE_EQ(big.waves, 1);
  EXPECT_NEAR(big.median_ns, 109'500, 1'000);
  EXPECT_LT(big.low_ns, 103'000);
  EXPECT_GT(big.high_ns, 116'000);
  EXPECT_NEAR(line.kernels[1].waves, 64.0 / (132 * 8), 1e-12);
  EXPECT_NEAR(big.share + line.kernels[1].share, line.busy_share(), 1e-3);
}

TEST(Timeline, PersistentKernelsAreThoseThatFillTheDeviceByDesign) {
  TraceBuilder t;
  t.launch("fills", 132 * 8, 256, 400'000).launch("one_an_sm", 132, 256, 400'000);
  t.launch("short_one_an_sm", 132, 256, 4'000)
      .launch("small", 64, 256, 400'000)
      .launch("waves", 132 * 20, 256, 400'000);
  LaunchShape clusters = t.shape("clusters", 128, 384);
  clusters.cluster[0] = 2, clusters.cluster[1] = clusters.cluster[2] = 1;
  clusters.dynamic_shared = 200'000, clusters.blocks_per_sm = 1;
  t.launch(clusters, 400'000).launch("persistent_loop", 40, 256, 400'000);
  const GpuTrace trace = t.trace();
  const Timeline line = timeline(trace);
  EXPECT_TRUE(kernel_named(trace, line, "fills").persistent);
  EXPECT_TRUE(kernel_named(trace, line, "one_an_sm").persistent);
  EXPECT_TRUE(kernel_named(trace, line, "clusters").persistent);
  EXPECT_TRUE(kernel_named(trace, line, "persistent_loop").persistent);
  EXPECT_FALSE(kernel_named(trace, line, "short_one_an_sm").persistent);
  EXPECT_FALSE(kernel_named(trace, line, "small").persistent);
  EXPECT_FALSE(kernel_named(trace, line, "waves").persistent);
}

TEST(Timeline, KnowsTensorCoreKernelsByTheirNames) {
  TraceBuilder t;
  const char* tensor[] = {"sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64",
                          "cutlass::Kernel2<x>", "void flash_fwd_kernel<Traits>()", "nvjet_hsh_128x256_64x4",
                          "cublasGemm_half_tn"};
  const char* plain[] = {"ampere_sgemm_32x128_tn", "vectorized_elementwise_kernel", "dgemm_kernel", "gemv2T"};
  for (const auto* name : tensor) t.launch(name, 132, 256, 10'000);
  for (const auto* name : plain) t.launch(name, 132, 256, 10'000);
  const GpuTrace trace = t.trace();
  const Timeline line = timeline(trace);
  for (const auto* name : tensor) EXPECT_TRUE(kernel_named(trace, line, name).tensor) << name;
  for (const auto* name : plain) EXPECT_FALSE(kernel_named(trace, line, name).tensor) << name;
}

TEST(Timeline, ReplaysOfAGraphAreTheLoopThoughTheirWarmUpLaunchesMore) {
  TraceBuilder t;
  std::vector<TraceNode> nodes;
  for (int k = 0; k < 80; ++k) nodes.push_back({"k" + std::to_string(k), 132, 256, 5'000});
  for (int step = 0; step < 3; ++step) {
    for (const TraceNode& node : nodes) t.launch(node.name, node.grid, node.block, node.ns);
  }
  t.host_work(500'000'000);
  for (int step = 0; step < 50; ++step) t.copy_h2d(1 << 18).graph_launch(nodes);
  EXPECT_EQ(timeline(t.trace()).iterations.how, "80 kernels that repeat");
  EXPECT_NEAR(double(timeline(t.trace()).iterations.count()), 49, 1);
}

TEST(Timeline, CodeThatIsLoadedBetweenKernelsIsLeftOut) {
  TraceBuilder t;
  t.launch("a", 132, 256, 100'000)
      .device_sync()
      .module_load(50'000'000, "lazy load")
      .launch("b", 132, 256, 100'000);
  const Timeline line = timeline(t.trace());
  ASSERT_EQ(line.gaps.size(), 1u);
  EXPECT_EQ(line.gaps[0].cause, GapCause::module_load);
  EXPECT_FALSE(line.gaps[0].steady);
  EXPECT_NEAR(line.seconds, 200e-6, 1e-9);
  EXPECT_NEAR(line.busy_share(), 1, 1e-6);
  EXPECT_TRUE(line.simulated) << line.why_not;
}

TEST(Timeline, CodeThatTheLoopLoadsAgainAndAgainCounts) {
  const auto steps = [](int until) {
    TraceBuilder t;
    for (int i = 0; i < 40; ++i) {
      if (i < until && i % 4 != 0) t.module_load(300'000);
      t.launch("a", 132, 256, 100'000).launch("b", 132, 256, 100'000).device_sync();
    }
    return timeline(t.trace());
  };
  const double busy = 200 / (0.75 * 300 + 4 + 201 + 2.5);  // us, of a step
  EXPECT_NEAR(steps(40).busy_share(), busy, 0.01);
  EXPECT_GT(steps(20).busy_share(), 0.95) << "no more of it in the second half";
}

TEST(Timeline, CostsComeFromTheTraceThenFromTheProfileThenFromExperience) {
  TraceBuilder t;
  t.stream();
  for (int i = 0; i < 10; ++i)
    t.copy_h2d(5'500'000).launch("k", 132, 256, 50'000).launch("k", 132, 256, 50'000);
  for (int i = 0; i < 10; ++i) t.device_sync().launch("k", 132, 256, 50'000);
  Timeline line =
      timeline(t.trace(), {.from = "profile x", .back_to_back_seconds = 7, .small_copy_seconds = 8e-6});
  EXPECT_EQ(line.back_to_back.from, "this trace");
  EXPECT_DOUBLE_EQ(line.back_to_back.seconds, 1e-6);
  EXPECT_DOUBLE_EQ(line.launch.seconds, 2.2e-6);
  EXPECT_DOUBLE_EQ(line.launch_latency.seconds, 1.8e-6);
  EXPECT_NEAR(1 / line.pinned_bytes.seconds, 54.2e9, 0.1e9);
  EXPECT_EQ(line.small_copy.from, "profile x");
  EXPECT_DOUBLE_EQ(line.small_copy.seconds, 8e-6);
  line = timeline(TraceBuilder().launch("k", 1, 32, 1'000).trace());
  EXPECT_EQ(line.back_to_back.from, "assumed");
  EXPECT_GT(line.back_to_back.seconds, 0);
}

TEST(Timeline, OffWindowsAreRemovedFromEverything) {
  TraceBuilder t;
  for (int window = 0; window < 3; ++window) {
    t.window_begin();
    for (int i = 0; i < 4; ++i) t.launch("k", 132, 256, 10'000).device_sync().host_work(10'000);
    t.window_end().host_work(50'000'000);
  }
  const Timeline line = timeline(t.trace());
  // Three windows, each four kernels and three times 2.5 + 10 + 4 us between them.
  EXPECT_NEAR(line.seconds, 3 * (4 * 10e-6 + 3 * 16.5e-6), 1e-12);
  EXPECT_NEAR(line.devices.at(0).busy_seconds, 3 * 4 * 10e-6, 1e-12);
  for (const auto& gap : line.gaps) EXPECT_LT(gap.end_ns - gap.begin_ns, 20'000);
  EXPECT_LT(line.iterations.high_seconds, 30e-6);
  EXPECT_FALSE(line.notes.empty());
}

TEST(Timeline, WindowsOfTwoProcessesCountWhereBothWereTraced) {
  TraceBuilder t;
  t.window_begin();
  for (int i = 0; i < 10; ++i) t.launch("a", 132, 256, 100'000).device_sync();
  t.window_end();
  t.process("other").at(500'000).window_begin();
  for (int i = 0; i < 10; ++i) t.launch("b", 132, 256, 100'000).device_sync();
  t.window_end();
  const Timeline line = timeline(t.trace());
  EXPECT_GE(line.begin_ns, 500'000);
  EXPECT_LE(line.end_ns, 1'200'000);
}

TEST(Timeline, KernelsBeforeTheirLaunchAreClampedAndCounted) {
  TraceBuilder t;
  t.launch("a", 132, 256, 50'000).device_sync().launch("b", 132, 256, 50'000).skew_last_op(-7'000);
  const Timeline line = timeline(t.trace());
  EXPECT_EQ(line.skewed, 1);
  EXPECT_FALSE(line.notes.empty());
}

TEST(Timeline, CallsThatShareANumberAreJoinedInTheirOrder) {
  const GpuTrace trace = pytorch_like_step();
  GpuTrace same = trace;
  const auto from = same.calls[same.calls.size() / 2].correlation;
  for (auto& op : same.ops) op.correlation = std::min(op.correlation, from);
  for (auto& call : same.calls) call.correlation = std::min(call.correlation, from);
  const Timeline a = timeline(trace), b = timeline(same);
  EXPECT_EQ(a.model_error, b.model_error);
  EXPECT_TRUE(b.simulated) << b.why_not;
  ASSERT_EQ(a.gaps.size(), b.gaps.size());
  for (std::size_t i = 0; i < a.gaps.size(); ++i) EXPECT_EQ(a.gaps[i].cause, b.gaps[i].cause) << i;
}

TEST(Timeline, StampsThatAreZeroAreUnknownAndNotTheBeginning) {
  TraceBuilder t;
  t.host_work(1'000'000'000);
  for (int i = 0; i < 4; ++i) t.launch("k" + std::to_string(i), 132, 256, 50'000);
  GpuTrace trace = t.trace();
  trace.ops[1].begin_ns = trace.ops[1].end_ns = 0;
  const Timeline line = timeline(trace);
  EXPECT_LT(line.seconds, 1e-3);
  EXPECT_EQ(line.devices.at(0).ops, 3);
}

TEST(Timeline, NumbersThatAreTooLargeAreLeftOut) {
  GpuTrace trace = launch_bound(3);
  trace.ops[3].stream = 77;
  trace.ops[4].shape = 77;
  trace.calls[5].thread = 77;
  trace.calls[6].stream = 77;
  const Timeline line = timeline(trace);
  EXPECT_LE(line.devices.at(0).ops, double(trace.ops.size()) - 2);
  EXPECT_GT(line.devices.at(0).ops, 0.9 * double(trace.ops.size()));
}

TEST(Timeline, CounterSamplesGoToTheKernelThatHadTheGpu) {
  TraceBuilder t;
  for (int i = 0; i < 4; ++i) {
    t.launch("long", 132, 256, 100'000).counters_of_last_op(20'000, {.dram = 0.5, .sm_throughput = 0.9});
    t.launch("brief", 132, 256, 12'000).counters_of_last_op(10'000, {.dram = 0.1, .sm_throughput = 0.3});
    t.launch("unseen", 132, 256, 3'000);
  }
  const GpuTrace trace = t.trace();
  const Timeline line = timeline(trace);
  const auto& on_its_own = kernel_named(trace, line, "long");
  EXPECT_EQ(on_its_own.counter_samples, 20);
  EXPECT_NEAR(on_its_own.dram_share, 0.5, 1e-9);
  EXPECT_NEAR(on_its_own.sm_share, 0.9, 1e-9);
  EXPECT_EQ(on_its_own.tensor_share, -1);
  EXPECT_NEAR(kernel_named(trace, line, "brief").dram_share, 0.1, 1e-9);
  EXPECT_EQ(kernel_named(trace, line, "unseen").dram_share, -1);
}

TEST(Timeline, ASampleThatTwoKernelsShareBelongsToNeither) {
  TraceBuilder t;
  for (int i = 0; i < 6; ++i) t.launch("a", 132, 256, 10'000).launch("b", 132, 256, 10'000);
  GpuTrace trace = t.trace();
  for (auto at = trace.ops[0].begin_ns; at < trace.ops.back().end_ns; at += 50'000) {
    trace.counter_samples.push_back({.begin_ns = at, .end_ns = at + 50'000, .dram = 0.7});
  }
  const Timeline line = timeline(trace);
  for (const auto& kernel : line.kernels) EXPECT_EQ(kernel.dram_share, -1);
}

TEST(Timeline, AGapNamesTheFunctionOfTheHost) {
  TraceBuilder t;
  for (int i = 0; i < 20; ++i) t.launch("k", 132, 256, 50'000).device_sync().host_work(2'000'000);
  GpuTrace trace = t.trace();
  CpuProfile cpu;
  cpu.frames = {{.function = "memcpy", .module = "libc.so.6"},
                {.function = "augment_batch", .module = "train"},
                {.function = "read", .module = "libc.so.6"},
                {.function = "cuLaunchKernel", .module = "libcuda.so.1"}};
  cpu.stacks = {{.frames = {0, 1}}, {.frames = {2, 1}}, {.frames = {3, 1}}};
  cpu.threads = {{.pid = trace.processes[0].pid, .tid = trace.threads[0].tid}};
  // One sample in every third gap; the profile began a second before the trace.
  for (std::size_t i = 0; i + 1 < trace.ops.size(); i += 3) {
    cpu.samples.push_back({.thread = 0,
                           .stack = 0,
                           .seconds = double(trace.ops[i].end_ns + 900'000) * 1e-9 + 1,
                           .weight_seconds = 1e-3});
  }
  trace.cpu = cpu;
  trace.cpu_offset_seconds = -1;
  Timeline line = timeline(trace);
  ASSERT_GT(line.gaps.size(), 10u);
  for (const auto& gap : line.gaps) EXPECT_EQ(gap.function, "augment_batch");
  // A thread that is blocked has no function but a wait.
  trace.cpu->samples = {{.thread = 0, .stack = 1, .seconds = 1.0, .weight_seconds = 30, .blocked = true}};
  line = timeline(trace);
  EXPECT_EQ(line.gaps[5].function, "waiting in read()");
}

TEST(Timeline, AGapOfAnInterpreterNamesThePythonFunction) {
  TraceBuilder t;
  for (int i = 0; i < 20; ++i) t.launch("k", 132, 256, 50'000).device_sync().host_work(2'000'000);
  GpuTrace trace = t.trace();
  CpuProfile cpu;
  cpu.frames = {{.function = "_PyEval_EvalFrameDefault", .module = "python3.12"},
                {.function = "step", .module = "python", .file = "/usr/lib/torch/optim/adam.py"},
                {.function = "[libtorch_cpu.so+0x12]", .module = "libtorch_cpu.so"},
                {.function = "void at::native::sum_kernel<float, int>(at::Tensor const&)",
                 .module = "libtorch_cuda.so"}};
  cpu.frames.push_back(
      {.function = "void at::(anonymous namespace)::reduce<f<&F<int>::operator()>, 4>(at::Tensor const&)",
       .module = "libtorch_cuda.so"});
  cpu.frames.push_back({.function = "Work::operator()(int) const", .module = "app"});
  cpu.stacks = {
      {.frames = {2, 0, 1, 0}}, {.frames = {2, 3, 0}}, {.frames = {2}}, {.frames = {4}}, {.frames = {5}}};
  cpu.threads = {{.pid = trace.processes[0].pid, .tid = trace.threads[0].tid}};
  trace.cpu = cpu;
  const char* names[] = {"step (adam.py)", "at::native::sum_kernel", "[libtorch_cpu.so+0x12]", "at::reduce",
                         "Work::operator()"};
  for (std::uint32_t stack = 0; stack < 5; ++stack) {
    trace.cpu->samples = {{.thread = 0,
                           .stack = stack,
                           .seconds = double(trace.ops[3].end_ns + 900'000) * 1e-9,
                           .weight_seconds = 1e-3}};
    EXPECT_EQ(timeline(trace).gaps[3].function, names[stack]);
  }
}

TEST(Timeline, AHostThatPollsHasWaited) {
  TraceBuilder t;
  for (int i = 0; i < 10; ++i) {
    t.launch("k", 132, 256, 50'000);
    while (t.host_now() < t.last_op().end_ns) t.query().host_work(2'000);
    t.query().host_work(1'000);
  }
  const auto found = causes(timeline(t.trace()));
  EXPECT_EQ(found.size(), 1u);
  EXPECT_EQ(found.begin()->first, GapCause::sync);
}

TEST(Timeline, AWaitBehindAPrefetchWaitsForPages) {
  TraceBuilder t;
  for (int i = 0; i < 5; ++i) t.launch("k" + std::to_string(i), 132, 256, 50'000).device_sync();
  GpuTrace trace = t.trace();
  for (std::size_t i = 2; i < trace.ops.size(); ++i)
    trace.ops[i].begin_ns += 100'000, trace.ops[i].end_ns += 100'000;
  for (auto& call : trace.calls) {  // the second wait takes 100 us more, for no op
    if (call.begin_ns >= trace.ops[1].end_ns) call.begin_ns += 100'000;
    if (call.end_ns >= trace.ops[1].end_ns) call.end_ns += 100'000;
  }
  EXPECT_EQ(timeline(trace).gaps[1].cause, GapCause::sync);
  GpuTrace::Call prefetch{
      .kind = CallKind::prefetch, .begin_ns = trace.calls[2].end_ns, .thread = 0, .correlation = 99};
  prefetch.end_ns = prefetch.begin_ns + 1;
  for (auto& call : trace.calls) {
    if (call.begin_ns == prefetch.begin_ns) call.begin_ns += 1;
  }
  trace.calls.push_back(prefetch);
  EXPECT_EQ(timeline(trace).gaps[1].cause, GapCause::copy);
}

TEST(Timeline, KernelsThatRanWhileTracingStoppedAreLeftOut) {
  TraceBuilder t;
  for (int window = 0; window < 2; ++window) {
    t.window_begin();
    for (int i = 0; i < 30; ++i) t.launch("k", 132, 256, 10'000).device_sync();
    t.window_end().host_work(60'000'000);
  }
  GpuTrace trace = t.trace();
  trace.ops[29].end_ns = trace.windows[1].begin_ns + 5'000;
  const Timeline line = timeline(trace);
  EXPECT_LT(line.kernels.at(0).high_ns, 11'000);
  EXPECT_LT(line.devices.at(0).busy_seconds, 1e-3);
  EXPECT_EQ(line.notes.size(), 2u);
}

TEST(Timeline, OfTheCleanTracesIsBusy) {
  EXPECT_GT(timeline(clean_training_step()).busy_share(), 0.95);
  EXPECT_GT(timeline(graph_inference_loop()).busy_share(), 0.95);
  EXPECT_GT(timeline(multi_stream()).busy_share(), 0.95);
}

}  // namespace
}  // namespace fulcrum::test
