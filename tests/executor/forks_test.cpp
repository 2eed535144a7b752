// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Forks that take longer now than when a table was made.
#include "executor/forks.h"

#include <fulcrum/backends.h>
#include <gtest/gtest.h>

#include "executor/features.h"
#include "executor/named_ops.h"
#include "executor/op_table.h"
#include "executor/prior.h"
#include "executor/store.h"

namespace fulcrum::executor {
namespace {

TEST(Forks, ChangeIsWhatLiesBeyondTwoLooks) {
  const ForkTimes then = {{2, 1e-6}, {4, 3e-6}};
  EXPECT_NEAR(fork_change(then, {{2, 3e-6}}, 2), 2e-6, 1e-12);
  EXPECT_NEAR(fork_change(then, {{2, 0.5e-6}}, 2), -0.5e-6, 1e-12);
  EXPECT_EQ(fork_change(then, {{2, 1.2e-6}, {4, 3e-6}}, 2), 0) << "as far as two looks differ";
  EXPECT_NEAR(fork_change(then, {{2, 3e-6}, {4, 9e-6}}, 3), 6e-6 - 2e-6, 1e-12);
}

TEST(Forks, WhatNobodyLookedAtHasNotChanged) {
  const ForkTimes known = {{2, 1e-6}};
  EXPECT_EQ(fork_change(known, {}, 2), 0);
  EXPECT_EQ(fork_change({}, {{2, 9e-6}}, 2), 0);
}

TEST(Forks, NumbersThatALookLeftOutHaveNotChanged) {
  const ForkTimes then = {{2, 0.3e-6}, {4, 1e-6}, {8, 2e-6}, {16, 5e-6}};
  EXPECT_EQ(fork_change(then, {{2, 0.3e-6}}, 16), 0) << "the wider ones were busy";
  EXPECT_EQ(fork_change(then, {{16, 5e-6}}, 2), 0) << "the narrower ones were";
  EXPECT_EQ(fork_change({{2, 0.3e-6}}, then, 16), 0) << "busy when the table was made";
  EXPECT_NEAR(fork_change(then, {{2, 0.3e-6}, {16, 9e-6}}, 16), 4e-6, 1e-12);
}

TEST(Forks, TimesOfACalibrationAreThoseOfOneMachine) {
  double now = 0;
  const measure::Clock clock{.now = [&now] { return now; }};
  ForkTimes forks = {{2, 0.2e-6}, {4, 0.4e-6}};
  int looks = 0;
  ForkWatch watch(clock, {}, [&](int) {
    ++looks;
    now += 1e-3;
    return forks;
  });
  EXPECT_EQ(watch.usual(), forks);
  EXPECT_EQ(watch.as_usual(5e-6, 1, 2), 5e-6);
  // Another program has moved the cores apart.
  forks = {{2, 0.7e-6}, {4, 1.4e-6}};
  looks = 0;
  watch.look();
  EXPECT_EQ(looks, 0) << "the last look is not long ago";
  const auto look_thrice = [&] {
    for (int i = 0; i < 3; ++i) {
      now += 1;
      watch.look();
    }
  };
  look_thrice();
  EXPECT_EQ(looks, 3);
  EXPECT_NEAR(watch.as_usual(5e-6, 1, 2), 4.5e-6, 1e-15);
  EXPECT_NEAR(watch.as_usual(20e-6, 10, 4), 10e-6, 1e-15) << "ten phases";
  EXPECT_NEAR(watch.as_usual(1e-6, 10, 4), 0.3e-6, 1e-15) << "something is left";
  // And back together, closer than at first.
  forks = {{2, 0.1e-6}, {4, 0.35e-6}};
  look_thrice();
  EXPECT_NEAR(watch.as_usual(5e-6, 1, 2), 5.1e-6, 1e-15);
  EXPECT_EQ(watch.as_usual(5e-6, 1, 4), 5e-6) << "as far as two looks differ";
  EXPECT_EQ(watch.usual(), (ForkTimes{{2, 0.2e-6}, {4, 0.4e-6}}));
}

TEST(Forks, OneLookThatMetAThreadThatWasHeldUpSaysNothing) {
  double now = 0;
  const measure::Clock clock{.now = [&now] { return now; }};
  const ForkTimes calm = {{2, 0.4e-6}, {4, 0.6e-6}, {16, 2e-6}};
  ForkTimes forks = calm;
  ForkWatch watch(clock, {}, [&](int) {
    now += 1e-3;
    return forks;
  });
  for (const bool held_up : {false, true, true, false, true, false}) {
    forks.back().second = held_up ? 40e-6 : 2e-6;
    now += 1;
    watch.look();
    EXPECT_EQ(watch.as_usual(20e-6, 1, 16), 20e-6);
  }
}

TEST(Forks, AThreadThatWasHeldUpAtTheBeginningIsNotWhatIsUsual) {
  double now = 0;
  const measure::Clock clock{.now = [&now] { return now; }};
  // On 16 virtual cores the first look of a calibration said 381 us; calls took 2.
  const std::vector<ForkTimes> first = {{{2, 0.4e-6}, {16, 381e-6}}, {{2, 90e-6}}, {{2, 0.5e-6}, {16, 2e-6}}};
  std::size_t look = 0;
  ForkWatch watch(clock, {}, [&](int) {
    now += 1e-3;
    return first[std::min(look++, first.size() - 1)];
  });
  EXPECT_EQ(watch.usual(), (ForkTimes{{2, 0.4e-6}, {16, 2e-6}}));
  for (int i = 0; i < 4; ++i) {
    now += 1;
    watch.look();
    EXPECT_EQ(watch.as_usual(5e-6, 1, 16), 5e-6);
  }
}

TEST(Forks, OfSeveralLooksTheNearestToTheUsualCountsByWidth) {
  const ForkTimes usual = {{2, 1e-6}, {16, 4e-6}};
  const std::vector<ForkTimes> looks = {{{2, 3e-6}, {16, 90e-6}}, {{2, 2e-6}}, {{2, 9e-6}, {16, 8e-6}}};
  EXPECT_EQ(least_changed(usual, looks), (ForkTimes{{2, 2e-6}, {16, 8e-6}}))
      << "a look that left a width out says nothing of it";
  EXPECT_EQ(least_changed(usual, {}), ForkTimes{});
  EXPECT_EQ(least_changed({}, looks), looks.back()) << "nobody knows what is usual";
}

TEST(Forks, WhatIsUsualMayBeKnownFromBefore) {
  double now = 0;
  const measure::Clock clock{.now = [&now] { return now; }};
  ForkWatch watch(clock, {{2, 1e-6}}, [&](int) {
    now += 1e-3;
    return ForkTimes{{2, 3e-6}};
  });
  EXPECT_EQ(watch.usual(), (ForkTimes{{2, 1e-6}}));
  watch.look();
  EXPECT_NEAR(watch.as_usual(9e-6, 1, 2), 7e-6, 1e-15);
}

TEST(Forks, AWatchOnAClockThatStandsStillEnds) {
  double now = 0;
  const measure::Clock clock{.now = [&now] { return now; }};
  int looks = 0;
  ForkWatch watch(clock, {}, [&](int) {
    ++looks;
    return ForkTimes{{2, 1e-6}};
  });
  now = 1;
  watch.look();
  EXPECT_LT(looks, 100);
}

TEST(Forks, AreMeasuredForPowersOfTwoAndAllThreads) {
  const ForkTimes found = measure_forks(measure::steady_clock(), 4);
  if (backends::usable_threads() < 2) {
    EXPECT_TRUE(found.empty());
    return;
  }
  ASSERT_FALSE(found.empty());
  EXPECT_EQ(found.front().first, 2);
  EXPECT_EQ(found.back().first, backends::usable_threads());
  for (const auto& [threads, seconds] : found) EXPECT_GT(seconds, 0) << threads;
}

TEST(Forks, NobodyIsForkedInsideOfAJob) {
  ForkTimes inside = {{2, 1}};
  const auto work = [](void* context, std::int64_t begin, std::int64_t) {
    if (begin == 0) *static_cast<ForkTimes*>(context) = measure_forks(measure::steady_clock(), 2);
  };
  backends::parallel(2, 2, work, &inside);
  if (backends::usable_threads() > 1) {
    EXPECT_TRUE(inside.empty());
  }
}

/// So long to any number of threads.
ForkTimes forks_of(double seconds) {
  ForkTimes forks = {{2, seconds}};
  if (backends::usable_threads() > 2) forks.emplace_back(backends::usable_threads(), seconds);
  return forks;
}

/// The prior's table, its forks at 1 us when it was made and at `now` today.
std::shared_ptr<const Table> table_with(double now) {
  TableData data = prior_data(nullptr);
  data.costs.forks = forks_of(1e-6);
  data.costs.now_forks = forks_of(now);
  return make_table(nullptr, std::move(data));
}

TEST(Forks, EveryPhaseOfACallOnThreadsIsDearerByTheChange) {
  if (backends::usable_threads() < 2) GTEST_SKIP() << "one thread forks nothing";
  const auto then = table_with(1e-6), later = table_with(3e-6);
  int forked = 0;
  for (const auto& [name, shape] :
       {std::pair{"gelu", "n=200000"}, std::pair{"lstm_sequence", "T=30,B=2,I=50,H=90"},
        std::pair{"matmul", "M=300,N=300,K=300"}}) {
    const ops::Op& op = op_named(name);
    const int index = index_of(op);
    const Args args = args_of(op, shape);
    const Features f = FeatureMap(op).of(args);
    ASSERT_GT(f.pieces, 1);
    const auto before = then->of(index)->prices(args, {}), after = later->of(index)->prices(args, {});
    for (std::size_t c = 0; c < before.size(); ++c) {
      const Candidate& candidate = then->of(index)->candidates()[c];
      const bool forks = candidate.threads > 1, ours = candidate.kernel.backend().name() == "threads";
      const double change = !forks ? 0 : ours ? f.phases * 2e-6 : 4e-6;
      // Nine tenths of it where a call was as short as forks alone allow.
      EXPECT_GE(after[c].seconds - before[c].seconds, 0.9 * change - 1e-9) << candidate.kernel.name();
      EXPECT_LE(after[c].seconds - before[c].seconds, 1.01 * change + 1e-9) << candidate.kernel.name();
      forked += forks;
    }
  }
  EXPECT_GE(forked, 3);
  EXPECT_EQ(then->describe().find("takes"), std::string::npos);
  EXPECT_NE(later->describe().find("took 1.00 us then and takes 3.00 us now"), std::string::npos)
      << later->describe();
}

TEST(Forks, AreLookedAtAgainForAnOpThatIsAskedForLater) {
  if (backends::usable_threads() < 2) GTEST_SKIP() << "one thread forks nothing";
  // A clock that moves on at every look at it, so that 32 forks take what it says.
  double now = 0, fork = 1e-6;
  const measure::Clock clock{.now = [&] { return now += 32 * fork; }};
  TableData data = prior_data(nullptr);
  data.costs.forks = forks_of(1e-6);
  const auto table = make_table(nullptr, std::move(data), &clock);
  const auto is_priced_like = [&](const char* name, const Table& other) {
    const int index = index_of(op_named(name));
    const Args args = args_of(op_named(name), "n=200000");
    const auto own = table->of(index)->prices(args, {}), others = other.of(index)->prices(args, {});
    for (std::size_t c = 0; c < own.size(); ++c)
      EXPECT_NEAR(own[c].seconds, others[c].seconds, 1e-9) << name << " " << c;
  };
  is_priced_like("gelu", *table_with(1e-6));
  fork = 3e-6;
  is_priced_like("relu", *table_with(1e-6));  // a moment later
  now += 60;
  is_priced_like("tanh", *table_with(3e-6));
  EXPECT_NE(table->describe().find("takes 3.00 us now"), std::string::npos) << table->describe();
}

TEST(Forks, ThatHaveBecomeCheaperSayNothingOfALibrarysThreads) {
  if (backends::usable_threads() < 2) GTEST_SKIP() << "one thread forks nothing";
  const auto then = table_with(1e-6), later = table_with(0.3e-6);
  const ops::Op& op = op_named("matmul");
  const int index = index_of(op);
  const Args args = args_of(op, "M=300,N=300,K=300");
  const auto before = then->of(index)->prices(args, {}), after = later->of(index)->prices(args, {});
  for (std::size_t c = 0; c < before.size(); ++c) {
    const Candidate& candidate = then->of(index)->candidates()[c];
    if (candidate.threads > 1 && candidate.kernel.backend().name() == "threads") {
      EXPECT_LT(after[c].seconds, before[c].seconds) << candidate.kernel.name();
    } else {
      EXPECT_EQ(after[c].seconds, before[c].seconds) << candidate.kernel.name();
    }
  }
}

}  // namespace
}  // namespace fulcrum::executor
