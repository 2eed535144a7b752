// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// How two runs differ, and what is no difference.
#include <fulcrum/trace.h>
#include <gtest/gtest.h>

#include "support/traces.h"

namespace fulcrum::test {
namespace {

trace::Difference difference_of(const GpuTrace& a, const GpuTrace& b) {
  return trace::difference(a, trace::timeline(a), b, trace::timeline(b));
}

const trace::Difference::Row& row(const trace::Difference& difference, const std::string& what) {
  for (const auto& r : difference.rows) {
    if (r.what == what) return r;
  }
  throw std::runtime_error("no row " + what);
}

GpuTrace steps_of(std::int64_t a_ns, std::int64_t b_ns, int steps = 40) {
  TraceBuilder t;
  for (int i = 0; i < steps; ++i)
    t.launch("a", 132, 256, a_ns + i % 3).launch("b", 132, 256, b_ns + i % 5).device_sync();
  return t.trace();
}

TEST(Difference, OfARunWithItselfIsBeyondNoDoubt) {
  const GpuTrace trace = pytorch_like_step();
  const auto difference = difference_of(trace, trace);
  EXPECT_EQ(difference.basis, "iteration");
  ASSERT_FALSE(difference.rows.empty());
  for (const auto& r : difference.rows) {
    EXPECT_EQ(r.before, r.after) << r.what;
    EXPECT_FALSE(r.beyond_doubt) << r.what;
  }
}

TEST(Difference, BeginsWithTheIterationThenWhatChangedMost) {
  const auto difference = difference_of(steps_of(100'000, 50'000), steps_of(60'000, 50'000));
  ASSERT_GE(difference.rows.size(), 3u);
  EXPECT_EQ(difference.rows[0].what, "iteration");
  EXPECT_NEAR(difference.rows[0].before - difference.rows[0].after, 40e-6, 1e-8);
  EXPECT_TRUE(difference.rows[0].beyond_doubt);
  EXPECT_TRUE(row(difference, "a").beyond_doubt);
  EXPECT_NEAR(row(difference, "a").before, 100e-6, 1e-8);
  EXPECT_EQ(row(difference, "a").before_count, 1);
  EXPECT_FALSE(row(difference, "b").beyond_doubt);
}

TEST(Difference, OfRunsOfUnequalLengthIsAnIteration) {
  const auto difference = difference_of(steps_of(100'000, 50'000, 30), steps_of(100'000, 50'000, 90));
  for (const auto& r : difference.rows) EXPECT_FALSE(r.beyond_doubt) << r.what;
}

TEST(Difference, SmallerThanWhatRunsDifferByAnywayIsInDoubt) {
  const auto difference = difference_of(steps_of(100'000, 50'000), steps_of(100'900, 50'000));
  EXPECT_FALSE(difference.rows[0].beyond_doubt);
  EXPECT_FALSE(row(difference, "a").beyond_doubt);
}

TEST(Difference, KernelsThatAreNewOrGoneHaveZeroOnOneSide) {
  TraceBuilder t;
  for (int i = 0; i < 40; ++i) t.launch("fused", 132, 256, 120'000).device_sync();
  const auto difference = difference_of(steps_of(100'000, 50'000), t.trace());
  EXPECT_EQ(row(difference, "a").after, 0);
  EXPECT_EQ(row(difference, "fused").before, 0);
  EXPECT_TRUE(row(difference, "fused").beyond_doubt);
}

TEST(Difference, WithoutIterationsIsOfTheWholeRun) {
  TraceBuilder a, b;
  for (int i = 0; i < 6; ++i) {
    a.launch("k" + std::to_string(i), 132, 256, 100'000);
    b.launch("k" + std::to_string(i), 132, 256, 50'000);
  }
  const auto difference = difference_of(a.trace(), b.trace());
  EXPECT_EQ(difference.basis, "whole run");
  EXPECT_NEAR(difference.rows[0].before, 605e-6, 1e-9);
  EXPECT_TRUE(difference.rows[0].beyond_doubt);
}

TEST(Difference, ShowsIdleTimeByCause) {
  TraceBuilder slow;
  for (int i = 0; i < 40; ++i)
    slow.launch("a", 132, 256, 100'000).launch("b", 132, 256, 50'000).device_sync().host_work(200'000);
  const auto difference = difference_of(slow.trace(), steps_of(100'000, 50'000));
  EXPECT_NEAR(row(difference, "GPU idle: host").before, 206.5e-6, 1e-6);
  EXPECT_EQ(row(difference, "GPU idle: host").after, 0);
}

}  // namespace
}  // namespace fulcrum::test
