// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// What a profile says, on profiles whose shares are known by construction.
#include <fulcrum/record/hot.h>
#include <gtest/gtest.h>

#include <numeric>

#include "support/profiles.h"

namespace fulcrum::record {
namespace {

using test::ProfileBuilder;

const HotFunction& function(const Hot& hot, std::string_view name) {
  const auto found = hot.find(name);
  EXPECT_TRUE(found.has_value()) << name;
  return hot.functions[found.value_or(0)];
}

TEST(Wilson, MatchesItsClosedFormAndStaysInside) {
  const Doubtful some = wilson(0.93, 1800);
  EXPECT_NEAR(some.low, 0.9173, 2e-4);
  EXPECT_NEAR(some.high, 0.9409, 2e-4);
  EXPECT_EQ(wilson(0, 100).low, 0);
  EXPECT_NEAR(wilson(0, 100).high, 0.0370, 2e-4);
  EXPECT_EQ(wilson(1, 100).high, 1);
  EXPECT_EQ(wilson(0.5, 0).high, 1);
}

TEST(Hot, SelfAndInclusiveSharesOfOneThread) {
  ProfileBuilder builder;
  builder.on_cpu(0, "main;work;sqrtf", 60, 0).on_cpu(0, "main;work", 30, 0.6).on_cpu(0, "main", 10, 0.9);
  const Hot h = hot(builder.take());
  EXPECT_EQ(h.basis, "wall-clock time");
  EXPECT_NEAR(h.seconds, 1, 1e-9);
  EXPECT_NEAR(h.effective_samples, 100, 1e-6);
  EXPECT_NEAR(function(h, "sqrtf").self.value, 0.6, 1e-9);
  EXPECT_NEAR(function(h, "work").self.value, 0.3, 1e-9);
  EXPECT_NEAR(function(h, "work").inclusive.value, 0.9, 1e-9);
  EXPECT_NEAR(function(h, "main").inclusive.value, 1, 1e-9);
  EXPECT_EQ(h.functions.front().function, "sqrtf");
  EXPECT_EQ(h.functions.front().rank, 1);
  EXPECT_LT(function(h, "work").self.low, 0.3);
  EXPECT_GT(function(h, "work").self.high, 0.3);
}

TEST(Hot, DifferencesInsideTheIntervalAreNotRanked) {
  ProfileBuilder builder;
  builder.on_cpu(0, "main;a", 50, 0).on_cpu(0, "main;b", 48, 0.5).on_cpu(0, "main;c", 2, 0.98);
  const Hot h = hot(builder.take());
  EXPECT_EQ(function(h, "a").rank, 1);
  EXPECT_EQ(function(h, "b").rank, 1);
  EXPECT_EQ(function(h, "c").rank, 3);
}

TEST(Hot, RecursionCountsOnceAStack) {
  ProfileBuilder builder;
  builder.on_cpu(0, "main;fib;fib;fib;fib", 50, 0).on_cpu(0, "main", 50, 0.5);
  const Hot h = hot(builder.take());
  EXPECT_NEAR(function(h, "fib").inclusive.value, 0.5, 1e-9);
  EXPECT_NEAR(function(h, "fib").self.value, 0.5, 1e-9);
  EXPECT_TRUE(function(h, "fib").recursive);
  EXPECT_FALSE(function(h, "main").recursive);
}

TEST(Hot, WaitingCountsIntoSharesAndHasNoSamplingDoubt) {
  ProfileBuilder builder;
  builder.on_cpu(0, "main;work", 50, 0).blocked(0, "main;read", 0.5, 0.5);
  const Hot h = hot(builder.take());
  // Half of the wall-clock time: not all of it, as a share of CPU time would say.
  EXPECT_NEAR(function(h, "work").inclusive.value, 0.5, 1e-9);
  EXPECT_NEAR(function(h, "read").inclusive.value, 0.5, 1e-9);
  EXPECT_NEAR(function(h, "read").waiting_share, 0.5, 1e-9);
  EXPECT_NEAR(h.waiting_share, 0.5, 1e-9);
  EXPECT_NEAR(function(h, "read").self.low, 0.5, 1e-9);
}

TEST(Hot, WhileTheMainThreadWaitsTimeBelongsToThoseWhoRun) {
  ProfileBuilder builder;
  builder.on_cpu(0, "main;prepare", 100, 0).blocked(0, "main;join", 1, 4);
  builder.on_cpu(1, "worker;solve", 400, 1);
  const Hot h = hot(builder.take());
  EXPECT_NEAR(function(h, "solve").inclusive.value, 0.8, 0.02);
  EXPECT_NEAR(function(h, "prepare").inclusive.value, 0.2, 0.01);
  EXPECT_LT(h.waiting_share, 0.02);
}

TEST(Hot, ThreadsSideBySideShareTheTimeTheyTake) {
  ProfileBuilder builder;
  builder.on_cpu(0, "main;prepare", 100, 0).blocked(0, "main;join", 1, 3);
  for (std::uint32_t t = 1; t <= 4; ++t) builder.on_cpu(t, "worker;solve", 300, 1);
  const Hot h = hot(builder.take());
  EXPECT_NEAR(h.seconds, 4, 0.05);
  EXPECT_NEAR(function(h, "solve").inclusive.value, 0.75, 0.02);
  EXPECT_NEAR(function(h, "solve").threads, 4, 0.1);
}

TEST(Hot, ShortWaitsArePricedByHowMuchOthersRanMeanwhile) {
  // The main thread runs and waits by turns, 5 ms each; a worker runs all the time.
  ProfileBuilder builder(1000);
  for (int i = 0; i < 200; ++i) {
    builder.on_cpu(0, "main;step", 5, i * 0.01).blocked(0, "main;wait", i * 0.01 + 0.005, 0.005);
  }
  builder.on_cpu(1, "worker;solve", 2000, 0);
  const Hot h = hot(builder.take());
  EXPECT_NEAR(function(h, "step").inclusive.value, 0.5, 0.02);
  EXPECT_NEAR(function(h, "solve").inclusive.value, 0.5, 0.03);
}

TEST(Hot, TimeInWhichAWorkerWasKeptFromItsCpuIsNobodys) {
  // The worker lives for 8 s and gets its CPU every fourth of them; two workers side by side likewise, then all sleep.
  ProfileBuilder builder;
  builder.on_cpu(0, "main;prepare", 200, 0).blocked(0, "main;join", 2, 18);
  for (int i = 0; i < 200; ++i) builder.on_cpu(1, "worker;solve", 1, 2 + i * 0.04);
  for (std::uint32_t t = 2; t <= 3; ++t) {
    for (int i = 0; i < 200; ++i) builder.on_cpu(t, "worker;pair", 1, 10 + i * 0.04);
  }
  CpuProfile profile = builder.take();
  profile.threads[0].end_seconds = 20;
  for (std::size_t t = 1; t <= 3; ++t) {
    profile.threads[t].begin_seconds = t == 1 ? 2 : 10;
    profile.threads[t].end_seconds = t == 1 ? 10 : 18;
  }
  const Hot h = hot(profile);
  EXPECT_NEAR(h.seconds, 8, 0.2);
  EXPECT_NEAR(function(h, "prepare").inclusive.value, 0.25, 0.01);
  EXPECT_NEAR(function(h, "solve").inclusive.value, 0.25, 0.01);
  EXPECT_NEAR(function(h, "pair").inclusive.value, 0.25, 0.01);
  EXPECT_NEAR(h.waiting_share, 0.25, 0.02);
}

TEST(Hot, AfterTheMainThreadEndedOthersCarryTheProgram) {
  ProfileBuilder builder;
  builder.on_cpu(0, "main", 100, 0).on_cpu(1, "worker;solve", 300, 1);
  builder.blocked(1, "worker;start", 0, 1);
  CpuProfile profile = builder.take();
  profile.threads[0].end_seconds = 1;
  profile.threads[1].end_seconds = 4;
  const Hot h = hot(profile);
  EXPECT_NEAR(function(h, "solve").inclusive.value, 0.75, 0.02);
}

TEST(Hot, WithoutWaitsSharesAreOfCpuTimeAndSaySo) {
  ProfileBuilder builder;
  builder.on_cpu(0, "main", 100, 0).on_cpu(1, "worker", 300, 0);
  const Hot h = hot(builder.take());
  EXPECT_EQ(h.basis, "CPU time");
  EXPECT_NEAR(function(h, "worker").inclusive.value, 0.75, 1e-9);
  EXPECT_FALSE(h.notes.empty());
}

TEST(Hot, CallersAndCallees) {
  ProfileBuilder builder;
  builder.on_cpu(0, "main;a;leaf", 30, 0).on_cpu(0, "main;b;leaf", 70, 0.3);
  const Hot h = hot(builder.take());
  double from_a = 0, from_b = 0;
  for (const HotCall& call : h.calls) {
    if (h.functions[call.callee].function != "leaf") continue;
    (h.functions[call.caller].function == "a" ? from_a : from_b) += call.share;
  }
  EXPECT_NEAR(from_a, 0.3, 1e-9);
  EXPECT_NEAR(from_b, 0.7, 1e-9);
}

TEST(Hot, RegionsHoldTheRegionsInside) {
  ProfileBuilder builder;
  builder.on_cpu(0, "main", 100, 0);
  CpuProfile profile = builder.take();
  profile.regions = {{.name = "outer", .entries = 10},
                     {.name = "inner", .parent = 1, .entries = 50, .work = 5000}};
  for (int i = 0; i < 60; ++i) profile.samples[static_cast<std::size_t>(i)].region = i < 20 ? 1 : 2;
  const Hot h = hot(profile);
  ASSERT_EQ(h.regions.size(), 2U);
  EXPECT_NEAR(h.regions[0].share.value, 0.6, 1e-9);
  EXPECT_NEAR(h.regions[1].share.value, 0.4, 1e-9);
  EXPECT_EQ(h.regions[1].path, "outer/inner");
  EXPECT_NEAR(h.regions[1].seconds_per_entry, 0.4 / 50, 1e-9);
}

TEST(Hot, AnEmptyProfileHasNoShares) {
  const Hot h = hot(CpuProfile{});
  EXPECT_TRUE(h.functions.empty());
  EXPECT_EQ(h.seconds, 0);
}

TEST(Difference, TellsChangesFromNoise) {
  ProfileBuilder before, after;
  before.on_cpu(0, "main;a", 500, 0).on_cpu(0, "main;b", 500, 5);
  after.on_cpu(0, "main;a", 510, 0).on_cpu(0, "main;b", 190, 5.1).on_cpu(0, "main;c", 300, 7);
  const auto rows = difference(hot(before.take()), hot(after.take()));
  ASSERT_EQ(rows.size(), 4U);
  EXPECT_EQ(rows[0].function, "b");
  EXPECT_TRUE(rows[0].clear);
  EXPECT_NEAR(rows[0].change.value, -0.31, 1e-9);
  EXPECT_EQ(rows[1].function, "c");
  EXPECT_TRUE(rows[1].clear);
  for (const Difference& row : rows) {
    if (row.function == "a") {
      EXPECT_FALSE(row.clear);
    }
  }
}

TEST(Flame, IsATreeOfPathSecondsWithoutItsSmallBranches) {
  ProfileBuilder builder;
  builder.on_cpu(0, "main;a;leaf", 600, 0).on_cpu(0, "main;b", 300, 6).blocked(0, "main;b", 9, 1);
  builder.on_cpu(0, "main;rare", 1, 10);
  const auto nodes = flame(builder.take(), 0.01);
  double sum = 0;
  std::map<std::string, double> seconds;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    EXPECT_LT(nodes[i].parent, static_cast<std::int32_t>(i));
    sum += nodes[i].seconds;
    seconds[nodes[i].name] += nodes[i].seconds;
  }
  EXPECT_NEAR(sum, 10.01, 1e-6);
  EXPECT_NEAR(seconds.at("leaf"), 6, 1e-6);
  EXPECT_NEAR(seconds.at("[waiting]"), 1, 1e-6);
  EXPECT_NEAR(seconds.at("main"), 0.01, 1e-6);
  EXPECT_EQ(seconds.count("rare"), 0U);
}

}  // namespace
}  // namespace fulcrum::record
