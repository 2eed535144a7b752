// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Rules about the machine, the build and the trace itself: clocks, other processes, stale binaries, losses, one-off work.
#include "diagnose/scene.h"

namespace fulcrum::diagnose::test {
namespace {

constexpr std::uint64_t kIdle = 1, kPowerCap = 4, kThermal = 0x20;

TraceBuilder busy(int kernels = 10) {
  TraceBuilder t;
  for (int i = 0; i < kernels; ++i) t.launch("work(float*)", 132 * 16, 256, 1'000'000);
  return t;
}

Handle clocked(double mhz, std::uint64_t reasons, int held = 10) {
  TraceBuilder t = busy();
  for (int i = 0; i < 10; ++i)
    t.clock(1'000'000 + i * 900'000, i < held ? mhz : 1980, i < held ? reasons : 0);
  return plain(t.trace());
}

TEST(Throttle, HeatCostsWhatTheClockIsLower) {
  const Finding finding = only("throttle", *clocked(990, kThermal));
  EXPECT_NEAR(finding.saved_high, 0.5, 1e-6);
  EXPECT_EQ(finding.saved_low, 0);
  EXPECT_NE(finding.claim.find("990 of 1980 MHz: software thermal slowdown"), std::string::npos)
      << finding.claim;
  EXPECT_NEAR(only("throttle", *clocked(990, kThermal, 5)).saved_high, 0.25, 1e-6);
}

TEST(Throttle, MemoryBoundKernelsLoseNothing) {
  const Handle scene = clocked(990, kThermal);
  scene->kernel("work").dram_share = 0.8;
  EXPECT_EQ(only("throttle", *scene).saved_high, 0);
}

TEST(Throttle, NearlyFullClocksIdleOnesAndFewSamplesAreSilent) {
  EXPECT_TRUE(silent("throttle", *clocked(1900, kThermal)));
  EXPECT_TRUE(silent("throttle", *clocked(1600, 0)));
  EXPECT_TRUE(silent("throttle", *clocked(990, kThermal, 1)));
  EXPECT_TRUE(silent("throttle", *clocked(345, kIdle, 9)));
}

TEST(Throttle, ThePowerLimitIsNoGain) {
  const Finding finding = only("throttle", *clocked(1400, kPowerCap));
  EXPECT_EQ(finding.severity, Severity::info);
  EXPECT_EQ(finding.saved_high, 0);
  EXPECT_TRUE(silent("throttle", *clocked(1750, kPowerCap)));  // as such cards do
}

TEST(Throttle, IsNotCheckedWithoutClocks) { EXPECT_TRUE(is_not_checked("throttle", *plain(busy().trace()))); }

Handle shared_gpu(std::vector<std::int64_t> others, double utilisation, int with_others = 10) {
  TraceBuilder t = busy();
  for (int i = 0; i < 10; ++i) {
    t.clock(i * 1'000'000, 1980, 0, i < with_others ? others : std::vector<std::int64_t>{});
    t.raw().clocks.back().utilisation = utilisation;
  }
  Handle scene = plain(t.trace());
  scene->timeline.devices.front().busy_seconds = 0.5 * scene->timeline.seconds;
  return scene;
}

TEST(OtherProcesses, AreNamedWhenTheGpuIsBusierThanThisProgram) {
  const Finding finding = only("other_processes", *shared_gpu({4711}, 0.95));
  EXPECT_NE(all_text(finding).find("4711"), std::string::npos);
  EXPECT_EQ(finding.severity, Severity::info);
  EXPECT_EQ(look("other_processes", *shared_gpu({4711}, -1)).findings.size(), 1U);  // nobody knows how busy
}

TEST(OtherProcesses, IdleOnesOwnOnesAndShortVisitsAreSilent) {
  EXPECT_TRUE(silent("other_processes", *shared_gpu({4711}, 0.55)));
  EXPECT_TRUE(silent("other_processes", *shared_gpu({1000}, 0.95)));  // our own process
  EXPECT_TRUE(silent("other_processes", *shared_gpu({4711}, 0.95, 3)));
  EXPECT_TRUE(silent("other_processes", *shared_gpu({}, 0.95)));
  EXPECT_TRUE(is_not_checked("other_processes", *plain(busy().trace())));
}

TEST(StaleBuild, ABinaryOlderThanItsSourceIsSaid) {
  TraceBuilder t = busy();
  t.raw().binaries.push_back({.path = "./app", .build_id = "ab12"});
  EXPECT_TRUE(silent("stale_build", *plain(t.trace())));
  t.raw().binaries[0].newer = "kernel.cu";
  t.raw().binaries[0].newer_by_ns = std::int64_t{600} * 1'000'000'000;
  const Finding finding = only("stale_build", *plain(t.trace()));
  EXPECT_EQ(finding.claim, "./app is older than kernel.cu");
  EXPECT_NE(finding.evidence[0].find("10 min"), std::string::npos) << finding.evidence[0];
  EXPECT_EQ(finding.severity, Severity::info);
  EXPECT_TRUE(is_not_checked("stale_build", *plain(busy().trace())));
}

TEST(Integrity, DropsAboveOneInAThousandMakeFindingsUnreliable) {
  TraceBuilder few = busy(1000), many = busy(1000);
  few.drops(1);
  many.drops(100);
  EXPECT_TRUE(silent("integrity", *plain(few.trace())));
  EXPECT_FALSE(diagnose(plain(few.trace())->facts()).unreliable);
  const Handle scene = plain(many.trace());
  EXPECT_NE(only("integrity", *scene).claim.find("100 records were dropped"), std::string::npos);
  const Diagnosis diagnosis = diagnose(scene->facts());
  EXPECT_TRUE(diagnosis.unreliable);
  ASSERT_FALSE(diagnosis.findings.empty());
  EXPECT_EQ(diagnosis.findings.back().id, "integrity");
}

TEST(Integrity, WorkThatWasQueuedWhenASignalEndedTheProgramNeverEnded) {
  const auto ended = [](const char* how, std::int64_t queued) {
    TraceBuilder t = busy(100);
    t.zero_stamps(queued).raw().processes[0].end = how;
    return look("integrity", *plain(t.trace())).findings.size();
  };
  EXPECT_EQ(ended("SIGTERM", 46), 0U);
  EXPECT_EQ(ended("exit", 46), 1U);
  EXPECT_EQ(ended("SIGTERM", 1100), 1U) << "more than fits a queue";
}

TEST(Integrity, SeesZeroStampsSkewAndAModelThatDoesNotMatch) {
  TraceBuilder t = busy(100);
  t.zero_stamps(5);
  EXPECT_NE(only("integrity", *plain(t.trace())).claim.find("no time stamps"), std::string::npos);
  const Handle skewed = plain(busy(100).trace());
  skewed->timeline.skewed = 3;
  EXPECT_NE(only("integrity", *skewed).claim.find("began before their launch"), std::string::npos);
  const Handle off = plain(busy(100).trace());
  off->timeline.model_error = 0.05;
  EXPECT_NE(only("integrity", *off).claim.find("5.0 %"), std::string::npos);
  EXPECT_TRUE(diagnose(off->facts()).unreliable);
  off->timeline.model_error = 0.02;
  EXPECT_TRUE(silent("integrity", *off));
}

TEST(Integrity, RefusedClocksAreFineAndRefusedCopiesAreNot) {
  TraceBuilder t = busy();
  t.raw().processes[0].refused = {"ENVIRONMENT (14)"};
  EXPECT_TRUE(silent("integrity", *plain(t.trace())));
  t.raw().processes[0].refused.push_back("MEMCPY (14)");
  EXPECT_NE(only("integrity", *plain(t.trace())).claim.find("MEMCPY"), std::string::npos);
}

TEST(Integrity, NamesGraphsWithoutNodesAndProcessesThatSomebodyElseProfiled) {
  TraceBuilder t = busy();
  t.raw().ops[3].kind = GpuOpKind::graph;
  EXPECT_NE(only("integrity", *plain(t.trace())).claim.find("graphs whose kernels were not seen"),
            std::string::npos);
  TraceBuilder held = busy();
  held.raw().processes[0].profiler = "Nsight Systems";
  EXPECT_NE(only("integrity", *plain(held.trace())).claim.find("Nsight Systems"), std::string::npos);
}

TEST(OneOff, CompilingIsSecondsOnceAndAGainOfTheWholeRunOnly) {
  TraceBuilder t;
  t.module_load(1'200'000'000, "jit");
  for (int i = 0; i < 10; ++i) t.launch("work(float*)", 132 * 16, 256, 1'000'000);
  t.raw().wall_ns = 2'000'000'000;
  Handle scene = plain(t.trace());
  const Finding finding = only("one_off", *scene);
  EXPECT_NE(finding.claim.find("1.20 s"), std::string::npos) << finding.claim;
  EXPECT_NEAR(finding.saved_high, 0.6, 1e-3);
  EXPECT_LT(finding.saved_low, finding.saved_high);
  const Diagnosis diagnosis = diagnose(scene->facts());
  EXPECT_EQ(diagnosis.findings.front().severity, Severity::consider);
  EXPECT_EQ(diagnosis.together_high, 0) << "not of a step";
  t.raw().wall_ns = 20'000'000'000;
  scene = plain(t.trace());
  EXPECT_EQ(only("one_off", *scene).saved_high, 0);
  EXPECT_EQ(diagnose(scene->facts()).findings.front().severity, Severity::info);
}

TEST(OneOff, OrdinaryLoadingIsSilentAndOverlapsCountOnce) {
  TraceBuilder t = busy();
  t.overhead("lazy load", 0, 400'000'000).overhead("module load", 0, 300'000'000);
  t.overhead("flush", 0, 3'000'000'000);  // our own
  EXPECT_TRUE(silent("one_off", *plain(t.trace())));
  t.overhead("lazy load", 100'000'000, 400'000'000).overhead("lazy load", 300'000'000, 450'000'000);
  EXPECT_TRUE(silent("one_off", *plain(t.trace())));  // 0.45 s, not 1.15
  t.overhead("lazy load", 450'000'000, 600'000'000);
  EXPECT_EQ(only("one_off", *plain(t.trace())).subject, "lazy load");
}

TEST(OneOff, IsNotCheckedWhereOverheadsWereNotRecorded) {
  TraceBuilder t = busy();
  t.raw().processes[0].kinds = {"CONCURRENT_KERNEL"};
  EXPECT_TRUE(is_not_checked("one_off", *plain(t.trace())));
}

}  // namespace
}  // namespace fulcrum::diagnose::test
