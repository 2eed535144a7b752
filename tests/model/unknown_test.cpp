// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Bounds of code that is no op: ratios of roofs, by hand.
#include <fulcrum/model.h>
#include <gtest/gtest.h>

namespace fulcrum::model {
namespace {

Quantity exactly(double value) { return {value, value, value, Source::measured}; }

Machine host() {
  Machine m;
  m.id = "host";
  m.cpu.threads = 4;
  MemoryLevel memory;
  memory.name = "DRAM";
  memory.one_thread["triad"] = exactly(1e10);
  memory.all_threads["triad"] = exactly(3e10);
  m.cpu.levels = {memory};
  m.cpu.flops_one_thread = {{"scalar", exactly(4e9)}, {"avx2", exactly(3.2e10)}};
  m.cpu.flops_all_threads = {{"avx2", exactly(1.2e11)}};
  return m;
}

GpuCeilings gpu() {
  GpuCeilings g;
  g.flops["fp32"] = exactly(5e13);
  g.max_sm_hz = 2e9;
  g.rates["hbm_copy"] = exactly(4e12);
  g.link["pinned_h2d"] = {{1 << 20, exactly(2e-5)}, {1 << 30, exactly(2e-2)}};
  g.link["pinned_d2h"] = {{1 << 20, exactly(2e-5)}, {1 << 30, exactly(2e-2)}};
  return g;
}

UnknownCode code(double flops_per_byte) {
  UnknownCode c;
  c.seconds = c.low = c.high = 1;
  c.flops_per_byte = flops_per_byte;
  c.access = "streaming";
  c.iterations = 1 << 20;
  c.loads_per_turn = 2;
  return c;
}

TEST(UnknownCode, StreamingCodeIsBoundedByMemoryOnBothSides) {
  const GpuCeilings g = gpu();
  const Bounds bounds = bounds_of(code(0.1), host(), &g);
  // One thread at 10 GB/s; all of them at 30, the GPU at 4000. Half of each roof is expected.
  EXPECT_EQ(bounds.now.bound, "memory");
  EXPECT_NEAR(bounds.cpu.seconds, 2.0 / 3, 1e-9);
  EXPECT_NEAR(bounds.cpu.low, 2.0 / 3 / 2.5, 1e-9) << "the best build may beat its bound";
  EXPECT_NEAR(bounds.gpu.low, 1.0 / 400, 1e-9);
  EXPECT_NEAR(bounds.gpu.seconds, 2.0 / 400, 1e-9);
  EXPECT_EQ(bounds.gpu.grade, Grade::c);
  EXPECT_EQ(bounds.gpu.regime, Regime::resident);
}

TEST(UnknownCode, ScalarArithmeticGainsByVectorsAndCores) {
  const GpuCeilings g = gpu();
  const Bounds bounds = bounds_of(code(100), host(), &g);
  EXPECT_EQ(bounds.now.bound, "compute");
  EXPECT_NEAR(bounds.cpu.seconds, 2 * 4e9 / 1.2e11, 1e-9);
  EXPECT_NEAR(bounds.cpu.low, 2 * 4e9 / 1.2e11 / 2.5, 1e-9);
  EXPECT_NEAR(bounds.gpu.low, 4e9 / 5e13, 1e-12);
  UnknownCode wide = code(100);
  wide.vector_bits = 256;
  wide.threads = 4;
  EXPECT_NEAR(bounds_of(wide, host(), &g).cpu.seconds, 1, 1e-9) << "nothing is left to gain on this CPU";
}

TEST(UnknownCode, GathersAreSlowOnBothSides) {
  const GpuCeilings g = gpu();
  UnknownCode c = code(0.1);
  c.access = "gather";
  EXPECT_NEAR(bounds_of(c, host(), &g).gpu.low, 1.0 / 400, 1e-9);
  // 2 FLOP/B leave the arithmetic as the roof of the CPU, until a quarter of the memory's rate is the lower one.
  EXPECT_NEAR(bounds_of(code(2), host(), &g).gpu.low, 4e9 / 8e12, 1e-12);
  c.flops_per_byte = 2;
  EXPECT_NEAR(bounds_of(c, host(), &g).gpu.low, 4e9 / 2e12, 1e-12);
}

TEST(UnknownCode, TransfersComeFromPageableMemoryUntilSomebodyPinsIt) {
  GpuCeilings g = gpu();
  g.link["pageable_h2d"] = g.link["pageable_d2h"] = {{1 << 20, exactly(1e-4)}, {1 << 30, exactly(1e-1)}};
  UnknownCode c = code(0.1);
  c.touched_bytes = 1 << 30;
  const Bounds moved = bounds_of(c, host(), &g);
  EXPECT_NEAR(moved.gpu.low, 1.0 / 400 + 4e-2, 1e-6) << "pinned at best";
  EXPECT_NEAR(moved.gpu.seconds, 2.0 / 400 + 2e-1, 1e-6);
  EXPECT_NEAR(moved.gpu.high, 10.0 / 400 + 2e-1, 1e-6);
  EXPECT_EQ(moved.gpu.regime, Regime::roundtrip);
}

TEST(UnknownCode, WhatFitsIntoACacheIsReadAtItsRate) {
  GpuCeilings g = gpu();
  g.l2_bytes = 1 << 20;
  g.rates["l2_copy"] = exactly(8e12);
  Machine m = host();
  MemoryLevel cache;
  cache.name = "L3";
  cache.capacity_bytes = 1 << 26;
  cache.one_thread["triad"] = exactly(4e10);
  cache.all_threads["triad"] = exactly(1.6e11);
  m.cpu.levels.insert(m.cpu.levels.begin(), cache);
  const auto kernel = [&](double touched) {
    UnknownCode c = code(0.1);
    c.touched_bytes = touched;
    const Bounds bounds = bounds_of(c, m, &g);
    return bounds.gpu.terms.at(0).seconds;
  };
  // Flops are the roof of one thread in a cache: 0.1 FLOP/B x 40 GB/s. Half of each roof is expected.
  EXPECT_NEAR(kernel(1 << 30), 2 * 1e10 / 4e12, 1e-9) << "in memory on both sides";
  EXPECT_NEAR(kernel(1 << 24), 2 * 4e10 / 4e12, 1e-9) << "in the cache of the CPU";
  EXPECT_NEAR(kernel(1 << 19), 2 * 4e10 / 8e12, 1e-9) << "in both caches";
}

TEST(UnknownCode, WithoutInstructionsThereIsNoBound) {
  const GpuCeilings g = gpu();
  UnknownCode c = code(0);
  c.moves_bytes = false;
  const Bounds bounds = bounds_of(c, host(), &g);
  EXPECT_TRUE(bounds.now.valid());
  EXPECT_FALSE(bounds.cpu.valid());
  EXPECT_FALSE(bounds.gpu.valid());
  EXPECT_FALSE(bounds_of(code(1), host(), nullptr).gpu.valid());
}

PlanItem unknown(double share) {
  const GpuCeilings g = gpu();
  const Bounds bounds = bounds_of(code(100), host(), &g);
  PlanItem item;
  item.name = "loop";
  item.share = {share, share, share, false};
  item.now = bounds.now;
  item.best_cpu = bounds.cpu;
  item.best_gpu = bounds.gpu;
  return item;
}

TEST(UnknownCode, BoundsMakeRowsThatStayAtMeasureFirst) {
  Machine device;
  device.id = "device";
  device.gpus = {gpu()};
  PlanInput input;
  input.items = {unknown(0.8)};
  input.items[0].facts.doubt = "say more";
  const Plan both = plan(Model(host(), {}, device, {}), input);
  ASSERT_EQ(both.rows.size(), 2U);
  for (const PlanRow& row : both.rows) {
    EXPECT_EQ(row.verdict, PlanVerdict::measure_first) << row.action;
    EXPECT_EQ(row.why, "say more");
    EXPECT_GT(row.saved.value, 0.3);
  }
  input.items = {unknown(0.01)};
  for (const PlanRow& row : plan(Model(host(), {}, device, {}), input).rows) {
    EXPECT_EQ(row.verdict, PlanVerdict::keep_on_cpu);
  }
}

PlanRow offload_row(const UnknownCode& c, const char* parallel, const char* math = "") {
  Machine device;
  device.id = "device";
  device.gpus = {gpu()};
  const Bounds bounds = bounds_of(c, host(), &device.gpus.front());
  PlanInput input;
  input.items = {unknown(0.8)};
  input.items[0].now = bounds.now;
  input.items[0].best_cpu = bounds.cpu;
  input.items[0].best_gpu = bounds.gpu;
  input.items[0].facts.parallel = parallel;
  input.items[0].facts.iterations = c.iterations;
  input.items[0].facts.scalar_math = math;
  input.items[0].facts.narrow_seconds = bounds.narrow_seconds;
  for (const PlanRow& row : plan(Model(host(), {}, device, {}), input).rows) {
    if (row.action == "offload") return row;
  }
  return {};
}

TEST(UnknownCode, ThatRunsInParallelTodayIsDecidedByItsBounds) {
  // One thread at 10 GB/s: 2.5 ms at the GPU's roof, 25 ms with all doubt, 0.67 s on all cores.
  EXPECT_EQ(offload_row(code(0.1), "").verdict, PlanVerdict::measure_first);
  const PlanRow now = offload_row(code(0.1), "a parallel loop");
  EXPECT_EQ(now.verdict, PlanVerdict::offload_now);
  EXPECT_NE(now.why.find("a parallel loop; by its bounds at least 40x"), std::string::npos) << now.why;

  // 6 GiB there and back take 0.24 s: 0.67 s on all cores are more than their doubt of 2.5 longer.
  UnknownCode moved = code(0.1);
  moved.touched_bytes = 6.0 * (1 << 30);
  EXPECT_EQ(offload_row(moved, "a parallel loop").verdict, PlanVerdict::offload_now);
  // 10 GiB take 0.4 s: even with all of the GPU's own doubt it is faster, but a better build of the CPU's may not be.
  moved.touched_bytes = 10.0 * (1 << 30);
  const PlanRow doubtful = offload_row(moved, "a parallel loop");
  EXPECT_LT(doubtful.best_gpu.high, doubtful.best_cpu.seconds);
  EXPECT_EQ(doubtful.verdict, PlanVerdict::offload_next);
  EXPECT_NE(doubtful.why.find("should take 1.6 times as long, 2.5 would be beyond doubt"), std::string::npos)
      << doubtful.why;
  // 16.5 GiB take 0.66 s: the port would have to come near its bound.
  moved.touched_bytes = 16.5 * (1 << 30);
  EXPECT_EQ(offload_row(moved, "a parallel loop").verdict, PlanVerdict::offload_next);
  // 20 GiB take 0.8 s: the cores are enough. What only reads them sends nothing back.
  moved.touched_bytes = 20.0 * (1 << 30);
  const PlanRow stays = offload_row(moved, "a parallel loop");
  EXPECT_EQ(stays.verdict, PlanVerdict::keep_on_cpu);
  EXPECT_NE(stays.why.find("all cores with SIMD"), std::string::npos) << stays.why;
  moved.written_share = 0;
  EXPECT_EQ(offload_row(moved, "a parallel loop").verdict, PlanVerdict::offload_next);
}

TEST(UnknownCode, NeedsMoreThanTheDoubtOfBothSidesTogether) {
  // 10 ms with 50 at the high end, and all cores 2.5 times better than their bound: 6.4 times as fast is beyond both.
  PlanItem item = unknown(0.8);
  item.facts.parallel = "a parallel loop";
  item.facts.iterations = 1e6;
  item.facts.narrow_seconds = 0.001;
  Machine device;
  device.id = "device";
  device.gpus = {gpu()};
  const auto verdict = [&](double cpu_seconds) {
    for (double* seconds : {&item.now->seconds, &item.now->low, &item.now->high}) *seconds = 1;
    item.best_gpu->seconds = item.best_gpu->low = 0.01;
    item.best_gpu->high = 0.05;
    item.best_cpu->seconds = item.best_cpu->high = cpu_seconds;
    item.best_cpu->low = cpu_seconds / 2.5;
    PlanInput input;
    input.items = {item};
    for (const PlanRow& row : plan(Model(host(), {}, device, {}), input).rows) {
      if (row.action == "offload") return row.verdict;
    }
    return PlanVerdict::keep_on_cpu;
  };
  EXPECT_EQ(verdict(0.066), PlanVerdict::offload_now);
  EXPECT_EQ(verdict(0.062), PlanVerdict::offload_next);
}

TEST(UnknownCode, WithFewIterationsIsNothingToOffloadNow) {
  // 1,000 threads with two loads of four bytes in flight each, 0.5 us a load: 16 GB/s, and the longest takes twice as
  // long as the mean. All cores do it at 30.
  UnknownCode few = code(0.1);
  few.iterations = 1000;
  const GpuCeilings g = gpu();
  EXPECT_NEAR(bounds_of(few, host(), &g).narrow_seconds, 2 * 10.0 / 16, 1e-9);
  const PlanRow row = offload_row(few, "a parallel loop");
  EXPECT_EQ(row.verdict, PlanVerdict::offload_next);
  EXPECT_NE(row.why.find("1000 iterations do not fill the card"), std::string::npos) << row.why;
  few.iterations = 10000;
  EXPECT_EQ(offload_row(few, "a parallel loop").verdict, PlanVerdict::offload_now);
  few.iterations = 0;
  const PlanRow unseen = offload_row(few, "a parallel loop");
  EXPECT_EQ(unseen.verdict, PlanVerdict::offload_next);
  EXPECT_NE(unseen.why.find("was not seen"), std::string::npos) << unseen.why;
}

TEST(UnknownCode, ThatIsCachedOnTheCardOrComputesWaitsForLess) {
  GpuCeilings g = gpu();
  g.l2_bytes = 1 << 26;
  UnknownCode few = code(0.1);
  few.iterations = 1000;
  const double far = bounds_of(few, host(), &g).narrow_seconds;
  few.touched_bytes = 1 << 20;
  EXPECT_LT(bounds_of(few, host(), &g).narrow_seconds, far / 3);
  // 1,000 threads with a multiplication and an addition in four cycles of 2 GHz, against 4 GFLOP/s of one scalar thread.
  UnknownCode computes = code(0);
  computes.flops_per_byte = 1;
  computes.moves_bytes = false;
  computes.iterations = 1000;
  EXPECT_NEAR(bounds_of(computes, host(), &g).narrow_seconds, 2 * 4.0 / 1000, 1e-9);
}

TEST(UnknownCode, PaysALaunchForEachEntryOfItsLoop) {
  GpuCeilings g = gpu();
  g.latencies["launch_sync"] = exactly(1e-5);
  g.latencies["launch"] = exactly(4e-6);
  UnknownCode c = code(0.1);
  const Bounds once = bounds_of(c, host(), &g);
  c.entries = 1e5;
  const Bounds often = bounds_of(c, host(), &g);
  EXPECT_NEAR(often.gpu.seconds - once.gpu.seconds, 1.0, 1e-9);
  EXPECT_NEAR(often.gpu.low - once.gpu.low, 0.4, 1e-9);
  EXPECT_NEAR(often.narrow_seconds - once.narrow_seconds, 1.0, 1e-9);
}

TEST(UnknownCode, WithScalarMathGainsByItsVectorVersions) {
  // Memory is its roof by the bytes that it issues, on all cores today; 90 % of it is a function with a vector version that
  // takes a sixth.
  const GpuCeilings g = gpu();
  UnknownCode c = code(0.1);
  c.threads = 4;
  EXPECT_NEAR(bounds_of(c, host(), &g).cpu.seconds, 1, 1e-9) << "at its roof";
  c.math_share = 0.9;
  c.math_gain = 6;
  EXPECT_NEAR(bounds_of(c, host(), &g).cpu.seconds, 0.9 / 6 + 0.1, 1e-9);
  UnknownCode half = c;  // with 8 lanes, of which it may reach half, the rest of the loop gains as well
  half.math_share = 0.5;
  EXPECT_NEAR(bounds_of(half, host(), &g).cpu.seconds, 0.5 / 6 + 0.5, 1e-9);
  EXPECT_NEAR(bounds_of(half, host(), &g).cpu.low, 0.5 / 6 + 0.5 / 4, 1e-9);
  c.threads = 1;
  EXPECT_NEAR(bounds_of(c, host(), &g).cpu.seconds, 0.9 / 24 + 0.1 * 2.0 / 3, 1e-9)
      << "and by the other cores";
  c.math_gain = 1;
  EXPECT_LE(bounds_of(c, host(), &g).cpu.seconds, 2.0 / 3) << "never slower than without";
}

TEST(UnknownCode, WhoseVectorMathIsAsGoodAsAPortIsBuiltAnewFirst) {
  UnknownCode c = code(0.1);
  c.threads = 4;
  c.math_share = 0.9;
  c.math_gain = 6;  // 0.25 s
  c.touched_bytes = 3.5 * (1 << 30);
  // 0.14 s on the link and 8 to 75 ms of kernel: less than 0.25 s in any case, and more than half of it.
  EXPECT_EQ(offload_row(c, "a parallel loop").verdict, PlanVerdict::offload_next)
      << "nobody knows of the functions";
  const PlanRow first = offload_row(c, "a parallel loop", "90 % of it is scalar pow");
  EXPECT_EQ(first.verdict, PlanVerdict::fix_on_cpu_first);
  EXPECT_NE(first.why.find("90 % of it is scalar pow: with vector functions all cores should take 250 ms"),
            std::string::npos)
      << first.why;
  // 55 ms, 115 at most: beyond what a better build may do.
  c.touched_bytes = 1 << 30;
  const PlanRow sure = offload_row(c, "a parallel loop", "90 % of it is scalar pow");
  EXPECT_EQ(sure.verdict, PlanVerdict::offload_now) << sure.why;
  EXPECT_NE(sure.why.find("90 % of it is scalar pow: with vector functions"), std::string::npos) << sure.why;
  // Twice as fast as that and more: a port is worth it all the same, if not at once.
  c.touched_bytes = 2.0 * (1 << 30);
  c.fresh_seconds_per_byte = 0.2 / c.touched_bytes;
  EXPECT_EQ(offload_row(c, "a parallel loop", "90 % of it is scalar pow").verdict, PlanVerdict::offload_next);
  // Transfers of 0.4 s: the CPU is the better place, in another build.
  c.touched_bytes = 10.0 * (1 << 30);
  c.fresh_seconds_per_byte = 0;
  EXPECT_EQ(offload_row(c, "a parallel loop", "90 % of it is scalar pow").verdict,
            PlanVerdict::fix_on_cpu_first);
  EXPECT_EQ(offload_row(c, "a parallel loop").verdict, PlanVerdict::keep_on_cpu);
}

TEST(UnknownCode, PaysForFreshMemoryInTheWorstCaseAlone) {
  const GpuCeilings g = gpu();
  UnknownCode c = code(0.1);
  c.touched_bytes = 1 << 30;
  c.written_share = 0.5;
  const Bounds known = bounds_of(c, host(), &g);
  c.fresh_seconds_per_byte = 1e-9;
  const Bounds fresh = bounds_of(c, host(), &g);
  EXPECT_NEAR(fresh.gpu.high - known.gpu.high, 0.5 * (1 << 30) * 1e-9, 1e-9);
  EXPECT_EQ(fresh.gpu.seconds, known.gpu.seconds);
  EXPECT_EQ(fresh.gpu.low, known.gpu.low);
}

TEST(UnknownCode, WhoseTransfersAloneTakeLongerStaysWhateverItIs) {
  UnknownCode moved = code(0.1);
  moved.touched_bytes = 30.0 * (1 << 30);  // 1.2 s
  const PlanRow row = offload_row(moved, "");
  EXPECT_EQ(row.verdict, PlanVerdict::keep_on_cpu);
  EXPECT_NE(row.why.find("even at its roof"), std::string::npos) << row.why;
  // If only a part of what the program touches is its own, nobody knows.
  moved.least_bytes = 1 << 20;
  EXPECT_EQ(offload_row(moved, "").verdict, PlanVerdict::measure_first);
}

TEST(Plan, WhatRunsTodayIsTheBestCpuWhereAPredictionIsSlower) {
  PlanItem item = unknown(0.5);
  item.best_cpu->seconds = 2;
  PlanInput input;
  input.items = {item};
  const Plan p = plan(Model(host(), {}), input);
  ASSERT_EQ(p.rows.size(), 1U);
  EXPECT_EQ(p.rows[0].best_cpu.seconds, 1);
}

}  // namespace
}  // namespace fulcrum::model
