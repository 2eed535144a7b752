// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Rules about how kernels are launched: what fires with which gain, what is close and does not.
#include "diagnose/scene.h"

namespace fulcrum::diagnose::test {
namespace {

GpuTrace one_kernel(int sms, LaunchShape shape, std::int64_t ns, int launches = 1) {
  TraceBuilder t;
  t.device(sms);
  for (int i = 0; i < launches; ++i) t.launch(shape, ns);
  return t.trace();
}
GpuTrace one_kernel(int sms, std::int64_t grid, std::int64_t block, std::int64_t ns, int launches = 1) {
  TraceBuilder t;
  t.device(sms);
  return one_kernel(sms, t.shape("work(float*)", grid, block), ns, launches);
}

TEST(SmallGrid, AttentionWithTwoBlocksOn58SmsNamesWhatOtherTilesAllow) {
  TraceBuilder t;
  t.device(58).range_begin("op attention B=1,H=1,Sq=128,Skv=128,D=64,dtype=f16");
  t.launch("attention_flash_kernel<Element::f16, 64, true>(Call, long, long)", 2, 128, 100'000)
      .host_work(200'000);
  const Handle scene = plain(t.range_end().trace());
  const Finding finding = only("small_grid", *scene);
  EXPECT_NE(finding.claim.find("2 blocks on 58 SMs: 3.4 % of the GPU can work"), std::string::npos)
      << finding.claim;
  const std::string text = all_text(finding);
  EXPECT_NE(text.find("UNDERFILLED"), std::string::npos) << text;
  EXPECT_NE(text.find("at most 4 CTAs with tiles Sq 64 x Skv 64"), std::string::npos) << text;
  EXPECT_NE(text.find("at most 64 CTAs with tiles Sq 16 x Skv 16"), std::string::npos) << text;
  EXPECT_EQ(finding.subject, "attention_flash_kernel");
  EXPECT_EQ(finding.grade, Evidence::bounded);
  EXPECT_EQ(finding.saved_low, 0);
  EXPECT_NEAR(finding.saved_high, 0.98, 1e-4);  // down to 2 us, what any kernel takes
}

TEST(SmallGrid, ProductsInANamedRangeGetTheirTilesAndOthersGeneralAdvice) {
  const auto in_range = [](const std::string& range, std::int64_t grid) {
    TraceBuilder t;
    t.launch("before(float*)", 132 * 8, 256,
             1'000'000);  // queued: the kernel begins after its range has ended
    t.range_begin(range).launch("my_kernel(float*)", grid, 256, 100'000).range_end();
    return all_text(only("small_grid", *plain(t.trace())));
  };
  // 512 x 512 in 16 blocks is tiles of 128; 64 of 64 x 64 with eight parts of the sum.
  const std::string product = in_range("op matmul M=512,N=512,K=512", 16);
  EXPECT_NE(product.find("at most 64 CTAs with tiles M 128 x N 128 x K 128"), std::string::npos) << product;
  EXPECT_NE(product.find("at most 512 CTAs with tiles M 64 x N 64 x K 64"), std::string::npos) << product;
  EXPECT_NE(in_range("op softmax rows=1,n=1000", 16).find("launch at least 132 blocks"), std::string::npos);
  EXPECT_NE(in_range("op matmul M=", 16).find("launch at least 132 blocks"), std::string::npos);
  EXPECT_NE(in_range("epoch 3", 16).find("launch at least 132 blocks"), std::string::npos);
}

TEST(SmallGrid, GainIsWhatIdleSmsCouldDo) {
  // Two blocks of 1024 threads fill an SM, and one is as fast as both; of 256 threads four do.
  EXPECT_NEAR(only("small_grid", *plain(one_kernel(132, 33, 1024, 1'000'000))).saved_high, 0.75, 1e-6);
  const Finding finding = only("small_grid", *plain(one_kernel(132, 33, 256, 1'000'000)));
  EXPECT_NEAR(finding.saved_high, 1 - 0.25 / 4, 1e-6);
  EXPECT_NE(finding.claim.find("33 blocks on 132 SMs: 25 %"), std::string::npos) << finding.claim;
}

TEST(SmallGrid, TwoBlocksOfTwoMicrosecondsGainNothing) {
  const Handle scene = plain(one_kernel(132, 2, 64, 2'000, 100));
  EXPECT_TRUE(silent("small_grid", *scene));
  EXPECT_TRUE(
      silent("small_grid", *plain(one_kernel(132, 2, 64, 3'900, 100))));  // half of it any kernel takes
  // A little longer: down to what any kernel takes, not by 98.5 %.
  EXPECT_NEAR(only("small_grid", *plain(one_kernel(132, 2, 64, 5'000))).saved_high, 0.6, 1e-6);
}

TEST(SmallGrid, TakesWhateverADamagedFileSaysAboutTheDevice) {
  const std::string text = all_text(only("small_grid", *plain(one_kernel(1 << 30, 2, 64, 1'000'000))));
  EXPECT_NE(text.find("better 4294967296"), std::string::npos) << text;
}

TEST(SmallGrid, MemoryThatIsBusyIsAFloor) {
  const Handle scene = plain(one_kernel(132, 33, 256, 1'000'000));
  scene->kernel("work").dram_share = 0.6;
  EXPECT_NEAR(only("small_grid", *scene).saved_high, 0.4, 1e-6);
}

TEST(SmallGrid, IsSilentOnOneBlockAnSmOnPersistentAndOnCommunication) {
  EXPECT_TRUE(silent("small_grid", *plain(one_kernel(132, 132, 256, 1'000'000))));
  const Handle persistent = plain(one_kernel(132, 128, 256, 1'000'000));
  persistent->kernel("work").persistent = true;
  EXPECT_TRUE(silent("small_grid", *persistent));
  TraceBuilder t;
  t.launch("ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)", 16, 512, 500'000);
  EXPECT_TRUE(silent("small_grid", *plain(t.trace())));
}

TEST(SmallGrid, IsSilentWhereOthersRunBeside) {
  TraceBuilder t;
  std::vector<std::uint32_t> streams;
  for (int i = 0; i < 4; ++i) streams.push_back(t.stream().current_stream());
  for (const auto stream : streams) t.on_stream(stream).launch("work(float*)", 33, 256, 1'000'000);
  EXPECT_TRUE(silent("small_grid", *plain(t.trace())));
}

TEST(SmallGrid, ShortKernelsAreOneFindingTogether) {
  TraceBuilder t;
  t.launch("big(float*)", 132 * 8, 256, 2'000'000);
  for (int i = 0; i < 10; ++i) t.launch("small_" + std::to_string(i) + "(float*)", 33, 256, 30'000);
  const Finding finding = only("small_grid", *plain(t.trace()));
  EXPECT_EQ(finding.subject, "small kernels");
  EXPECT_NE(finding.claim.find("10 kernels"), std::string::npos) << finding.claim;
  EXPECT_NEAR(finding.saved_high, (300'000 - 10 * 2'000) / 2'300'000.0, 1e-6);  // 2 us each
}

TEST(SmallGrid, ManySmallKernelsAreOneFindingAndTheirOtherFindingsWait) {
  TraceBuilder t;
  for (int i = 0; i < 4; ++i) {
    LaunchShape shape = t.shape("layer_" + std::to_string(i) + "(float*)", 33, 48);
    t.launch(shape, 300'000);
  }
  const Handle scene = plain(t.trace());
  const Finding finding = only("small_grid", *scene);
  EXPECT_EQ(finding.subject, "small kernels");
  EXPECT_NE(finding.claim.find("4 kernels, 100 % of the time"), std::string::npos) << finding.claim;
  EXPECT_NEAR(finding.saved_high, 1 - 0.25 / 16, 1e-4);
  const Diagnosis diagnosis = diagnose(scene->facts());
  ASSERT_EQ(diagnosis.findings.size(), 1U);
  EXPECT_EQ(diagnosis.waiting.size(), 4U);  // ragged_block of each
  for (const Finding& waiting : diagnosis.waiting) EXPECT_EQ(waiting.blocked_by, "small_grid");
}

// 132 SMs hold 8 blocks of 256 threads each, or 2 of 1024.
constexpr std::int64_t kWave = 132 * 8, kWideWave = 132 * 2;

TEST(Tail, OnePointOneWavesWasteFortyFivePercent) {
  const Finding finding = only("tail", *plain(one_kernel(132, kWideWave * 11 / 10, 1024, 1'000'000)));
  EXPECT_NEAR(finding.saved_high, 0.45, 2e-3);
  EXPECT_EQ(finding.saved_low, 0);
  EXPECT_EQ(finding.grade, Evidence::bounded);
  EXPECT_NE(finding.claim.find("1.1 waves"), std::string::npos) << finding.claim;
}

TEST(Tail, OnePointNineWavesAndLessThanOneAreSilent) {
  EXPECT_TRUE(silent("tail", *plain(one_kernel(132, kWideWave * 19 / 10, 1024, 1'000'000))));  // 5 %
  EXPECT_TRUE(silent("tail", *plain(one_kernel(132, kWideWave * 9 / 10, 1024, 1'000'000))));
  EXPECT_TRUE(silent("tail", *plain(one_kernel(132, kWideWave * 2, 1024, 1'000'000))));
  EXPECT_TRUE(silent("tail", *plain(one_kernel(132, kWideWave * 11 / 10, 1024, 5'000))));  // too short
}

// Measured on an H200: at 1.09 waves of 128 threads each, 16 blocks an SM, the last wave takes a fifth of a full one.
TEST(Tail, FewSmallBlocksLeftOnAnSmAreSoonDone) {
  EXPECT_TRUE(silent("tail", *plain(one_kernel(132, 132 * 16 * 109 / 100, 128, 1'000'000))));
}

TEST(Tail, SeveralBlocksAnSmThatShareItsRateAreSilent) {
  TraceBuilder t;
  LaunchShape shape = t.shape("gemm(float*)", 1024, 256);
  shape.blocks_per_sm = 6;  // 1.29 waves, but 7.8 blocks an SM: 8 are the most
  EXPECT_TRUE(silent("tail", *plain(one_kernel(132, shape, 1'000'000))));
}

TEST(Tail, OneBlockMoreOnSomeSmsCountsWhereABlockFillsAnSm) {
  const auto uneven = [](double threads, int an_sm, double blocks) {
    LaunchShape shape = TraceBuilder().shape("work(float*)", std::int64_t(blocks), std::int64_t(threads));
    shape.blocks_per_sm = an_sm;
    return plain(one_kernel(132, shape, 1'000'000));
  };
  const Finding finding = only("tail", *uneven(512, 2, 142));
  EXPECT_NEAR(finding.saved_high, 1 - 142.0 / 264, 1e-3);
  EXPECT_EQ(finding.saved_low, 0);
  EXPECT_NE(finding.claim.find("some SMs 2 blocks and others 1"), std::string::npos) << finding.claim;
  EXPECT_TRUE(silent("tail", *uneven(512, 2, 250)));  // nearly even
  EXPECT_TRUE(silent("tail", *uneven(128, 4, 142)));  // a block alone leaves room on its SM
}

TEST(Tail, PersistentKernelsAreLeftAlone) {
  const Handle scene = plain(one_kernel(132, kWideWave * 11 / 10, 1024, 1'000'000));
  scene->kernel("work").persistent = true;
  EXPECT_TRUE(silent("tail", *scene));
}

TEST(Tail, BusyMemoryLimitsIt) {
  const Handle scene = plain(one_kernel(132, kWideWave * 11 / 10, 1024, 1'000'000));
  scene->kernel("work").dram_share = 0.7;
  EXPECT_NEAR(only("tail", *scene).saved_high, 0.3, 1e-3);
  scene->kernel("work").dram_share = 0.9;
  EXPECT_TRUE(silent("tail", *scene));
}

TEST(Tail, IsNotCheckedWhenNobodyKnowsHowManyBlocksFit) {
  TraceBuilder t;
  LaunchShape shape = t.shape("work(float*)", 1200, 256);
  shape.blocks_per_sm = 0;
  EXPECT_TRUE(is_not_checked("tail", *plain(one_kernel(132, shape, 1'000'000))));
}

TEST(RaggedBlock, LanesOfTheLastWarpAreTheGain) {
  EXPECT_NEAR(only("ragged_block", *plain(one_kernel(132, 5000, 48, 1'000'000))).saved_high, 0.25, 1e-6);
  const Finding one = only("ragged_block", *plain(one_kernel(132, 5000, 1, 1'000'000)));
  EXPECT_NEAR(one.saved_high, 31.0 / 32, 1e-6);
  EXPECT_NE(one.claim.find("blocks of 1 thread: 31 of their 32"), std::string::npos) << one.claim;
}

TEST(RaggedBlock, WholeWarpsAreSilentAndOneLaneOfManyIsTooLittleToShow) {
  EXPECT_TRUE(silent("ragged_block", *plain(one_kernel(132, 5000, 96, 1'000'000))));
  const Handle scene = plain(one_kernel(132, 5000, 1023, 1'000'000));
  EXPECT_EQ(diagnose(scene->facts()).findings.size(), 0U);
}

LaunchShape with_registers(int registers, double occupancy, int blocks_per_sm) {
  LaunchShape shape = TraceBuilder().shape("work(float*)", 132 * 64, 256);
  shape.registers = registers;
  shape.occupancy = occupancy;
  shape.blocks_per_sm = blocks_per_sm;
  shape.limiter = "registers";
  return shape;
}

TEST(LowOccupancy, NamesTheLimiterAndWaitsForCountersWithoutThem) {
  const Handle scene = plain(one_kernel(132, with_registers(168, 0.375, 3), 1'000'000));
  const Finding finding = only("low_occupancy", *scene);
  EXPECT_NE(finding.claim.find("limited by registers"), std::string::npos) << finding.claim;
  EXPECT_NE(finding.next_step.find("168 registers"), std::string::npos);
  EXPECT_EQ(finding.saved_high, 0);
  const Diagnosis diagnosis = diagnose(scene->facts());
  EXPECT_TRUE(diagnosis.findings.empty());
  ASSERT_EQ(diagnosis.waiting.size(), 1U);
  EXPECT_EQ(diagnosis.waiting[0].blocked_by, "sol");
}

TEST(LowOccupancy, IsANoteWhereHardlyAnyWarpFits) {
  const Handle scene = plain(one_kernel(132, with_registers(255, 0.25, 2), 1'000'000));
  const Diagnosis diagnosis = diagnose(scene->facts());
  ASSERT_EQ(diagnosis.findings.size(), 1U);
  EXPECT_EQ(diagnosis.findings[0].id, "low_occupancy");
  EXPECT_EQ(diagnosis.findings[0].severity, Severity::info);
}

TEST(LowOccupancy, HasAGainWhereNeitherMemoryNorSmsAreBusy) {
  const Handle scene = plain(one_kernel(132, with_registers(168, 0.4, 3), 1'000'000));
  scene->kernel("work").dram_share = 0.2;
  scene->kernel("work").sm_share = 0.3;
  EXPECT_NEAR(only("low_occupancy", *scene).saved_high, 0.5, 1e-6);  // min(1 - 0.4/0.8, 1 - 0.3)
  scene->kernel("work").dram_share = 0.65;
  EXPECT_TRUE(silent("low_occupancy", *scene));
}

TEST(LowOccupancy, IsSilentOnTensorKernelsAndOneBlockAnSm) {
  const Handle tensor = plain(one_kernel(132, with_registers(168, 0.375, 3), 1'000'000));
  tensor->kernel("work").tensor = true;
  EXPECT_TRUE(silent("low_occupancy", *tensor));
  EXPECT_TRUE(silent("low_occupancy", *plain(one_kernel(132, with_registers(255, 0.125, 1), 1'000'000))));
  EXPECT_TRUE(silent("low_occupancy", *plain(one_kernel(132, with_registers(32, 0.8, 6), 1'000'000))));
}

TEST(MissedConcurrency, LaunchesThatWouldFitSideBySide) {
  // 264 of 1056 blocks: four fit.
  const Finding finding = only("missed_concurrency", *plain(one_kernel(132, kWave / 4, 256, 100'000, 8)));
  EXPECT_EQ(finding.saved_high, 0);  // a chain of steps looks the same
  EXPECT_EQ(finding.severity, Severity::info);
  EXPECT_NE(all_text(finding).find("up to 75 % of the time if all of them are independent"),
            std::string::npos);
}

TEST(MissedConcurrency, IsSilentOnShortRunsOthersBetweenHalfFullAndStreams) {
  EXPECT_TRUE(silent("missed_concurrency", *plain(one_kernel(132, kWave / 4, 256, 100'000, 3))));
  EXPECT_TRUE(silent("missed_concurrency", *plain(one_kernel(132, kWave / 2, 256, 100'000, 8))));
  TraceBuilder between, streams, two;
  for (int i = 0; i < 8; ++i) {
    between.launch("a(float*)", kWave / 4, 256, 100'000).launch("b(float*)", kWave / 4, 256, 100'000);
    streams.stream().launch("a(float*)", kWave / 4, 256, 100'000);
  }
  const auto first = two.stream().current_stream(), second = two.stream().current_stream();
  for (int i = 0; i < 8; ++i) {
    two.on_stream(first).launch("a(float*)", kWave / 4, 256, 100'000);
    two.on_stream(second).launch("a(float*)", kWave / 4, 256, 100'000);
  }
  EXPECT_TRUE(silent("missed_concurrency", *plain(two.trace())));  // others run beside it already
  EXPECT_TRUE(silent("missed_concurrency", *plain(between.trace())));
  EXPECT_TRUE(silent("missed_concurrency", *plain(streams.trace())));
}

TEST(LowOccupancy, TwoWarpsASchedulerHaveABoundWithoutCounters) {
  const auto at = [](double occupancy, const char* name) {
    LaunchShape shape = TraceBuilder().shape(name, 132 * 64, 128);
    shape.occupancy = occupancy;
    shape.blocks_per_sm = int(occupancy * 16);
    shape.limiter = "shared memory";
    return plain(one_kernel(132, shape, 1'000'000));
  };
  const Finding finding = only("low_occupancy", *at(0.125, "gather(float*)"));
  EXPECT_EQ(finding.saved_low, 0);
  EXPECT_NEAR(finding.saved_high, 0.75, 1e-3);  // half of the warps, if it waits for nothing but latencies
  EXPECT_EQ(only("low_occupancy", *at(0.25, "gather(float*)")).saved_high, 0);
  EXPECT_GT(only("low_occupancy", *at(0.125, "my_gemm(float*)")).saved_high, 0);  // by its name alone
}

TEST(LowOccupancy, IsSilentAboutTilesInRegisters) {
  for (const char* name : {"my_gemm(float*)", "_attn_fwd", "matmul_kernel", "causal_attention(half*)"}) {
    LaunchShape shape = TraceBuilder().shape(name, 132 * 64, 128);
    shape.occupancy = 0.125, shape.blocks_per_sm = 2, shape.registers = 255, shape.limiter = "registers";
    EXPECT_TRUE(silent("low_occupancy", *plain(one_kernel(132, shape, 1'000'000)))) << name;
  }
}

TEST(LowOccupancy, OneBlockOfAFewWarpsIsADesignOnlyWhereItHoldsATile) {
  const auto alone = [](int warps, int registers, std::int64_t grid) {
    LaunchShape shape = TraceBuilder().shape("gather(float*)", grid, 32 * warps);
    shape.occupancy = warps / 64.0, shape.blocks_per_sm = 1, shape.registers = registers;
    shape.limiter = "shared memory", shape.dynamic_shared = 200 << 10;
    return plain(one_kernel(132, shape, 1'000'000));
  };
  EXPECT_NEAR(only("low_occupancy", *alone(4, 40, 4096)).saved_high, 1 - 1 / 8.0, 1e-6);
  EXPECT_TRUE(silent("low_occupancy", *alone(8, 40, 4096)));   // two warps a scheduler
  EXPECT_TRUE(silent("low_occupancy", *alone(4, 128, 4096)));  // whose registers hold a tile
  EXPECT_TRUE(silent("low_occupancy", *alone(4, 40, 132)));    // each block has its SM
}

TEST(Spill, LocalMemoryThatL1DoesNotHoldHasABound) {
  LaunchShape shape = TraceBuilder().shape("work(float*)", 132 * 64, 256);
  const auto found = [&](std::int64_t bytes) {
    shape.local_bytes = bytes;
    return only("spill", *plain(one_kernel(132, shape, 1'000'000)));
  };
  const Finding far = found(512);  // of 2048 threads: 1 MiB an SM
  EXPECT_NE(far.claim.find("512"), std::string::npos) << far.claim;
  EXPECT_EQ(far.saved_low, 0);
  EXPECT_NEAR(far.saved_high, 0.93, 1e-3);
  EXPECT_EQ(far.grade, Evidence::bounded);
  EXPECT_NEAR(found(128).saved_high, 0.67, 1e-3);  // L2
  EXPECT_EQ(found(64).saved_high, 0);              // 128 KiB: L1
  EXPECT_EQ(found(64).severity, Severity::info);
  shape.local_bytes = 8;
  EXPECT_TRUE(silent("spill", *plain(one_kernel(132, shape, 1'000'000))));
  EXPECT_TRUE(silent("spill", *plain(one_kernel(132, 132 * 64, 256, 1'000'000))));
}

TEST(Geometry, NothingIsFineWithoutKernels) {
  TraceBuilder t;
  t.copy_h2d(1 << 20);
  const Handle scene = plain(t.trace());
  for (const char* rule :
       {"small_grid", "tail", "ragged_block", "low_occupancy", "missed_concurrency", "spill"}) {
    EXPECT_TRUE(is_not_checked(rule, *scene)) << rule;
  }
}

}  // namespace
}  // namespace fulcrum::diagnose::test
