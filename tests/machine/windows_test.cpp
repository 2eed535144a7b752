// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Best-window statistics on made-up windows, and the sizes that make a probe land in its level.
#include "machine/windows.h"

#include <fulcrum/stats.h>
#include <gtest/gtest.h>

#include <cmath>

#include "machine/probes.h"
#include "machine/working_sets.h"

namespace fulcrum::machine {
namespace {

/// Costs of windows: a share of them clean within 0.2 %, the others up to three times as high.
std::vector<double> made_up_windows(int count, double clean_share, std::uint64_t seed) {
  stats::Random random(seed);
  std::vector<double> costs;
  for (int i = 0; i < count; ++i) {
    const bool clean = random.uniform() < clean_share;
    costs.push_back(2e-9 * (clean ? 1 + 0.002 * random.uniform() : 1.1 + 1.9 * random.uniform()));
  }
  return costs;
}

TEST(Windows, FindTheCeilingThroughNeighboursThatTakeMostOfTheTime) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    EXPECT_NEAR(best_cost(made_up_windows(400, 0.05, seed)).value, 2e-9, 2e-9 * 0.01) << "seed " << seed;
  }
}

TEST(Windows, AgreeFromRunToRunWithinOnePercent) {
  const double first = best_cost(made_up_windows(300, 0.3, 1)).value;
  for (std::uint64_t seed = 2; seed <= 20; ++seed) {
    EXPECT_NEAR(best_cost(made_up_windows(300, 0.3, seed)).value / first, 1, 0.01);
  }
}

TEST(Windows, DoNotBelieveASingleImpossibleWindow) {
  std::vector<double> costs = made_up_windows(100, 0.5, 7);
  costs[41] = 1e-15;
  const Quantity best = best_cost(costs);
  EXPECT_NEAR(best.value, 2e-9, 2e-9 * 0.01);
  EXPECT_EQ(best.low, 1e-15) << "the interval keeps it";
}

TEST(Windows, SpanFromTheFastestToTheLowerQuartile) {
  const Quantity best = best_cost({5, 3, 1, 2, 4, 9, 8, 7, 6});
  EXPECT_EQ(best.low, 1);
  EXPECT_EQ(best.value, 2);
  EXPECT_EQ(best.high, 3);
  EXPECT_EQ(best.source, Source::measured);
  EXPECT_EQ(best_cost({4}).value, 4);
  EXPECT_TRUE(std::isnan(best_cost({}).value));
}

TEST(Windows, AtMostFourOfManyAreFasterThanTheCeiling) {
  std::vector<double> costs;
  for (int i = 1000; i > 0; --i) costs.push_back(i);
  EXPECT_EQ(best_cost(costs).value, 5);
}

TEST(Windows, TurnTheIntervalAroundForRates) {
  const Quantity rate = best_rate({5, 3, 1, 2, 4, 9, 8, 7, 6});
  EXPECT_DOUBLE_EQ(rate.value, 1.0 / 2);
  EXPECT_DOUBLE_EQ(rate.low, 1.0 / 3);
  EXPECT_DOUBLE_EQ(rate.high, 1);
}

/// Turns of three windows each, the first of them a tenth slower and the second two tenths.
struct MadeUpTurns {
  std::vector<double> costs;
  std::vector<std::size_t> begins;
  explicit MadeUpTurns(std::initializer_list<double> bests) {
    for (const double best : bests) {
      begins.push_back(costs.size());
      costs.insert(costs.end(), {1.1 * best, 1.2 * best, best});
    }
  }
  Turns in_groups_of(std::size_t group) const { return {costs, begins, group}; }
};

TEST(Windows, OfATurnOrTwoAreNotWhatIsUsual) {
  const MadeUpTurns turns({2, 2, 1, 2, 2, 2, 2, 9});
  const Quantity usual = usual_cost(turns.in_groups_of(1), Usual::quartile);
  EXPECT_NEAR(usual.value, 1.1 * 2, 1e-12) << "the second fastest window of the usual turn";
  EXPECT_EQ(usual.low, 1) << "the interval keeps the fastest";
  EXPECT_GE(usual.high, usual.value);
}

/// A run whose clock is a fifteenth higher in some of its 16 turns and a sixth higher in one window of them: what the
/// ceiling says must not depend on how many.
double usual_clock(int turns_at_more, std::uint64_t seed) {
  stats::Random random(seed);
  std::vector<double> costs;
  std::vector<std::size_t> begins;
  for (int turn = 0; turn < 16; ++turn) {
    begins.push_back(costs.size());
    const double clock = turn < turns_at_more ? 3.19e9 : 2.99e9;
    for (int i = 0; i < 200; ++i) {
      const bool interrupted = random.uniform() < 0.5;
      costs.push_back(5 / (i == 100 && turn < turns_at_more ? 3.48e9 : clock) * (interrupted ? 1.3 : 1));
    }
  }
  return 5 / usual_cost({costs, begins}, kUsualOfOneCore).value;
}

TEST(Windows, AtAHigherClockThanUsualAreNotTheCeiling) {
  for (const int turns : {0, 1, 3, 7}) EXPECT_NEAR(usual_clock(turns, 1) / 2.99e9, 1, 1e-9) << turns;
  EXPECT_NEAR(usual_clock(9, 1) / 3.19e9, 1, 1e-9) << "most turns make the usual clock";
}

TEST(Windows, AtAHigherClockDoNotMakeTurnsDisagree) {
  const MadeUpTurns turns({3, 3, 2, 3, 2, 3, 3, 3, 3, 3});
  EXPECT_GT(disagreement(turns.in_groups_of(1), Usual::best), 0.1);
  EXPECT_EQ(disagreement(turns.in_groups_of(1), Usual::middle), 0);
}

TEST(Windows, OfAllCoresAreFoundThoughTwoOfThemShareOneForMostOfTheRun) {
  const MadeUpTurns turns({3, 2, 3, 3, 3, 3, 2, 3, 3, 3, 3, 2, 3, 3, 3, 3});
  EXPECT_NEAR(usual_cost(turns.in_groups_of(1), kUsualOfAllCores).value, 1.1 * 2, 1e-12);
  EXPECT_NEAR(usual_cost(turns.in_groups_of(1), kUsualOfShared).value, 1.1 * 3, 1e-12);
}

TEST(Windows, OfCachesThatNeighboursShareNeedFewerGoodTurns) {
  const auto vm = std::vector<MemoryLevel>{
      {.name = "L1", .capacity_bytes = 1}, {.name = "L2", .capacity_bytes = 2}, {.name = "DRAM"}};
  EXPECT_EQ(usual_of_level(vm, 0, 1), kUsualOfOneCore);
  EXPECT_EQ(usual_of_level(vm, 0, 2), kUsualOfAllCores) << "whoever else runs takes one of the cores";
  EXPECT_EQ(usual_of_level(vm, 1, 1), kUsualOfShared);
}

/// Fork and join in so many places of memory, half of them near both cores and half far, few on one core.
double usual_place(int places, Usual usual, std::uint64_t seed) {
  stats::Random random(seed);
  std::vector<double> costs;
  std::vector<std::size_t> begins;
  for (int place = 0; place < places; ++place) {
    begins.push_back(costs.size());
    const double near_or_far = 430e-9 + (random.uniform() < 0.5 ? 0 : 90e-9) + 20e-9 * random.uniform();
    const double here = random.uniform() < 0.02 ? 81e-9 : near_or_far;
    for (int i = 0; i < 10; ++i) costs.push_back(here * (1 + 0.02 * random.uniform()));
  }
  return usual_cost({costs, begins}, usual).value;
}

/// How many times the largest of 30 runs is the smallest.
double apart(int places, Usual usual) {
  double least = 1, most = 0;
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    const double value = usual_place(places, usual, seed);
    least = std::min(least, value);
    most = std::max(most, value);
  }
  return most / least;
}

TEST(Windows, OfManyPlacesAgreeWhereThoseOfOneDoNot) {
  EXPECT_LT(apart(512, kUsualOfPlaces), 1.05);
  EXPECT_GT(apart(1, kUsualOfPlaces), 1.1);
  EXPECT_GT(apart(512, Usual::middle), 1.05) << "near or far by luck";
}

TEST(Windows, OfFewTurnsCountTogether) {
  const MadeUpTurns turns({2, 2, 1});
  EXPECT_EQ(usual_cost(turns.in_groups_of(1), Usual::quartile).value, best_cost(turns.costs).value);
}

TEST(Windows, DisagreeWhereEveryOtherTurnIsFaster) {
  for (const Usual usual : {Usual::best, Usual::eighth, Usual::quartile, Usual::middle, Usual::mean}) {
    EXPECT_EQ(disagreement(MadeUpTurns({1, 1, 1, 1}).in_groups_of(1), usual), 0);
    EXPECT_NEAR(disagreement(MadeUpTurns({1, 2, 1, 2, 1, 2}).in_groups_of(1), usual), std::log(2.0), 1e-12);
    EXPECT_TRUE(std::isinf(disagreement(MadeUpTurns({1, 1, 1}).in_groups_of(1), usual)));
  }
}

TEST(Windows, OfKindsThatTakeTurnsAreComparedKindByKind) {
  const MadeUpTurns turns({1, 2, 1, 2, 1, 2, 1, 2});
  EXPECT_EQ(disagreement(turns.in_groups_of(2), Usual::best), 0);
  EXPECT_NEAR(usual_cost(turns.in_groups_of(2), Usual::quartile).value, 1.1, 1e-12) << "the better kind";
}

/// A probe on a clock of its own: a repeat takes a microsecond, and three times as long while a neighbour is there.
struct FakeMachine {
  double now = 0;
  double neighbour_until = 0;
  measure::Clock clock{.now = [this] { return now; }, .resolution_seconds = 1e-9, .read_seconds = 0};
  Probe probe{.what = "fake",
              .run =
                  [this](std::int64_t repeats) {
                    now += static_cast<double>(repeats) * (now < neighbour_until ? 3e-6 : 1e-6);
                  },
              .work = 10};
};

TEST(Windows, KeepNoWindowThatIsTooShortToTrust) {
  FakeMachine fake;
  take_windows(fake.probe, fake.clock, 0.1);
  EXPECT_GE(fake.probe.repeats, 1000);
  EXPECT_LE(fake.probe.repeats, 3000);
  ASSERT_GE(fake.probe.costs.size(), 30u);
  for (const double cost : fake.probe.costs) EXPECT_NEAR(cost, 1e-7, 1e-12);
}

TEST(Windows, AreCountedByTheirTurns) {
  FakeMachine fake;
  take_windows(fake.probe, fake.clock, 0.1);
  const std::size_t first = fake.probe.costs.size();
  take_windows(fake.probe, fake.clock, 0.2);
  EXPECT_EQ(fake.probe.turns, (std::vector<std::size_t>{0, first}));
}

TEST(Windows, DoNotCountWhatATurnBeginsWith) {
  FakeMachine fake;
  take_windows(fake.probe, fake.clock, 0.1);
  const std::size_t first = fake.probe.costs.size();
  const auto run = fake.probe.run;
  int windows = 0;
  fake.probe.run = [&](std::int64_t repeats) {
    run(repeats);
    if (++windows == 1) fake.now -= static_cast<double>(repeats) * 4e-7;  // its writes stay in a cache
  };
  take_windows(fake.probe, fake.clock, 0.2);
  ASSERT_GT(fake.probe.costs.size(), first);
  for (const double cost : fake.probe.costs) EXPECT_NEAR(cost, 1e-7, 1e-12);
}

TEST(Windows, GrowWhenTheNeighbourLeaves) {
  FakeMachine fake;
  fake.neighbour_until = 0.05;
  take_windows(fake.probe, fake.clock, 0.1);
  EXPECT_GE(static_cast<double>(fake.probe.repeats) * 1e-6, 1e-3) << "long enough without the neighbour";
  EXPECT_NEAR(best_cost(fake.probe.costs).value, 1e-7, 1e-12);
}

TEST(Windows, AreTakenEvenWhenTheTimeIsUp) {
  FakeMachine fake;
  fake.now = 1;
  take_windows(fake.probe, fake.clock, 0.5);
  EXPECT_EQ(fake.probe.costs.size(), 3u);
}

constexpr std::int64_t kKiB = 1024, kMiB = 1024 * kKiB;

std::vector<MemoryLevel> levels(std::int64_t l1, std::int64_t l2, int l2_shared, std::int64_t l3,
                                int l3_shared) {
  return {MemoryLevel{.name = "L1", .capacity_bytes = l1, .shared_by_threads = l2_shared},
          MemoryLevel{.name = "L2", .capacity_bytes = l2, .shared_by_threads = l2_shared},
          MemoryLevel{.name = "L3", .capacity_bytes = l3, .shared_by_threads = l3_shared},
          MemoryLevel{.name = "DRAM"}};
}

TEST(WorkingSets, FitTheCacheAndAreWellAboveTheOneBefore) {
  const auto vm = levels(32 * kKiB, kMiB, 1, 32 * kMiB, 2);
  EXPECT_EQ(cache_set_bytes(vm, 0, 1), 16 * kKiB);
  EXPECT_EQ(cache_set_bytes(vm, 1, 1), 256 * kKiB);
  EXPECT_EQ(cache_set_bytes(vm, 2, 1), 4 * kMiB);
  EXPECT_EQ(cache_set_bytes(vm, 2, 2), 4 * kMiB);
}

TEST(WorkingSets, OfACycleStayInThePagesThatACoreKeepsAtHand) {
  const auto xeon = levels(48 * kKiB, 2 * kMiB, 1, 260 * kMiB, 2);
  EXPECT_EQ(cycle_bytes(xeon, 0), 24 * kKiB);
  EXPECT_EQ(cycle_bytes(xeon, 1), 256 * kKiB) << "not the 512 of the rates";
  EXPECT_EQ(cycle_bytes(xeon, 2), cache_set_bytes(xeon, 2, 1)) << "of the last cache that cannot be";
  const auto large_first = levels(128 * kKiB, 16 * kMiB, 1, 64 * kMiB, 2);
  EXPECT_EQ(cycle_bytes(large_first, 1), 512 * kKiB) << "well above the cache before all the same";
}

TEST(WorkingSets, DivideACacheAmongTheThreadsThatShareIt) {
  const auto smt = levels(32 * kKiB, kMiB, 2, 16 * kMiB, 8);
  EXPECT_EQ(cache_set_bytes(smt, 0, 1), 16 * kKiB);
  EXPECT_EQ(cache_set_bytes(smt, 0, 16), 8 * kKiB);
  EXPECT_EQ(cache_set_bytes(smt, 1, 16), 128 * kKiB);
  EXPECT_EQ(cache_set_bytes(smt, 2, 16), 768 * kKiB) << "half as much again as the 512 KiB of L2 a thread";
}

TEST(WorkingSets, StayInsideTheLastCacheOrGiveUp) {
  // 1.9 MiB of L3 a core beside 2 MiB of L2: only both together hold one and a half L2.
  const auto server = levels(48 * kKiB, 2 * kMiB, 1, 105 * kMiB, 56);
  EXPECT_EQ(cache_set_bytes(server, 2, 56), 3 * kMiB);
  const auto starved = levels(48 * kKiB, 2 * kMiB, 1, 32 * kMiB, 64);
  EXPECT_EQ(cache_set_bytes(starved, 2, 64), 0);
}

TEST(WorkingSets, LeaveTheCachesForMemory) {
  const auto vm = levels(32 * kKiB, kMiB, 1, 32 * kMiB, 2);
  EXPECT_EQ(dram_sets(vm, 2, 0).chase_bytes, 256 * kMiB);
  EXPECT_EQ(dram_sets(vm, 2, 0).array_bytes, 128 * kMiB);
  const auto large = levels(48 * kKiB, 2 * kMiB, 1, 260 * kMiB, 2);
  EXPECT_EQ(dram_sets(large, 2, 0).chase_bytes, 1040 * kMiB);
  EXPECT_EQ(dram_sets(large, 4, 0).chase_bytes, 2080 * kMiB) << "four threads on two sockets";
  const DramSets little = dram_sets(vm, 2, 512 * kMiB);
  EXPECT_LE(little.chase_bytes + 3 * little.array_bytes, 256 * kMiB);
  EXPECT_GT(little.array_bytes, 32 * kMiB);
}

/// Windows around two costs within half a percent, in long turns.
std::vector<double> two_states(double slow, double share_slow, std::uint64_t seed) {
  stats::Random random(seed);
  std::vector<double> costs;
  for (int i = 0; i < 200; ++i) {
    const bool is_slow = i % 20 < 20 * share_slow;
    costs.push_back((is_slow ? slow : 1.0) * (1 + 0.005 * random.uniform()));
  }
  return costs;
}

TEST(Windows, TwoGroupsAreSeenWhenFarApartAndBothLarge) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const auto groups = two_groups(two_states(1.25, 0.4, seed));
    ASSERT_TRUE(groups.has_value()) << seed;
    EXPECT_NEAR(groups->slower, 1.25, 0.02);
    EXPECT_NEAR(groups->share_slow, 0.4, 0.02);
    EXPECT_FALSE(two_groups(two_states(1.05, 0.4, seed)).has_value()) << "closer than a tenth";
    EXPECT_FALSE(two_groups(two_states(1.25, 0.1, seed)).has_value()) << "the slow ones are few";
    EXPECT_FALSE(two_groups(two_states(1.0, 0.5, seed)).has_value()) << "one group";
  }
  EXPECT_FALSE(two_groups({}).has_value());
  EXPECT_FALSE(two_groups({1, 2}).has_value());
  EXPECT_EQ(note_of("DRAM copy", Groups{.slower = 1.25, .share_slow = 0.4}),
            "DRAM copy: 40 % of the windows are a group of their own that takes 1.25 times as long");
}

}  // namespace
}  // namespace fulcrum::machine
