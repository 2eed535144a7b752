// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Rules about the default stream and managed memory, and what comes first on programs with one defect each.
#include "support/timeline_rules.h"

namespace fulcrum::test {
namespace {

constexpr std::int64_t kWhole = 132 * 16;

// Four requests of two kernels each; the second on the default stream.
GpuTrace requests(bool blocking, std::int64_t grid, bool default_stream = true) {
  TraceBuilder t;
  t.alloc(1 << 20);
  const auto legacy = t.current_stream();
  std::vector<std::uint32_t> streams;
  for (int i = 0; i < 4; ++i) {
    streams.push_back(t.stream({.legacy = false, .blocking = blocking}).current_stream());
  }
  for (int i = 0; i < 50; ++i) {
    for (const auto stream : streams) {
      t.on_stream(stream).launch("encode(float*)", grid, 64, 60'000);
      t.on_stream(default_stream ? legacy : stream).launch("decode(float*)", grid, 64, 20'000);
    }
  }
  t.device_sync();
  return t.trace();
}

TEST(DefaultStream, FindsWorkThatItSerialises) {
  const Traced traced(requests(true, 264));
  const auto findings = traced.findings("default_stream");
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].grade, Evidence::bounded);
  EXPECT_EQ(findings[0].saved_low, 0);
  // Four at a time take 80 us of 328; no order but that of each stream would leave the default stream's own 80.
  EXPECT_NEAR(findings[0].saved_high, 1.05 * (328 - 80) / 328.0 + 0.01, 0.01);
}

TEST(DefaultStream, KeepsSilentWhereTheDeviceIsFull) {
  EXPECT_TRUE(Traced(requests(true, 132 * 64)).findings("default_stream").empty());
}

TEST(DefaultStream, KeepsSilentAboutStreamsThatDoNotBlock) {
  EXPECT_TRUE(Traced(requests(false, 264)).findings("default_stream").empty());
  EXPECT_TRUE(Traced(requests(true, 264, false)).findings("default_stream").empty());
}

TEST(DefaultStream, IsNotCheckedWhereNobodySaysWhichStreamsWaitForIt) {
  GpuTrace trace = requests(false, 264);
  trace.origin = "kineto";
  EXPECT_TRUE(Traced(trace).look("default_stream").not_checked);
  GpuTrace one = pytorch_like_step();
  one.origin = "kineto";
  EXPECT_FALSE(Traced(one).look("default_stream").not_checked);
}

TEST(DefaultStream, KeepsSilentWhereThereIsNoOther) {
  EXPECT_TRUE(Traced(pytorch_like_step()).findings("default_stream").empty());
}

// Four threads, each with launches that use few SMs and a wait for them, and no stream but the default one.
TEST(DefaultStream, FindsThreadsThatAllLaunchIntoIt) {
  TraceBuilder t;
  std::vector<std::uint32_t> threads = {t.current_thread()};
  for (int i = 1; i < 4; ++i) threads.push_back(t.thread("worker").current_thread());
  for (int i = 0; i < 50; ++i) {
    for (const auto thread : threads) t.on_thread(thread).launch("solve(float*)", 30, 256, 60'000);
    for (const auto thread : threads) t.on_thread(thread).stream_sync();
  }
  const Traced traced(t.trace());
  const auto findings = traced.findings("default_stream");
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_NE(findings[0].claim.find("4 threads of the host"), std::string::npos) << findings[0].claim;
  EXPECT_GT(findings[0].saved_high, 0.5);
  EXPECT_EQ(findings[0].saved_low, 0);
}

TEST(DefaultStream, IsSilentOnCleanTraces) { expect_silent_on_clean("default_stream"); }

// Kernels of 400 us, of which the middle 300 are faults; 2 MiB move.
GpuTrace faulting(std::int64_t stall_ns) {
  TraceBuilder t;
  t.alloc(1 << 20);
  for (int i = 0; i < 50; ++i) {
    t.launch("advance(float*)", kWhole, 256, 400'000);
    const auto begin = t.last_op().begin_ns + 50'000;
    t.fault(begin, begin + stall_ns, 0, true).fault(begin, begin + stall_ns / 2, 2 << 20, false);
  }
  return t.trace();
}

TEST(ManagedFaults, FindsKernelsThatStandStill) {
  const Traced traced(faulting(300'000), {.from = "test", .pinned_bytes_per_second = 55e9});
  const auto findings = traced.findings("managed_faults");
  ASSERT_EQ(findings.size(), 1u);
  // At the low end the 2 MiB still move, in 38 us, and half of the rest goes; at the high end a quarter more of what
  // stays.
  expect_saved(findings[0], (300 - 38.1) / 2, 300 + 0.25 * 101, 401);
}

TEST(ManagedFaults, AtTheLowEndTheHostStillFetchesItsPagesBack) {
  TraceBuilder t;
  t.alloc(1 << 20);
  for (int i = 0; i < 50; ++i) {
    t.launch("advance(float*)", kWhole, 256, 400'000);
    const auto begin = t.last_op().begin_ns + 50'000;
    t.fault(begin, begin + 150'000, 0, true).device_sync();
    t.fault(t.host_now(), t.host_now() + 200'000, 2 << 20, false).host_work(250'000);
  }
  GpuTrace trace = t.trace();
  for (GpuTrace::Fault& fault : trace.faults)
    if (!fault.stalled) fault.direction = CopyKind::d2h;
  const Traced traced(std::move(trace), {.from = "test", .pinned_bytes_per_second = 55e9});
  const auto findings = traced.findings("managed_faults");
  ASSERT_EQ(findings.size(), 1u);
  const double step_us = traced.facts().timeline.seconds * 1e6 / 50;
  EXPECT_NEAR(findings[0].saved_low * step_us, (150 - 38.1) / 2, 15);  // with the host it would be 156
  EXPECT_GT(findings[0].saved_high * step_us, 150 + 200);
}

TEST(ManagedFaults, KeepsSilentAboutAFew) {
  EXPECT_TRUE(Traced(faulting(3'000)).findings("managed_faults").empty());
}

TEST(ManagedFaults, KeepsSilentAboutPagesThatMoveAhead) {
  TraceBuilder t;
  for (int i = 0; i < 50; ++i) {
    const auto begin = t.host_now();
    t.fault(begin, begin + 40'000, 2 << 20, false);
    t.host_work(45'000).launch("advance(float*)", kWhole, 256, 400'000).device_sync();
  }
  EXPECT_TRUE(Traced(t.trace()).findings("managed_faults").empty());
}

TEST(ManagedFaults, AreNotCheckedWithoutTheirRecords) {
  EXPECT_TRUE(Traced(launch_bound()).look("managed_faults").not_checked);
}

std::string first_finding(GpuTrace trace) {
  const Traced traced(std::move(trace), {.from = "test", .pinned_bytes_per_second = 55e9});
  const Diagnosis diagnosis = diagnose::diagnose(traced.facts());
  return diagnosis.findings.empty() ? "none" : diagnosis.findings[0].id;
}

TEST(TimelineRules, RankTheDefectFirst) {
  EXPECT_EQ(first_finding(launch_bound()), "launch_bound");
  EXPECT_EQ(first_finding(copy_bound()), "pageable_copy");
  EXPECT_EQ(first_finding(requests(true, 264)), "default_stream");
  EXPECT_EQ(first_finding(faulting(300'000)), "managed_faults");
  EXPECT_EQ(first_finding(pytorch_like_step()), "launch_bound");
}

}  // namespace
}  // namespace fulcrum::test
