// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Decisions from a table with made-up times: tiers agree, nothing is allocated, ties and supports() count, guards hold.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <pthread.h>

#include <cmath>
#include <cstdlib>
#include <new>

#include "executor/candidates.h"
#include "executor/choose.h"
#include "executor/named_ops.h"
#include "executor/op_table.h"
#include "executor/shapes.h"
#include "executor/tracker.h"

namespace {
// Of the thread that looks at them: idle threads of a library lock something of their own before they sleep.
thread_local long allocations = 0, locks = 0;
}  // namespace

// Counts what this program allocates, so that a decision can be shown to allocate nothing. Not inlined: a compiler that
// sees malloc() behind one and free() behind the other, but not both, takes them for a mismatch.
[[gnu::noinline]] void* operator new(std::size_t bytes) {
  ++allocations;
  if (void* memory = std::malloc(bytes ? bytes : 1)) return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  ++allocations;
  return std::malloc(bytes ? bytes : 1);
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

// And every mutex that it locks. A thread sanitizer counts them itself.
#if !defined(__SANITIZE_THREAD__)
extern "C" int pthread_mutex_lock(pthread_mutex_t* mutex) noexcept {
  static const auto real =
      reinterpret_cast<int (*)(pthread_mutex_t*)>(dlsym(RTLD_NEXT, "pthread_mutex_lock"));
  ++locks;
  return real(mutex);
}
#endif

namespace fulcrum::executor {
namespace {

/// Threads fork for 5 us and are twice as fast; other variants are a tenth slower than "default".
double made_up_seconds(const Features& f, const Candidate& candidate) {
  const bool plain = candidate.kernel.variant() == "default";
  const double work = (f.flops / 20e9 + f.bytes / 10e9) * (plain ? 1 : 1.1);
  return 1e-7 + (candidate.threads > 1 ? 5e-6 + work / 2 : work);
}

std::shared_ptr<const Table> table_of(Grade grade = Grade::b) {
  TableData data;
  data.description = "made up";
  data.costs.fork_seconds = 5e-6;
  for (const ops::Op* op : ops::all()) {
    OpPoints points{.points = {}, .grade = grade, .sigma = 0};
    const auto candidates = candidates_of(*op, nullptr);
    if (!op->is_probe() && !op->needs_prepared) {
      const FeatureMap map(*op);
      ShapeSource source(*op, 1);
      for (int i = 0; i < 24; ++i) {
        const double seconds = 3e-8 * std::pow(1e5, i / 23.0);
        const auto args = map.is_line() ? source.scaled(source.standard().front(), seconds)
                                        : source.draw(1e-7, 3e-3).value();
        Point point{.args = args};
        for (const Candidate& candidate : candidates)
          point.samples.push_back(Sample{.seconds = made_up_seconds(map.of(args), candidate)});
        points.points.push_back(point);
      }
    }
    data.ops.push_back(points);
  }
  return make_table(nullptr, std::move(data));
}

const Table& shared_table() {
  static const auto table = table_of();
  return *table;
}

const OpTable& of(std::string_view op) { return *shared_table().of(index_of(op_named(op))); }

TEST(Candidates, PlainCodeStandsBackWhereThereIsVectorisedCode) {
  for (const ops::Op* op : ops::all()) {
    const auto candidates = candidates_of(*op, nullptr);
    EXPECT_LE(candidates.size(), static_cast<std::size_t>(kMostCandidates));
    for (const Candidate& candidate : candidates) {
      EXPECT_EQ(candidate.place, Place::host);
      EXPECT_EQ(candidate.kernel.backend().kind(), "cpu");
      if (op->name != "matmul") continue;
      EXPECT_NE(candidate.kernel.backend().name(), "scalar");
    }
  }
}

TEST(Table, SmallCallsStayOnOneThreadAndLargeOnesDoNot) {
  if (backends::usable_threads() < 2) GTEST_SKIP() << "SKIPPED: one thread";
  const Tracker tracker;
  for (const char* name : {"gelu", "matmul", "softmax"}) {
    const OpTable& table = of(name);
    const auto candidates = table.candidates();
    const Mask all = default_mask(table.op(), candidates);
    ShapeSource source(table.op(), 4);
    const Args small = source.scaled(source.standard().front(), 1e-6);
    const Args large = source.scaled(source.standard().front(), 2e-3);
    EXPECT_EQ(candidates[table.choose(small, {}, all, tracker).candidate].threads, 1) << name;
    EXPECT_GT(candidates[table.choose(large, {}, all, tracker).candidate].threads, 1) << name;
  }
}

TEST(Table, TheSameCallIsSeenTheSecondTimeAndForgottenAfterRenew) {
  const Tracker tracker;
  const OpTable& table = of("matmul");
  const Mask all = default_mask(table.op(), table.candidates());
  const Args args = args_of(table.op(), "M=37,N=41,K=43");
  table.renew();
  const Choice first = table.choose(args, {}, all, tracker);
  const Choice second = table.choose(args, {}, all, tracker);
  EXPECT_EQ(second.tier, Tier::seen) << "whoever answered first";
  EXPECT_EQ(first.candidate, second.candidate);
  EXPECT_EQ(first.runner_up, second.runner_up);
  EXPECT_EQ(first.size_class, second.size_class);
  EXPECT_NEAR(first.seconds, second.seconds, 1e-6 * first.seconds);
  table.renew();
  EXPECT_NE(table.choose(args, {}, all, tracker).tier, Tier::seen);
}

TEST(Table, TheGridSaysWhatTheModelSays) {
  const Tracker tracker;
  int by_grid = 0;
  for (const char* name : {"gelu", "vec_add", "dot", "matmul", "softmax", "conv2d"}) {
    const OpTable& table = of(name);
    const Mask all = default_mask(table.op(), table.candidates());
    ShapeSource source(table.op(), 12345);
    for (int i = 0; i < 200; ++i) {
      const auto args = source.draw(1e-7, 1e-2);
      if (!args) continue;
      const Choice choice = table.choose(*args, {}, all, tracker);
      if (choice.tier != Tier::grid) continue;
      ++by_grid;
      const Tier next = table.choose(*args, {}, all, tracker).tier;
      EXPECT_EQ(next, FeatureMap(table.op()).is_line() ? Tier::grid : Tier::seen) << name;
      const auto prices = table.prices(*args, {});
      double best = INFINITY;
      for (std::size_t c = 0; c < prices.size(); ++c) {
        if (all >> c & 1) best = std::min(best, prices[c].seconds);
      }
      EXPECT_LT(prices[choice.candidate].seconds, 1.08 * best)
          << name << " " << ops::shape_of(table.op(), *args).text();
    }
  }
  EXPECT_GT(by_grid, 100) << "a grid that never answers is of no use";
}

TEST(Table, AlongALineTheGridSaysWhatTheModelSays) {
  const ops::Op& op = op_named("gelu");
  const FeatureMap map(op);
  std::vector<Candidate> candidates;
  for (const Candidate& candidate : candidates_of(op, nullptr)) {
    const std::string_view backend = candidate.kernel.backend().name();
    if (candidate.kernel.variant() == "default" && (backend == "simd" || backend == "threads"))
      candidates.push_back(candidate);
  }
  ASSERT_EQ(candidates.size(), 2u);
  candidates[1].threads = 2;  // also where the machine has one
  OpPoints points{.points = {}, .grade = Grade::b, .sigma = 0};
  ShapeSource source(op, 1);
  for (int i = 0; i < 24; ++i) {
    Point point{.args = source.scaled(source.standard().front(), 3e-8 * std::pow(1e5, i / 23.0))};
    for (const Candidate& candidate : candidates)
      point.samples.push_back(Sample{.seconds = made_up_seconds(map.of(point.args), candidate)});
    points.points.push_back(point);
  }
  const auto costs = std::make_shared<Costs>();
  const MeasuredOpTable table(op, index_of(op), candidates, points, costs, {});
  Tracker tracker;
  std::array<int, 2> by_grid{};
  for (double n = 100; n < 3e7; n *= 1.05) {
    Args args{};
    args.dim[0] = static_cast<std::int64_t>(n);
    const Choice choice = table.choose(args, {}, 0b11, tracker);
    if (choice.tier != Tier::grid) continue;
    ++by_grid[choice.candidate];
    const auto prices = table.prices(args, {});
    EXPECT_LT(prices[choice.candidate].seconds, prices[1 - choice.candidate].seconds) << n;
    EXPECT_EQ(choice.runner_up, 1 - choice.candidate) << n;
    // A cell has one time for all its calls, which is that of the middle.
    EXPECT_NEAR(std::log(static_cast<double>(choice.seconds) / prices[choice.candidate].seconds), 0, 0.8);
    const Features f = map.of(args);
    EXPECT_EQ(choice.size_class, size_class_of(f.flops, f.bytes)) << n;
  }
  EXPECT_GT(by_grid[0], 50);
  EXPECT_GT(by_grid[1], 50);
}

TEST(Table, ADecisionAllocatesNothingInAnyTier) {
  const Tracker tracker;
  int tiers = 0;
  for (const char* name : {"gelu", "matmul", "softmax", "cosine_topk", "conv2d_channels"}) {
    const OpTable& table = of(name);
    const Mask all = default_mask(table.op(), table.candidates());
    ShapeSource source(table.op(), 77);
    std::vector<Args> calls;
    for (int i = 0; i < 100; ++i) {
      if (const auto args = source.draw(1e-7, 1e-2)) calls.push_back(*args);
    }
    const long before = allocations;
    for (int lap = 0; lap < 2; ++lap) {
      for (const Args& args : calls)
        tiers |= 1 << static_cast<int>(table.choose(args, {}, all, tracker).tier);
    }
    for (const Args& args : calls) (void)table.seconds(args, {}, 0);
    EXPECT_EQ(allocations, before) << name;
  }
  EXPECT_EQ(tiers, 1 << 1 | 1 << 2 | 1 << 3) << "seen, grid and model were all in it";
}

TEST(Table, DecidingAndTrackingLockNothingAndAllocateNothing) {
  std::mutex mutex;
  const long counted = locks;
  { const std::lock_guard lock(mutex); }
#if !defined(__SANITIZE_THREAD__)
  ASSERT_EQ(locks, counted + 1) << "locks are counted";
#endif
  const OpTable& table = of("gelu");
  const int index = index_of(table.op());
  const Mask all = default_mask(table.op(), table.candidates());
  Tracker tracker;
  const auto work = [&](int calls) {
    for (int i = 0; i < calls; ++i) {
      const Args args = args_of(table.op(), "n=20000");
      const long allocated = allocations, locked = locks;
      const Choice choice = table.choose(args, {}, all, tracker);
      const Tracker::Cell cell{index, choice.candidate, 1, choice.size_class, Place::host};
      tracker.record(cell, 1e-5, 1e-5 * (1 + 0.01 * (i % 7 - 3)));
      tracker.spend(1e-5);
      if (i < 64) continue;  // cells are made when they are first needed
      EXPECT_EQ(allocations, allocated);
      EXPECT_EQ(locks, locked);
    }
  };
  work(1000);
  EXPECT_LT(tracker.handed_on(), 350) << "and seldom write what threads share";
}

TEST(Table, BeyondTheCachesNoKernelIsFasterThanTheMemory) {
  const ops::Op& op = op_named("tanh");
  const auto candidates = candidates_of(op, nullptr);
  OpPoints points{.points = {}, .grade = Grade::b, .sigma = 0};
  for (const char* shape : {"n=1000", "n=10000", "n=100000"}) {
    Point point{.args = args_of(op, shape)};
    // Nearly as fast whatever the size, as long as a cache holds it.
    for (std::size_t c = 0; c < candidates.size(); ++c) point.samples.push_back(Sample{.seconds = 1e-6});
    points.points.push_back(point);
  }
  Caches caches;
  caches.near_bytes = 1e6;
  caches.far_bytes = 8e6;
  const auto seconds = [&](const char* shape) {
    const MeasuredOpTable table(op, index_of(op), candidates, points, std::make_shared<Costs>(), caches);
    const auto prices = table.prices(args_of(op, shape), {});
    return std::min_element(prices.begin(), prices.end(),
                            [](const Price& a, const Price& b) { return a.seconds < b.seconds; })
        ->seconds;
  };
  EXPECT_LT(seconds("n=256000000"), 1e-3) << "what the points say";
  caches.host_bytes_per_second = 20e9;
  const double beyond = 2 * 4 * 256e6 - 8e6 - 1e6 * backends::usable_threads();
  EXPECT_NEAR(seconds("n=256000000"), beyond / 20e9, 1e-3 * beyond / 20e9);
  EXPECT_LT(seconds("n=100000"), 2e-6);
}

TEST(Table, OnlyAllowedCandidatesAreChosen) {
  const Tracker tracker;
  const OpTable& table = of("gelu");
  const Args args = args_of(table.op(), "n=3000000");
  for (std::size_t c = 0; c < table.candidates().size(); ++c) {
    const Choice choice = table.choose(args, {}, Mask{1} << c, tracker);
    EXPECT_EQ(choice.candidate, c);
    EXPECT_EQ(choice.runner_up, c) << "there is no other";
  }
}

TEST(Table, WhatNoCandidateSupportsHasNoAnswer) {
  const OpTable& table = of("conv2d_channels");
  const Tracker tracker;
  const Args args = args_of(table.op(), "N=1,Cin=3,h=16,w=16,Cout=4,kh=5,kw=5");
  for (std::size_t c = 0; c < table.candidates().size(); ++c) {
    const Choice choice = table.choose(args, {}, Mask{1} << c, tracker);
    const bool can = table.candidates()[c].kernel.supports(args);
    EXPECT_EQ(choice.candidate, can ? c : 255) << table.candidates()[c].kernel.name();
  }
}

TEST(Table, ACorrectionFromTheTrackerChangesTheChoice) {
  if (backends::usable_threads() < 2) GTEST_SKIP() << "SKIPPED: one thread";
  Tracker tracker;
  const OpTable& table = of("matmul");
  const Mask all = default_mask(table.op(), table.candidates());
  const Args args = args_of(table.op(), "M=150,N=150,K=150");
  table.renew();
  const Choice before = table.choose(args, {}, all, tracker);
  const Tracker::Cell cell{index_of(table.op()), before.candidate, Traffic{}.residency(), before.size_class,
                           Place::host};
  for (int i = 0; i < 40; ++i) tracker.record(cell, before.seconds, 20 * before.seconds);
  table.renew();
  EXPECT_NE(table.choose(args, {}, all, tracker).candidate, before.candidate);
}

TEST(Table, BelowTheGuardTheModelWouldSayTheSame) {
  const Tracker tracker;
  for (const char* name : {"gelu", "relu", "vec_add", "dot"}) {
    const OpTable& table = of(name);
    const OpTable::Guard guard = table.guard();
    ASSERT_TRUE(guard.kernel) << name;
    EXPECT_FALSE(guard.kernel->plan) << name;
    EXPECT_GT(guard.below, 1000) << name;
    const Mask all = default_mask(table.op(), table.candidates());
    std::vector<std::int64_t> sizes{guard.below - 1};
    for (std::int64_t n = 1; n < guard.below; n = n * 3 / 2 + 1) sizes.push_back(n);
    for (const std::int64_t n : sizes) {
      const Args args = args_of(table.op(), "n=" + std::to_string(n));
      const Choice choice = table.choose(args, {}, all, tracker);
      const auto prices = table.prices(args, {});
      std::size_t own = 0;
      while (&table.candidates()[own].kernel.entry() != guard.kernel) ++own;
      EXPECT_LE(prices[own].seconds, 1.05 * prices[choice.candidate].seconds) << name << " n=" << n;
      for (std::size_t c = 0; c < prices.size(); ++c) {
        const Candidate& other = table.candidates()[c];
        const bool forks =
            other.kernel.backend().name() == "threads" && FeatureMap(table.op()).of(args).pieces > 1;
        // Beyond the doubt, also at the last size: of those up to the next one that was tried nobody knows.
        EXPECT_TRUE(!forks || std::log(prices[c].seconds / prices[own].seconds) > prices[c].sigma - 1e-4)
            << name << " n=" << n;
      }
    }
  }
}

TEST(Table, ThreadsAreNeverPredictedBelowAForkAndTheirShare) {
  const OpTable& table = of("softmax");
  ShapeSource source(table.op(), 8);
  for (int i = 0; i < 100; ++i) {
    const auto args = source.draw(1e-8, 1e-2);
    if (!args) continue;
    const bool several = FeatureMap(table.op()).of(*args).pieces > 1;
    const auto prices = table.prices(*args, {});
    for (std::size_t c = 0; c < prices.size(); ++c) {
      const bool forks = several && table.candidates()[c].kernel.backend().name() == "threads";
      EXPECT_GT(prices[c].seconds, forks ? 4e-6 : 0);
    }
  }
}

TEST(Table, ThreadsForkForEveryStep) {
  const OpTable& table = of("lstm_sequence");
  const Args args = args_of(table.op(), "T=200,B=1,I=8,H=40");
  ASSERT_GT(FeatureMap(table.op()).of(args).pieces, 1);
  const auto prices = table.prices(args, {});
  for (std::size_t c = 0; c < prices.size(); ++c) {
    const bool forks = table.candidates()[c].kernel.backend().name() == "threads";
    EXPECT_GT(prices[c].seconds, forks ? 200 * 4e-6 : 0);
  }
}

TEST(Table, ACallOfOnePieceIsNoCheaperOnManyThreads) {
  const OpTable& table = of("softmax");
  const Args args = args_of(table.op(), "rows=1,n=256");
  ASSERT_EQ(FeatureMap(table.op()).of(args).pieces, 1);
  const auto prices = table.prices(args, {});
  double alone = 0;
  for (std::size_t c = 0; c < prices.size(); ++c) {
    if (table.candidates()[c].kernel.name() == "softmax/simd/default") alone = prices[c].seconds;
  }
  ASSERT_GT(alone, 0);
  for (std::size_t c = 0; c < prices.size(); ++c) {
    if (table.candidates()[c].threads < 2 || table.candidates()[c].kernel.backend().name() != "threads")
      continue;
    EXPECT_GT(prices[c].seconds, alone);
    EXPECT_LT(prices[c].seconds, 1.1 * alone) << "and no dearer by a fork that does not happen";
  }
}

TEST(Table, AnOpIsFittedWhenItIsFirstAskedFor) {
  const auto table = table_of();
  std::vector<int> made;
  table->when_made([&](int op, const OpTable&) { made.push_back(op); });
  const int gelu = index_of(op_named("gelu"));
  EXPECT_FALSE(table->candidates(gelu).empty());
  EXPECT_TRUE(made.empty()) << "candidates are known without it";
  const OpTable* first = table->of(gelu);
  EXPECT_EQ(table->of(gelu), first);
  EXPECT_EQ(made, std::vector<int>{gelu});
  EXPECT_EQ(table->candidates(gelu).size(), first->candidates().size());
}

TEST(Table, AForkOfFewThreadsCostsLessThanOneOfAll) {
  Costs costs;
  costs.fork_seconds = 8e-6;
  costs.forks = {{2, 1e-6}, {4, 2e-6}, {8, 4e-6}, {16, 8e-6}};
  EXPECT_EQ(costs.fork_of(1), 0);
  EXPECT_DOUBLE_EQ(costs.fork_of(4), 2e-6);
  EXPECT_DOUBLE_EQ(costs.fork_of(6), 3e-6);
  EXPECT_DOUBLE_EQ(costs.fork_of(32), 8e-6);
}

TEST(Table, TheLargestCopyIsPricedByItsOwnSizeAndNothingIsNoCopy) {
  Costs costs;
  costs.pageable_in.knots = {{1000, 2e-6}, {10000, 15e-6}, {100000, 20e-6}};  // bent: alike is not the same
  Traffic traffic;
  for (const double bytes : {1000.0, 0.0, 100000.0, 1000.0}) traffic.add_in(bytes);
  EXPECT_EQ(traffic.in_copies, 3);
  EXPECT_DOUBLE_EQ(traffic.in_bytes, 102000);
  EXPECT_DOUBLE_EQ(costs.in_seconds(traffic), 20e-6 + 2 * 2e-6);
  traffic.in_largest = 0;
  EXPECT_NEAR(costs.in_seconds(traffic), 3 * (15e-6 + 5e-6 * 24 / 90), 1e-12) << "all alike";
}

TEST(Table, DataThatComesHomeCostsACopyWithItsWaitAndOneMoreForEachOther) {
  Costs costs;
  costs.pinned_out.knots = {{1000, 2e-6}, {100000, 4e-6}};
  costs.pinned_home.knots = {{1000, 11e-6}, {100000, 15e-6}};
  Traffic traffic{.home_bytes = 1000, .home_copies = 1, .pinned = true};
  EXPECT_DOUBLE_EQ(costs.home_seconds(traffic), 11e-6);
  traffic.home_bytes = 300000;
  traffic.home_copies = 3;
  EXPECT_DOUBLE_EQ(costs.home_seconds(traffic), 15e-6 + 2 * 4e-6);
  costs.pinned_more.knots = {{100000, 5e-6}};
  EXPECT_DOUBLE_EQ(costs.home_seconds(traffic), 15e-6 + 2 * 5e-6) << "further ones are looked at too";
  traffic.home_bytes = 0;
  EXPECT_EQ(costs.home_seconds(traffic), 0);
}

TEST(Table, SizeClassesAreOctavesOfTheWork) {
  EXPECT_EQ(size_class_of(1, 0), 0);
  EXPECT_EQ(size_class_of(512, 512), 10);
  EXPECT_EQ(size_class_of(1e300, 0), 63);
}

TEST(Seen, AnEntryOfAnotherKeyIsNoHit) {
  Seen seen;
  const Choice choice{
      .candidate = 3, .runner_up = 17, .size_class = 21, .seconds = 1.5e-6F, .runner_seconds = 2e-6F};
  const std::uint64_t key = 0xabcdef0123456789 | 1ULL << 17;
  Choice found;
  EXPECT_FALSE(seen.find(key, found));
  seen.put(key, choice);
  ASSERT_TRUE(seen.find(key, found));
  EXPECT_EQ(found.candidate, 3);
  EXPECT_EQ(found.runner_up, 17);
  EXPECT_EQ(found.size_class, 21);
  EXPECT_EQ(found.seconds, 1.5e-6F);
  EXPECT_FALSE(seen.find(key ^ 1ULL << 40, found)) << "same set, another call";
  for (std::uint64_t other = 1; other < 4; ++other) seen.put(key ^ other << 40, choice);
  for (std::uint64_t other = 0; other < 4; ++other) EXPECT_TRUE(seen.find(key ^ other << 40, found)) << other;
  seen.put(key ^ 9ULL << 40, choice);
  EXPECT_TRUE(seen.find(key ^ 9ULL << 40, found)) << "a full set makes room";
}

TEST(Grid, QuickLogarithmsAreExactAtPowersOfTwo) {
  for (int power = 0; power < 60; ++power)
    EXPECT_EQ(quick_log2(std::ldexp(1.0, power)), static_cast<float>(power));
  EXPECT_NEAR(quick_log2(3), std::log2(3), 0.09);
}

}  // namespace
}  // namespace fulcrum::executor
