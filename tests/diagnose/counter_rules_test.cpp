// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Rules that need counters: from samples, which the timeline joined to kernels, or from a file of ncu.
#include "diagnose/scene.h"

namespace fulcrum::diagnose::test {
namespace {

struct Shares {
  double dram = -1, sm = -1, tensor = -1, warps = -1;
};

Handle sampled(Shares shares, const std::string& name = "work(float*)") {
  TraceBuilder t;
  for (int i = 0; i < 4; ++i) t.launch(name, 132 * 16, 256, 1'000'000);
  Handle scene = plain(t.trace());
  Timeline::Kernel& kernel = scene->timeline.kernels.front();
  kernel.dram_share = shares.dram, kernel.sm_share = shares.sm;
  kernel.tensor_share = shares.tensor, kernel.warps_share = shares.warps;
  kernel.counter_samples = 50;
  return scene;
}

Handle from_ncu(std::map<std::string, double> metrics) {
  TraceBuilder t;
  t.launch("work(float*)", 132 * 16, 256, 1'000'000);
  t.raw().kernel_counters.push_back(
      {.shape = 0, .origin = "x.csv", .launches = 1, .metrics = std::move(metrics)});
  return plain(t.trace());
}

constexpr const char* kMemory = "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed";
constexpr const char* kCompute = "sm__throughput.avg.pct_of_peak_sustained_elapsed";
constexpr const char* kIssue = "smsp__issue_active.avg.per_cycle_active";

TEST(Sol, KernelsThatKeepNothingBusyWaitForLatencies) {
  const Finding finding = only("sol", *sampled({.dram = 0.1, .sm = 0.2}));
  EXPECT_NE(finding.claim.find("neither DRAM (10 %) nor SMs (20 %)"), std::string::npos) << finding.claim;
  EXPECT_EQ(finding.severity, Severity::info);
  EXPECT_TRUE(silent("sol", *sampled({.dram = 0.1, .sm = 0.65})));
  EXPECT_TRUE(silent("sol", *sampled({.dram = 0.9, .sm = 0.2})));
  const Finding by_ncu = only("sol", *from_ncu({{kMemory, 10}, {kCompute, 20}}));
  EXPECT_NE(by_ncu.claim.find("neither memory (10 %)"), std::string::npos) << by_ncu.claim;  // caches and all
}

TEST(Roofline, MemoryBelowTheMeasuredRoofIsAGain) {
  const Handle scene = sampled({.dram = 0.4, .sm = 0.2});
  scene->roofs = {.from = "measured here", .dram_bytes_per_second = 0.8 * 4.8e12};
  const Finding finding = only("roofline", *scene);
  EXPECT_NEAR(finding.saved_high, 0.5, 1e-6);           // 1 - 0.4 / 0.8
  EXPECT_NEAR(finding.saved_low, 1 - 0.4 / 0.6, 1e-6);  // three quarters of the roof
  EXPECT_EQ(finding.grade, Evidence::modelled);
  EXPECT_NE(all_text(finding).find("measured here"), std::string::npos);
}

TEST(Roofline, NearTheRoofAndComputeBoundAreSilent) {
  const Handle near = sampled({.dram = 0.66, .sm = 0.2});
  near->roofs.dram_bytes_per_second = 0.8 * 4.8e12;
  EXPECT_TRUE(silent("roofline", *near));
  EXPECT_TRUE(silent("roofline", *sampled({.dram = 0.4, .sm = 0.5})));
  EXPECT_TRUE(silent("roofline", *sampled({.dram = 0.2, .sm = 0.1})));  // latencies, not memory
}

TEST(TensorUnused, AnFp32ProductByNameGainsWhatThePeaksSay) {
  const Handle scene = sampled({}, "ampere_sgemm_128x64_nn");
  scene->roofs = {.from = "measured here", .fp32_flops = 50e12, .tf32_flops = 400e12};
  const Finding finding = only("tensor_unused", *scene);
  EXPECT_NEAR(finding.saved_high, 1 - 0.65 * 50 / (0.9 * 400), 1e-5);
  EXPECT_NEAR(finding.saved_low, 1 - 50 / (0.4 * 400), 1e-5);
  EXPECT_NE(finding.next_step.find("TF32"), std::string::npos);
  TraceBuilder brief;
  const Handle tiny = plain(brief.launch("ampere_sgemm_128x64_nn", 132 * 16, 256, 8'000).trace());
  tiny->roofs = scene->roofs;
  EXPECT_EQ(only("tensor_unused", *tiny).saved_low, 0);  // starting and draining is most of it
  scene->roofs = {};
  EXPECT_EQ(only("tensor_unused", *scene).severity, Severity::info);
}

TEST(TensorUnused, ProductsThatAreLittleOfTheTimeAreNotWorthAnotherPrecision) {
  TraceBuilder t;
  t.launch("ampere_sgemm_128x64_nn", 132 * 16, 256, 80'000).launch("other(float*)", 132 * 16, 256, 1'000'000);
  const Handle scene = plain(t.trace());
  scene->roofs = {.from = "measured here", .fp32_flops = 50e12, .tf32_flops = 400e12};
  EXPECT_TRUE(silent("tensor_unused", *scene));
}

TEST(TensorUnused, TensorKernelsOtherKernelsAndOldGpusAreSilent) {
  EXPECT_TRUE(silent("tensor_unused", *sampled({}, "sm90_xmma_gemm_bf16bf16_bf16f32_tn_n")));
  EXPECT_TRUE(silent("tensor_unused", *sampled({.tensor = 0.5}, "my_matmul(float*)")));
  EXPECT_TRUE(silent("tensor_unused", *sampled({.tensor = 0.0}, "softmax(float*)")));
  const Handle old = sampled({}, "ampere_sgemm_128x64_nn");
  old->trace.devices[0].compute_major = 7;
  EXPECT_TRUE(silent("tensor_unused", *old));
  EXPECT_EQ(look("tensor_unused", *sampled({.tensor = 0.0}, "my_matmul(float*)")).findings.size(), 1U);
}

TEST(OccupancyGap, ActiveWarpsFarBelowWhatFits) {
  const auto metrics = [](double warps, double memory) {
    return std::map<std::string, double>{
        {"sm__warps_active.avg.pct_of_peak_sustained_active", warps}, {kMemory, memory}, {kCompute, 30}};
  };
  EXPECT_NEAR(only("occupancy_gap", *from_ncu(metrics(60, 20))).saved_high, 0.4, 1e-6);  // (1 - 0.6) / 1
  EXPECT_NEAR(only("occupancy_gap", *from_ncu(metrics(60, 70))).saved_high, 0.3, 1e-6);  // what memory leaves
  EXPECT_TRUE(silent("occupancy_gap", *from_ncu(metrics(92, 20))));
  EXPECT_TRUE(is_not_checked("occupancy_gap", *sampled({.dram = 0.2, .sm = 0.3, .warps = 0.5})));
}

TEST(Uncoalesced, ExcessSectorsOfABusyCache) {
  const auto metrics = [](double ideal, double memory, double compute) {
    return std::map<std::string, double>{{"memory_l2_theoretical_sectors_global", 1000},
                                         {"memory_l2_theoretical_sectors_global_ideal", ideal},
                                         {"lts__throughput.avg.pct_of_peak_sustained_elapsed", 80},
                                         {kMemory, memory},
                                         {kCompute, compute}};
  };
  const Finding finding = only("uncoalesced", *from_ncu(metrics(125, 90, 20)));
  EXPECT_NEAR(finding.saved_high, 0.8 * 0.875, 1e-6);
  EXPECT_NE(finding.claim.find("8.0 times"), std::string::npos) << finding.claim;
  EXPECT_TRUE(silent("uncoalesced", *from_ncu(metrics(990, 90, 20))));
  EXPECT_TRUE(silent("uncoalesced", *from_ncu(metrics(125, 20, 90))));
}

TEST(BankConflict, ConflictsOfABusyCache) {
  const auto metrics = [](double conflicts) {
    return std::map<std::string, double>{{"l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum", conflicts},
                                         {"l1tex__data_pipe_lsu_wavefronts_mem_shared.sum", 1000},
                                         {"l1tex__throughput.avg.pct_of_peak_sustained_active", 90}};
  };
  EXPECT_NEAR(only("bank_conflict", *from_ncu(metrics(500))).saved_high, 0.45, 1e-6);
  EXPECT_TRUE(silent("bank_conflict", *from_ncu(metrics(90))));
}

TEST(Divergence, IdleLanesOfBusySms) {
  const auto metrics = [](double lanes) {
    return std::map<std::string, double>{{"smsp__thread_inst_executed_per_inst_executed.ratio", lanes},
                                         {kCompute, 80}};
  };
  EXPECT_NEAR(only("divergence", *from_ncu(metrics(8))).saved_high, 0.75 * 0.8, 1e-6);
  EXPECT_TRUE(silent("divergence", *from_ncu(metrics(25))));
}

TEST(IssueSlots, FewIssuesWithoutOneReason) {
  EXPECT_NEAR(only("issue_slots", *from_ncu({{kIssue, 0.2}, {kMemory, 30}, {kCompute, 40}})).saved_high, 0.6,
              1e-6);
  EXPECT_TRUE(silent("issue_slots", *from_ncu({{kIssue, 0.7}})));
}

std::map<std::string, double> stalls(double issue, double loads, double other) {
  const auto name = [](const std::string& reason) {
    return "smsp__average_warps_issue_stalled_" + reason + "_per_issue_active.ratio";
  };
  return {{kIssue, issue},
          {kMemory, 30},
          {kCompute, 20},
          {name("long_scoreboard"), loads},
          {name("wait"), other},
          {name("barrier"), other},
          {name("math_pipe_throttle"), other},
          {name("selected"), 1}};
}

TEST(WarpStall, NamesTheReasonAndIsCappedByIssue) {
  const Finding finding = only("warp_stall", *from_ncu(stalls(0.3, 6, 1)));
  EXPECT_NEAR(finding.saved_high, 0.6, 1e-6);  // min(6/10, 0.7)
  EXPECT_NE(finding.claim.find("loads from global"), std::string::npos) << finding.claim;
  EXPECT_TRUE(silent("issue_slots", *from_ncu(stalls(0.3, 6, 1))));  // one reason: warp_stall says it
}

TEST(WarpStall, NoDominantReasonAndBusySchedulersAreSilent) {
  EXPECT_TRUE(silent("warp_stall", *from_ncu(stalls(0.3, 1, 1))));
  EXPECT_EQ(look("issue_slots", *from_ncu(stalls(0.3, 1, 1))).findings.size(), 1U);
  EXPECT_TRUE(silent("warp_stall", *from_ncu(stalls(0.85, 6, 1))));
}

TEST(Fp64Mix, DoublesAmongFloats) {
  const auto metrics = [](double fp64, double fp32) {
    return std::map<std::string, double>{
        {"smsp__sass_thread_inst_executed_op_dfma_pred_on.sum", fp64},
        {"smsp__sass_thread_inst_executed_op_ffma_pred_on.sum", fp32},
        {"sm__inst_executed_pipe_fp64.avg.pct_of_peak_sustained_active", 80}};
  };
  EXPECT_NEAR(only("fp64_mix", *from_ncu(metrics(500, 500))).saved_high, 0.5 * 0.5 * 0.8, 1e-6);
  const Handle small_chip = from_ncu(metrics(500, 500));
  small_chip->trace.devices[0].compute_minor = 6;
  small_chip->trace.devices[0].compute_major = 8;
  EXPECT_NEAR(only("fp64_mix", *small_chip).saved_high, 0.5 * (1 - 1.0 / 64) * 0.8, 1e-6);
  EXPECT_TRUE(silent("fp64_mix", *from_ncu(metrics(100, 900))));
  EXPECT_TRUE(silent("fp64_mix", *from_ncu(metrics(1000, 0))));  // meant so
}

TEST(NonfusedFp, PairsThatCouldBeOneInstruction) {
  const auto metrics = [](double add, double multiply, double fused) {
    return std::map<std::string, double>{{"smsp__sass_thread_inst_executed_op_fadd_pred_on.sum", add},
                                         {"smsp__sass_thread_inst_executed_op_fmul_pred_on.sum", multiply},
                                         {"smsp__sass_thread_inst_executed_op_ffma_pred_on.sum", fused},
                                         {"sm__inst_executed_pipe_fma.avg.pct_of_peak_sustained_active", 80}};
  };
  EXPECT_NEAR(only("nonfused_fp", *from_ncu(metrics(300, 300, 400))).saved_high, 0.5 * 0.6 * 0.8, 1e-6);
  EXPECT_TRUE(silent("nonfused_fp", *from_ncu(metrics(900, 20, 80))));  // nothing to fuse them with
  EXPECT_TRUE(silent("nonfused_fp", *from_ncu(metrics(40, 40, 920))));
}

TEST(Imbalance, SmsThatWaitForTheLongestOne) {
  const auto metrics = [](double average, double most, double elapsed) {
    return std::map<std::string, double>{{"sm__cycles_active.avg", average},
                                         {"sm__cycles_active.max", most},
                                         {"sm__cycles_elapsed.max", elapsed}};
  };
  const Finding finding = only("imbalance", *from_ncu(metrics(400, 800, 1000)));
  EXPECT_NEAR(finding.saved_high, 0.5 * 0.8, 1e-6);
  EXPECT_NE(finding.claim.find("2.00 times"), std::string::npos) << finding.claim;
  EXPECT_TRUE(silent("imbalance", *from_ncu(metrics(970, 1000, 1000))));
  const Handle loops = from_ncu(metrics(400, 800, 1000));
  loops->timeline.kernels.front().persistent = true;
  EXPECT_TRUE(silent("imbalance", *loops));
}

TEST(Aperture, BytesOverTheLinkAreBoundedByItsRate) {
  const auto metrics = [](double host, double own) {
    return std::map<std::string, double>{{"lts__t_sectors_srcunit_tex_aperture_sysmem.sum", host},
                                         {"lts__t_sectors_srcunit_tex_aperture_device.sum", own}};
  };
  const Handle scene = from_ncu(metrics(1e6, 1e6));  // 32 MB in a kernel of 1 ms
  scene->roofs.pinned_bytes_per_second = 64e9;
  const Finding finding = only("aperture", *scene);
  EXPECT_NEAR(finding.saved_high, 0.5, 1e-3);
  EXPECT_NE(finding.claim.find("over the link"), std::string::npos) << finding.claim;
  const Handle little = from_ncu(metrics(1e5, 1e7));
  little->roofs.pinned_bytes_per_second = 64e9;
  EXPECT_TRUE(silent("aperture", *little));
}

TEST(CounterRules, AreNotCheckedWithoutCountersAndSayWhy) {
  TraceBuilder t;
  t.launch("work(float*)", 132 * 16, 256, 1'000'000);
  const Handle scene = plain(t.trace());
  for (const char* rule : {"sol", "roofline", "occupancy_gap", "uncoalesced", "bank_conflict", "divergence",
                           "issue_slots", "warp_stall", "fp64_mix", "nonfused_fp", "imbalance", "aperture"}) {
    EXPECT_TRUE(is_not_checked(rule, *scene)) << rule;
  }
  EXPECT_TRUE(is_not_checked("sol", *from_ncu({{"lts__t_sectors.sum", 5}})));  // counters, but not those
  scene->trace.counters_refused = "ERR_NVGPUCTRPERM (35)";
  EXPECT_NE(look("sol", *scene).not_checked->why.find("ERR_NVGPUCTRPERM"), std::string::npos);
}

}  // namespace
}  // namespace fulcrum::diagnose::test
