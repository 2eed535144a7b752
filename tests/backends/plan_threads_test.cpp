// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Plans that are made by several threads.
#include "backends/plan_threads.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

namespace fulcrum::backends {
namespace {

constexpr std::int64_t kMuch = std::int64_t{16} << 20, kParts = 37;

struct Parts {
  std::vector<std::atomic<int>> done = std::vector<std::atomic<int>>(kParts);
  std::atomic<int> ranges = 0;

  static void work(void* context, std::int64_t begin, std::int64_t end) {
    auto& parts = *static_cast<Parts*>(context);
    ++parts.ranges;
    for (std::int64_t i = begin; i < end; ++i) ++parts.done[static_cast<std::size_t>(i)];
  }
  void expect_once() const {
    for (const auto& count : done) EXPECT_EQ(count, 1);
  }
};

TEST(PlanThreads, DoEveryPartOnce) {
  const PlanThreads four(4);
  Parts parts;
  plan_parts(kParts, kMuch, Parts::work, &parts);
  parts.expect_once();
}

TEST(PlanThreads, AreOneWhereNobodyGaveMoreAndWhereThereIsLittleToDo) {
  Parts alone;
  plan_parts(kParts, kMuch, Parts::work, &alone);
  EXPECT_EQ(alone.ranges, 1);
  alone.expect_once();
  const PlanThreads four(4);
  Parts little;
  plan_parts(kParts, 1000, Parts::work, &little);
  EXPECT_EQ(little.ranges, 1);
  little.expect_once();
}

TEST(PlanThreads, AreThoseOfTheThreadThatPlansUntilItHasPlanned) {
  {
    const PlanThreads four(4);
    std::thread([] {
      Parts elsewhere;
      plan_parts(kParts, kMuch, Parts::work, &elsewhere);
      EXPECT_EQ(elsewhere.ranges, 1);
    }).join();
  }
  Parts after;
  plan_parts(kParts, kMuch, Parts::work, &after);
  EXPECT_EQ(after.ranges, 1);
}

}  // namespace
}  // namespace fulcrum::backends
