// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// The offload set: two algorithms that must agree, and data that is paid for once.
#include "model/model_support.h"

namespace fulcrum::model::test {
namespace {

TEST(OffloadSet, DataReadByFiveRegionsIsPaidOnce) {
  std::vector<Region> regions(5, {"r", 3, 1});
  const DataObject store{"store", DataObject::kHost, {0, 1, 2, 3, 4}, 8, 0, 100};
  const auto best = best_set(regions, std::span(&store, 1));
  ASSERT_TRUE(best.ok());
  EXPECT_EQ(best->on_gpu, std::vector<bool>(5, true));  // 5 + 8 against 15
  EXPECT_DOUBLE_EQ(best->seconds, 13);
  EXPECT_DOUBLE_EQ(best->transfer_seconds, 8);
  // One region alone would pay 8 for a gain of 2.
  const auto one = best_set(std::span(regions).first(1),
                            std::vector<DataObject>{{"store", DataObject::kHost, {0}, 8, 0, 100}});
  EXPECT_FALSE(one->on_gpu[0]);
}

TEST(OffloadSet, ARegionThatLosesAloneMovesWithItsData) {
  // Middle step is slower on the GPU by 1, but leaving it would move the data twice for 5 each.
  const std::vector<Region> regions{{"a", 20, 1}, {"b", 2, 3}, {"c", 20, 1}};
  const std::vector<DataObject> objects{{"x", 0, {1}, 5, 5, 1}, {"y", 1, {2}, 5, 5, 1}};
  const auto best = best_set(regions, objects);
  EXPECT_EQ(best->on_gpu, (std::vector<bool>{true, true, true}));
  EXPECT_DOUBLE_EQ(best->seconds, 5);
}

TEST(OffloadSet, WhatTheHostReadsComesBack) {
  const std::vector<Region> regions{{"a", 10, 1}};
  const std::vector<DataObject> objects{{"out", 0, {DataObject::kHost}, 0, 20, 1}};
  EXPECT_FALSE(best_set(regions, objects)->on_gpu[0]);
}

TEST(OffloadSet, TheDevicesMemoryIsALimitAndItIsSaid) {
  const std::vector<Region> regions{{"a", 10, 1}, {"b", 8, 1}};
  const std::vector<DataObject> objects{{"x", DataObject::kHost, {0}, 0, 0, 60},
                                        {"y", DataObject::kHost, {1}, 0, 0, 60}};
  const auto best = best_set(regions, objects, 100);
  EXPECT_EQ(best->on_gpu, (std::vector<bool>{true, false}));
  EXPECT_TRUE(best->memory_bound);
  EXPECT_FALSE(best_set(regions, objects, 120)->memory_bound);
}

TEST(OffloadSet, RefusesMoreRegionsThanItCanTry) {
  const std::vector<Region> regions(kMostRegions + 1, Region{"r", 1, 1});
  EXPECT_FALSE(best_set(regions, {}).ok());
}

TEST(OffloadSet, MinimumCutEqualsTryingEverySet) {
  stats::Random random(7);
  for (int trial = 0; trial < 1000; ++trial) {
    const auto count = 1 + random.below(9);
    std::vector<Region> regions(count);
    for (Region& r : regions) r = {"r", 10 * random.uniform(), 10 * random.uniform()};
    std::vector<DataObject> objects(random.below(8));
    for (DataObject& object : objects) {
      const auto place = [&] { return static_cast<int>(random.below(count + 1)) - 1; };
      object.producer = place();
      for (std::size_t i = random.below(4); i-- > 0;) object.consumers.push_back(place());
      object.to_device_seconds = 6 * random.uniform();
      object.to_host_seconds = 6 * random.uniform();
    }
    const auto tried = best_set(regions, objects);
    const OffloadSet cut = best_set_by_cut(regions, objects);
    ASSERT_NEAR(cut.seconds, tried->seconds, 1e-9) << "trial " << trial;
    ASSERT_NEAR(price_set(regions, objects, tried->on_gpu).seconds, tried->seconds, 1e-12);
  }
}

TEST(OffloadSet, AMinimumCutUnderAMemoryLimitFitsAndIsNoBetterThanTheBest) {
  stats::Random random(11);
  int bound = 0, exact = 0;
  for (int trial = 0; trial < 300; ++trial) {
    const auto count = 2 + random.below(8);
    std::vector<Region> regions(count);
    for (Region& r : regions) r = {"r", 10 * random.uniform(), 2 * random.uniform()};
    std::vector<DataObject> objects(1 + random.below(8));
    for (DataObject& object : objects) {
      const auto place = [&] { return static_cast<int>(random.below(count + 1)) - 1; };
      object.producer = place();
      object.consumers = {place(), place()};
      object.to_device_seconds = random.uniform();
      object.to_host_seconds = random.uniform();
      object.bytes = 100 * random.uniform();
    }
    const double limit = 150;
    const auto tried = best_set(regions, objects, limit);
    const OffloadSet cut = best_set_by_cut(regions, objects, limit);
    ASSERT_LE(cut.device_bytes, limit) << "trial " << trial;
    ASSERT_GE(cut.seconds, tried->seconds - 1e-9) << "trial " << trial;
    ASSERT_EQ(cut.memory_bound, tried->memory_bound) << "trial " << trial;
    bound += cut.memory_bound;
    exact += cut.seconds < tried->seconds + 1e-9;
  }
  EXPECT_GT(bound, 50);
  EXPECT_GT(exact, 200);
}

}  // namespace
}  // namespace fulcrum::model::test
