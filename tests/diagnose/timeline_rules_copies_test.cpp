// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Rules about copies: pageable memory, small ones, those that were not needed, those that nothing runs beside.
#include "support/timeline_rules.h"

namespace fulcrum::test {
namespace {

constexpr std::int64_t kFullGrid = 132 * 16, kMegabyte = 1 << 20;

TEST(PageableCopy, FindsUploadsThatBlockTheHost) {
  TraceBuilder t;
  t.alloc(1 << 20);
  for (int i = 0; i < 50; ++i) {
    t.copy_h2d(16 * kMegabyte, MemoryKind::pageable, false).launch("step(float*)", kFullGrid, 256, 400'000);
  }
  const Traced traced(t.trace(), {.from = "test", .pinned_bytes_per_second = 55e9});
  const auto findings = traced.findings("pageable_copy");
  ASSERT_EQ(findings.size(), 1u);
  // The copy takes 1679.2 us, 306.5 if pinned; a step is copy, 1 + 4 to the kernel, the kernel, 1 to the next copy.
  // Pinned, at the low end a quarter slower; queued ahead, at the high end, 1 us between ops is all that stays.
  const double step = 1679.2 + 5 + 400 + 1;
  EXPECT_NEAR(traced.timeline.iterations.median_seconds, step * 1e-6, 1e-7);
  expect_saved(findings[0], 1679.2 - 382.8, 1679.2 - 306.5 + 4, step);
  EXPECT_TRUE(traced.findings("no_overlap").empty());
  EXPECT_TRUE(traced.findings("idle_gaps").empty());
  EXPECT_TRUE(traced.findings("sync_stall").empty());
}

TEST(PageableCopy, WhatIsCopiedOnceIsANoteSinceToPinItTakesLonger) {
  TraceBuilder t;
  t.copy_h2d(256 * kMegabyte, MemoryKind::pageable, false)
      .copy_h2d(256 * kMegabyte, MemoryKind::pageable, false);
  t.launch("add(float*)", kFullGrid, 256, 200'000).copy_d2h(256 * kMegabyte, MemoryKind::pageable, false);
  const auto findings = Traced(t.trace()).findings("pageable_copy");
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].severity, Severity::info);
  EXPECT_EQ(findings[0].saved_high, 0);
  EXPECT_NE(findings[0].evidence.back().find("no loop"), std::string::npos) << findings[0].evidence.back();
}

TEST(PageableCopy, KeepsSilentAboutAFewBytes) {
  TraceBuilder t;
  for (int i = 0; i < 50; ++i) {
    t.copy_h2d(4096, MemoryKind::pageable).launch("step(float*)", kFullGrid, 256, 2'000'000);
  }
  EXPECT_TRUE(Traced(t.trace()).findings("pageable_copy").empty());
}

TEST(PageableCopy, KeepsSilentAboutPinnedMemory) {
  TraceBuilder t;
  for (int i = 0; i < 50; ++i) t.copy_h2d(16 * kMegabyte).launch("step(float*)", kFullGrid, 256, 400'000);
  EXPECT_TRUE(Traced(t.trace()).findings("pageable_copy").empty());
}

TEST(PageableCopy, IsSilentOnCleanTraces) { expect_silent_on_clean("pageable_copy"); }

GpuTrace parameter_blocks(int copies, std::int64_t bytes) {
  TraceBuilder t;
  t.alloc(1 << 20);
  for (int i = 0; i < 50; ++i) {
    for (int c = 0; c < copies; ++c) t.copy_h2d(bytes);
    t.launch("apply(float*)", kFullGrid, 256, 100'000);
  }
  return t.trace();
}

TEST(SmallCopies, FindsManyInARow) {
  const Traced traced(parameter_blocks(96, 4096), {.from = "test", .pinned_bytes_per_second = 55e9});
  const auto findings = traced.findings("small_copies");
  ASSERT_EQ(findings.size(), 1u);
  // A copy takes 1574 ns and 1 us to the next, 96 of them and the kernel 101 us more: the GPU is the limit. As one:
  // 1.574 + 393216 B at 55 GB/s = 8.7 us. Gathering the bytes on the host costs 79 us at
  // most, and the 95 us between them may be the tracer's.
  const double step = 96 * 2.574 + 101, saved = 96 * 2.574 - (1.5 + 7.15 + 1);
  EXPECT_NEAR(findings[0].saved_high, 1.05 * saved / step + 0.01, 0.005);
  EXPECT_NEAR(findings[0].saved_low, 0.95 * (saved - 95 - 78.6) / (step - 95) - 0.01, 0.005);
  EXPECT_NEAR(double(findings[0].change.gone.size()), 95.0 * double(findings[0].change.op_ns.size()), 95);
  EXPECT_TRUE(traced.findings("launch_bound").empty());
}

TEST(SmallCopies, KeepsSilentAboutAFew) {
  EXPECT_TRUE(Traced(parameter_blocks(3, 4096)).findings("small_copies").empty());
}

TEST(SmallCopies, KeepsSilentAboutCopiesThatAreWorthTheirFixedCost) {
  EXPECT_TRUE(Traced(parameter_blocks(12, 4 * kMegabyte)).findings("small_copies").empty());
}

TEST(SmallCopies, OwnsSmallPageableOnes) {
  TraceBuilder t;
  for (int i = 0; i < 50; ++i) {
    for (int c = 0; c < 32; ++c) t.copy_h2d(4096, MemoryKind::pageable, false);
    t.launch("apply(float*)", kFullGrid, 256, 100'000);
  }
  const Traced traced(t.trace());
  EXPECT_EQ(traced.findings("small_copies").size(), 1u);
  EXPECT_TRUE(traced.findings("pageable_copy").empty());
}

TEST(SmallCopies, OwnsManyResultsReadOneByOne) {
  TraceBuilder t;
  for (int i = 0; i < 50; ++i) {
    t.launch("apply(float*)", kFullGrid, 256, 100'000);
    for (int c = 0; c < 32; ++c) t.copy_d2h(64, MemoryKind::pageable, false);
  }
  const Traced traced(t.trace());
  EXPECT_EQ(traced.findings("small_copies").size(), 1u);
  EXPECT_TRUE(traced.findings("sync_stall").empty());
}

TEST(SmallCopies, IsSilentOnCleanTraces) { expect_silent_on_clean("small_copies"); }

// A table of 16 MiB from one place to another in every step.
GpuTrace table_again(std::int64_t host_ns, bool hashed, bool changes,
                     MemoryKind memory = MemoryKind::pinned) {
  TraceBuilder t;
  t.alloc(1 << 20);
  for (std::uint64_t i = 0; i < 500; ++i) {
    t.host_work(host_ns);
    t.addresses(0x1000, 0x2000, hashed ? (changes ? i + 1 : 7) : 0).copy_h2d(16 * kMegabyte, memory);
    t.launch("look_up(float*)", kFullGrid, 256, 100'000);
  }
  return t.trace();
}

TEST(RedundantCopy, FindsContentsThatAreThereAlready) {
  const Traced traced(table_again(0, true, false));
  const auto findings = traced.findings("redundant_copy");
  ASSERT_EQ(findings.size(), 1u);
  // A copy of 306.5 us, 1, a kernel of 100, 1.
  expect_saved(findings[0], 307.5, 307.5, 408.5);
  EXPECT_EQ(findings[0].grade, Evidence::measured);
}

TEST(RedundantCopy, WithoutHashesIsABoundWhereTheHostHadNoTimeToWrite) {
  const auto findings = Traced(table_again(0, false, false)).findings("redundant_copy");
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].grade, Evidence::bounded);
  // It had none at all: the low end is as certain as it is with hashes.
  expect_saved(findings[0], 307.5, 307.5, 408.5);
}

TEST(RedundantCopy, LowersTheLowEndByWhatTheHostCouldWrite) {
  // 210 us at 20 GB/s: a quarter of 16 MiB. The host is not what the step waits for, but it is without the copy, and then
  // it may be a fifth faster.
  const auto findings = Traced(table_again(210'000, false, false)).findings("redundant_copy");
  ASSERT_EQ(findings.size(), 1u);
  expect_saved(findings[0], 0.75 * 196, 196 + 0.2 * 210, 408.5);
}

TEST(RedundantCopy, GainsNothingByAHostThatTheStepWaitsForAnyway) {
  TraceBuilder t;
  for (int i = 0; i < 500; ++i) {
    t.host_work(100'000).addresses(0x1000, 0x2000).copy_h2d(16 * kMegabyte, MemoryKind::pinned, false);
    t.launch("look_up(float*)", kFullGrid, 256, 100'000).device_sync();
  }
  const auto findings = Traced(t.trace()).findings("redundant_copy");
  ASSERT_EQ(findings.size(), 1u);
  // Of 518 us the copy is 309 with its call.
  EXPECT_NEAR(findings[0].saved_high, 1.05 * 309 / 518 + 0.01, 0.005);
}

// A table and a small input, both from one place each; the host has the time to change values here and there.
TEST(RedundantCopy, TheSmallestUploadIsTheInputOfTheStep) {
  for (const bool with_table : {true, false}) {
    TraceBuilder t;
    for (int i = 0; i < 500; ++i) {
      t.host_work(2'000);
      if (with_table) t.addresses(0x1000, 0x2000).copy_h2d(16 * kMegabyte);
      t.addresses(0x9000, 0xa000).copy_h2d(1 * kMegabyte);
      t.launch("look_up(float*)", kFullGrid, 256, 100'000);
    }
    const auto findings = Traced(t.trace()).findings("redundant_copy");
    ASSERT_EQ(findings.size(), with_table ? 1u : 0u);
    if (with_table) {
      EXPECT_NE(findings[0].claim.find("16.0 MiB"), std::string::npos) << findings[0].claim;
    }
  }
}

TEST(RedundantCopy, KeepsSilentAboutContentsThatChange) {
  EXPECT_TRUE(Traced(table_again(0, true, true)).findings("redundant_copy").empty());
}

TEST(RedundantCopy, KeepsSilentWhereTheHostHadTimeToWrite) {
  EXPECT_TRUE(Traced(table_again(1'000'000, false, false)).findings("redundant_copy").empty());
}

TEST(RedundantCopy, KeepsSilentAboutBuffersThatTakeTurns) {
  TraceBuilder t;
  for (std::uint64_t i = 0; i < 50; ++i) {
    t.addresses(0x1000 * (1 + i % 4), 0x9000).copy_h2d(16 * kMegabyte);
    t.launch("step(float*)", kFullGrid, 256, 100'000);
  }
  EXPECT_TRUE(Traced(t.trace()).findings("redundant_copy").empty());
}

TEST(RedundantCopy, KeepsSilentAboutABufferThatComesTwiceNowAndThen) {
  const auto found = [](std::uint64_t first_of, std::uint64_t turn) {
    TraceBuilder t;
    for (std::uint64_t i = 0; i < 60; ++i) {  // the first buffer so many times, then each of the others once
      t.addresses(0x1000 * (1 + std::max(i % turn, first_of)), 0x9000).copy_h2d(16 * kMegabyte);
      t.launch("step(float*)", kFullGrid, 256, 100'000);
    }
    return Traced(t.trace()).findings("redundant_copy").size();
  };
  EXPECT_EQ(found(1, 4), 0u);
  EXPECT_EQ(found(3, 4), 1u) << "nearly all of them";
}

TEST(RedundantCopy, KeepsSilentAboutABenchmarkThatTakesItsResultsBack) {
  TraceBuilder t;
  for (std::uint64_t i = 0; i < 50; ++i) {
    t.addresses(0x1000, 0x2000).copy_h2d(16 * kMegabyte);
    t.launch("step(float*)", kFullGrid, 256, 100'000);
    t.addresses(0x3000, 0x4000).copy_d2h(16 * kMegabyte);
  }
  const Traced traced(t.trace());
  EXPECT_TRUE(traced.findings("redundant_copy").empty());
  EXPECT_EQ(traced.findings("no_overlap").size(), 1u);
}

TEST(RedundantCopy, KeepsSilentAboutWhatWasOverwritten) {
  TraceBuilder t;
  for (std::uint64_t i = 0; i < 50; ++i) {
    t.addresses(0x1000, 0x2000).copy_h2d(16 * kMegabyte);
    t.launch("step(float*)", kFullGrid, 256, 100'000);
    t.addresses(0x3000, 0x2000).copy_d2d(16 * kMegabyte);
  }
  EXPECT_TRUE(Traced(t.trace()).findings("redundant_copy").empty());
}

TEST(RedundantCopy, KeepsSilentAboutWhatCameFromTheDevice) {
  TraceBuilder t;
  for (std::uint64_t i = 0; i < 50; ++i) {
    t.addresses(0x1000, 0x2000).copy_h2d(16 * kMegabyte);
    t.launch("step(float*)", kFullGrid, 256, 100'000);
    t.addresses(0x2000, 0x1000).copy_d2h(kMegabyte);
  }
  EXPECT_TRUE(Traced(t.trace()).findings("redundant_copy").empty());
}

TEST(RedundantCopy, OwnsPageableOnes) {
  const Traced traced(table_again(0, true, false, MemoryKind::pageable));
  EXPECT_EQ(traced.findings("redundant_copy").size(), 1u);
  EXPECT_TRUE(traced.findings("pageable_copy").empty());
}

TEST(RedundantCopy, IsNotCheckedWithoutAddresses) {
  EXPECT_TRUE(Traced(parameter_blocks(2, kMegabyte)).look("redundant_copy").not_checked);
}

TEST(RedundantCopy, IsSilentOnCleanTraces) { expect_silent_on_clean("redundant_copy"); }

// Upload, kernel, download, on one stream or on several.
GpuTrace chunks(int streams, std::int64_t kernel_ns, bool download = true, bool async = true,
                TraceCosts costs = {}) {
  TraceBuilder t(costs);
  t.alloc(1 << 20);
  std::vector<std::uint32_t> lanes;
  for (int i = 0; i < streams; ++i) lanes.push_back(t.stream().current_stream());
  for (int i = 0; i < 200; ++i) {
    t.on_stream(lanes[std::size_t(i) % lanes.size()]).copy_h2d(8 * kMegabyte, MemoryKind::pinned, async);
    t.launch("transform(float*)", kFullGrid, 256, kernel_ns);
    if (download) t.copy_d2h(8 * kMegabyte, MemoryKind::pinned, async);
  }
  t.device_sync();
  return t.trace();
}

TEST(NoOverlap, FindsCopiesAndKernelsThatTakeTurns) {
  const Traced traced(chunks(1, 150'000));
  const auto findings = traced.findings("no_overlap");
  ASSERT_EQ(findings.size(), 1u);
  // 154 + 150 + 154 us one after the other, 154 at best.
  expect_saved(findings[0], 0, 304 + 3, 154 + 150 + 154 + 3);
  EXPECT_EQ(findings[0].grade, Evidence::bounded);
}

TEST(NoOverlap, TimeBetweenOpsOfOneStreamIsFilledByOthers) {
  const Traced traced(chunks(1, 150'000, true, true, {.back_to_back = 4'500}));
  const auto findings = traced.findings("no_overlap");
  ASSERT_EQ(findings.size(), 1u);
  expect_saved(findings[0], 0, 304 + 3 * 4.5, 154 + 150 + 154 + 3 * 4.5);
}

TEST(NoOverlap, KeepsSilentWhereChunksOverlap) {
  EXPECT_TRUE(Traced(chunks(4, 150'000)).findings("no_overlap").empty());
}

TEST(NoOverlap, KeepsSilentWhereCopiesAreShort) {
  EXPECT_TRUE(Traced(chunks(1, 10'000'000)).findings("no_overlap").empty());
}

TEST(NoOverlap, KeepsSilentAboutUploadsAlone) {
  EXPECT_TRUE(Traced(chunks(1, 350'000, false)).findings("no_overlap").empty());
}

TEST(NoOverlap, OfCopiesThatTheHostWaitsForIsSaidWhereKernelsAreWorthIt) {
  EXPECT_EQ(Traced(chunks(1, 150'000, true, false)).findings("no_overlap").size(), 1u);
  EXPECT_TRUE(Traced(chunks(1, 40'000, true, false)).findings("no_overlap").empty());
  EXPECT_EQ(Traced(chunks(1, 40'000, true, true)).findings("no_overlap").size(), 1u);
}

// Uploads have a stream of their own, but a single buffer: each waits until the kernel before has read it.
TEST(NoOverlap, FindsStreamsThatWaitForEachOthersBuffer) {
  TraceBuilder t;
  const auto up = t.stream().current_stream(), work = t.stream().current_stream();
  for (int i = 0; i < 200; ++i) {
    t.on_stream(up).stream_wait(1).copy_h2d(8 * kMegabyte).record_event(2);
    t.on_stream(work).stream_wait(2).launch("train(float*)", kFullGrid, 256, 40'000).record_event(1);
  }
  t.device_sync();
  const auto findings = Traced(t.trace()).findings("no_overlap");
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_NE(findings[0].next_step.find("second buffer"), std::string::npos) << findings[0].next_step;
  EXPECT_GT(findings[0].saved_high, 0.15);
  EXPECT_LT(findings[0].saved_high, 0.35);
}

TEST(NoOverlap, IsSilentOnCleanTraces) { expect_silent_on_clean("no_overlap"); }

}  // namespace
}  // namespace fulcrum::test
