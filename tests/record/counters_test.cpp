// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Counters of a program: opened by groups, and nothing where a group cannot be counted. Events of the kernel stand in for
// those of a PMU, which virtual machines often lack.
#include "record/counters.h"

#include <gtest/gtest.h>
#include <linux/perf_event.h>
#include <sys/mman.h>
#include <unistd.h>

#include "record/events.h"

namespace fulcrum::record {
namespace {

const CountedEvent kFaults{"page_faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS};
const CountedEvent kClock{"task_clock", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK};
const CountedEvent kNobodyHas{"nothing", PERF_TYPE_SOFTWARE, 9999};

void touch_pages(std::size_t pages) {
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  void* memory = ::mmap(nullptr, pages * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  ::madvise(memory, pages * page, MADV_NOHUGEPAGE);
  for (std::size_t i = 0; i < pages; ++i) static_cast<volatile char*>(memory)[i * page] = 1;
  ::munmap(memory, pages * page);
}

TEST(RecordCounters, CountWhatHappensWhileTheyAreOpen) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "such a build touches a shadow of every page";
#endif
  if (!probe_access().allowed) GTEST_SKIP() << "perf events are not allowed here";
  const std::vector<CountedGroup> groups = {{kFaults, kClock}};
  const Counters counters = Counters::open(::getpid(), false, false, groups);
  ASSERT_FALSE(counters.empty());
  touch_pages(1000);
  const auto counts = counters.read();
  ASSERT_EQ(counts.size(), 2u);
  EXPECT_GE(counts.at("page_faults"), 1000);
  EXPECT_LT(counts.at("page_faults"), 3000);
  EXPECT_GT(counts.at("task_clock"), 0);
  EXPECT_NEAR(counters.least_counted(), 1, 1e-6) << "events of the kernel take no turns";
}

TEST(RecordCounters, AGroupThatCannotBeCountedIsLeftOutWhole) {
  if (!probe_access().allowed) GTEST_SKIP() << "perf events are not allowed here";
  const std::vector<CountedGroup> groups = {{kClock, kNobodyHas}, {kNobodyHas, kClock}, {kFaults}};
  const Counters counters = Counters::open(::getpid(), false, false, groups);
  const auto counts = counters.read();
  EXPECT_EQ(counts.count("task_clock"), 0u);
  EXPECT_EQ(counts.count("nothing"), 0u);
  EXPECT_EQ(counts.count("page_faults"), 1u);
}

TEST(RecordCounters, ThoseOfThePmuComeInPairsOrNotAtAll) {
  const Counters counters = Counters::open(::getpid(), false, false);
  const auto counts = counters.read();
  EXPECT_EQ(counters.empty(), !probe_access().hardware) << "where samples have cycles there are counts";
  EXPECT_EQ(counts.count("cycles"), counts.count("instructions"));
  EXPECT_EQ(counts.count("cache_misses"), counts.count("cache_references"));
}

}  // namespace
}  // namespace fulcrum::record
