// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Programs whose shares are known, recorded as root (where we are) and as an ordinary user. Shares are of CPU time and
// come from counts of equal steps, so a busy machine does not change them.
#include <fmt/format.h>

#include <fstream>

#include "record/events.h"
#include "record/libdw.h"
#include "record/recording.h"

namespace fulcrum::record {
namespace {

class KnownShares : public ::testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    if (!probe_access().allowed) GTEST_SKIP() << "SKIPPED: perf events are not allowed here";
    if (!libdw()) GTEST_SKIP() << "SKIPPED: " << libdw_text();
  }
  Recording run(const Options& options) {
    const Recording recording = GetParam() ? record_as_nobody(options) : record_here(options);
    if (!recording.ok && !recording.error.starts_with("SKIPPED")) ADD_FAILURE() << recording.error;
    if (recording.ok) {
      EXPECT_GT(recording.samples, 100);
    }
    return recording;
  }
};
INSTANTIATE_TEST_SUITE_P(AsWhom, KnownShares, ::testing::Values(false, true),
                         [](const auto& as) { return as.param ? "AsAnOrdinaryUser" : "AsThisUser"; });

#define FULCRUM_RECORD(recording, options)  \
  const Recording recording = run(options); \
  if (!recording.ok) GTEST_SKIP() << recording.error

TEST_P(KnownShares, ComeOutWithAndWithoutFramePointers) {
  for (const char* name : {"shares_fp", "shares"}) {
    SCOPED_TRACE(name);
    FULCRUM_RECORD(r, run_of(name, {"40000"}));
    expect_share(r, "share_40", 0.40);
    expect_share(r, "share_30", 0.30);
    expect_share(r, "share_15", 0.15);
    expect_share(r, "share_10", 0.10);
    expect_share(r, "share_05", 0.05);
    expect_share(r, "caller_55", 0.55);
    expect_share(r, "caller_45", 0.45);
    EXPECT_GT(r.share("main"), 0.97);
    EXPECT_LE(r.truncated, 0.01 * r.samples + 1);
    EXPECT_EQ(r.exit_code, 0);
  }
}

TEST_P(KnownShares, OfAStrippedProgramGatherByFunction) {
  FULCRUM_RECORD(r, run_of("shares_stripped", {"40000"}));
  EXPECT_EQ(r.share("share_40"), 0);
  std::vector<double> largest;
  for (const auto& [name, share] : r.self) {
    if (name.starts_with("[shares_stripped+0x")) largest.push_back(share);
  }
  std::sort(largest.rbegin(), largest.rend());
  ASSERT_GE(largest.size(), 5u);
  const double expected[] = {0.40, 0.30, 0.15, 0.10, 0.05};
  for (int i = 0; i < 5; ++i) EXPECT_NEAR(largest[i], expected[i], r.margin(expected[i]));
  EXPECT_LE(r.truncated, 0.01 * r.samples + 1);
}

TEST_P(KnownShares, AFunctionIsNotHiddenByALibraryLeafWithoutAFrame) {
  for (const char* name : {"leaf_caller_fp", "leaf_caller"}) {
    SCOPED_TRACE(name);
    FULCRUM_RECORD(r, run_of(name, {"40000", program("libleaf.so")}));
    expect_share(r, "hot_93", 0.93);
    expect_share(r, "library_leaf", 0.85);
    expect_share(r, "rest_07", 0.07);
    EXPECT_NEAR(r.self.at("hot_93"), 0.08, r.margin(0.08));
    EXPECT_LE(r.truncated, 0.01 * r.samples + 1);
  }
}

TEST_P(KnownShares, EveryLibmSampleHasItsCaller) {
  FULCRUM_RECORD(r, run_of("libm_leaf", {"20000"}));
  EXPECT_EQ(r.modules.count("libm.so.6"), 1u);
  // Nothing but the two functions does anything, so what is not the one is the other.
  EXPECT_GT(r.share("calls_libm"), 0.5);
  EXPECT_GT(r.share("calls_libm") + r.share("calls_nothing"), 0.97);
  EXPECT_LT(r.share("calls_libm") + r.share("calls_nothing"), 1.0001);
  // Most libraries are stripped, and this one chose the function when it was loaded.
  double nameless = 0;
  for (const auto& [function, share] : r.self) nameless += function.starts_with("[libm") ? share : 0;
  EXPECT_LT(nameless, 0.1);
}

TEST_P(KnownShares, ARecursionThatOutgrowsTheDumpGetsALargerOne) {
  FULCRUM_RECORD(r, run_of("recursion", {"16000", "250"}));
  // All but those before the larger dumps were asked for.
  EXPECT_GT(r.share("main"), 0.75);
  ASSERT_EQ(r.why.count("dump too small"), 1u);
  EXPECT_LT(r.why.at("dump too small"), 0.25 * r.samples);
  // Code that compilers put around main (.init, frame_dummy) carries no unwind information, and runs for microseconds.
  EXPECT_LE(r.truncated - r.why.at("dump too small"), 2) << r.why.begin()->first;
}

TEST_P(KnownShares, ARecursionTooDeepForAnyDumpIsFlaggedAndNotGuessed) {
  FULCRUM_RECORD(r, run_of("recursion", {"1500", "20000"}));
  EXPECT_GT(r.truncated, 0.9 * r.samples);
  EXPECT_EQ(r.why.count("dump too small"), 1u);
  EXPECT_LT(r.share("main"), 0.1);
  EXPECT_GT(r.share("descend"), 0.9);
}

TEST_P(KnownShares, ThreadsKeepTheirNamesAndShares) {
  FULCRUM_RECORD(r, run_of("threads", {"30000"}));
  expect_share(r, "thread_work_60", 0.60);
  expect_share(r, "thread_work_30", 0.30);
  expect_share(r, "thread_work_10", 0.10);
  EXPECT_NEAR(r.threads.at("worker_60"), 0.60, r.margin(0.60));
  EXPECT_NEAR(r.threads.at("worker_10"), 0.10, r.margin(0.10));
  EXPECT_LE(r.truncated, 0.01 * r.samples + 1);
}

TEST_P(KnownShares, ChildrenBelongToTheProgram) {
  FULCRUM_RECORD(r, run_of("forks", {"30000"}));
  expect_share(r, "child_70", 0.70);
  expect_share(r, "parent_30", 0.30);
  EXPECT_EQ(r.exit_code, 0);
}

TEST_P(KnownShares, AChildThatBecomesAnotherProgramIsNamedByIt) {
  FULCRUM_RECORD(r, run_of("forks", {"20000", program("shares")}));
  // 30 steps in the parent, 100 in the other program.
  expect_share(r, "parent_30", 30.0 / 130);
  expect_share(r, "share_40", 40.0 / 130);
  expect_share(r, "caller_45", 45.0 / 130);
  EXPECT_EQ(r.share("child_70"), 0);
}

TEST_P(KnownShares, AHandlersStackGoesThroughTheSignalFrame) {
  FULCRUM_RECORD(r, run_of("signals", {"4000"}));
  ASSERT_GT(r.share("handler_work"), 0);
  // The handler interrupts the work and nothing else.
  EXPECT_GT(r.share("interrupted_work"), 0.97);
  EXPECT_GT(r.share("main"), 0.97);
  EXPECT_LE(r.truncated, 0.01 * r.samples + 1);
}

TEST_P(KnownShares, SamplesAddUpToTheCpuTimeThatTheKernelCounted) {
  FULCRUM_RECORD(r, run_of("shares", {"60000"}));
  EXPECT_NEAR(r.sampled_seconds / r.cpu_seconds, 1, 0.05);
  EXPECT_EQ(r.lost, 0);
}

TEST_P(KnownShares, SleepIsBlockedTimeAndSaysThatItsStackIsApproximate) {
  Options options = run_of("sleeps", {"20", "3"});
  const Recording r = GetParam() ? record_as_nobody(options) : record_here(options);
  if (r.error.starts_with("SKIPPED")) GTEST_SKIP() << r.error;
  ASSERT_TRUE(r.ok) << r.error;
  EXPECT_EQ(r.exit_code, 3);
  EXPECT_GE(r.blocked_seconds, 0.98 * 20 * 0.020);
  EXPECT_GE(r.approximate, 1);
}

}  // namespace
}  // namespace fulcrum::record
