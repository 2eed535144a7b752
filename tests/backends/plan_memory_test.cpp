// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Memory that plans give back and take again.
#include "backends/simd/plan_memory.h"

#include <gtest/gtest.h>

#include <cstring>
#include <thread>
#include <vector>

namespace fulcrum::backends::simd {
namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;

// Blocks as they are: a plan's memory begins somewhere in one.
TEST(PlanMemory, WhatOnePlanGaveBackIsTheNextOnes) {
  void* before = take_plan_memory(nullptr, 5 * kMiB);
  ASSERT_TRUE(before);
  give_plan_memory(nullptr, before);
  void* smaller = take_plan_memory(nullptr, 5 * kMiB - 1000);
  EXPECT_EQ(smaller, before);
  void* another = take_plan_memory(nullptr, 5 * kMiB - 1000);
  EXPECT_NE(another, before) << "it is in use";
  give_plan_memory(nullptr, smaller);
  give_plan_memory(nullptr, another);
}

TEST(PlanMemory, ABlockThatIsFarTooLargeWaitsForALargerPlan) {
  void* before = take_plan_memory(nullptr, 40 * kMiB);
  ASSERT_TRUE(before);
  give_plan_memory(nullptr, before);
  void* small = take_plan_memory(nullptr, 9 * kMiB);
  EXPECT_NE(small, before);
  void* large = take_plan_memory(nullptr, 30 * kMiB);
  EXPECT_EQ(large, before);
  give_plan_memory(nullptr, small);
  give_plan_memory(nullptr, large);
}

TEST(PlanMemory, KeepsNoMoreThanIsWorthKeeping) {
  void* before = take_plan_memory(nullptr, 20 * kMiB);
  give_plan_memory(nullptr, before);
  give_plan_memory(
      nullptr, take_plan_memory(nullptr, 65 * kMiB));  // all that was kept makes room, and it is too large
  void* fresh[] = {take_plan_memory(nullptr, 21 * kMiB), take_plan_memory(nullptr, 60 * kMiB)};
  for (void* memory : fresh) {
    ASSERT_TRUE(memory);
    give_plan_memory(nullptr, memory);
  }
}

TEST(PlanMemory, IsAlignedAndWritable) {
  for (const std::size_t count : {std::size_t{1}, std::size_t{1000}, std::size_t{100000}, 40 * kMiB}) {
    const auto memory = plan_memory<std::uint8_t>(count);
    ASSERT_TRUE(memory);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory.get()) % 64, 0u) << count;
    std::memset(memory.get(), 1, count);
  }
}

TEST(PlanMemory, ServesManyThreads) {
  std::vector<std::thread> threads;
  for (int number = 0; number < 4; ++number) {
    threads.emplace_back([number] {
      for (int i = 0; i < 200; ++i) {
        const auto memory = plan_memory<int>(kMiB / 8 + static_cast<std::size_t>(i));
        memory[0] = number;
        memory[kMiB / 8 - 1] = number;
        EXPECT_EQ(memory[0], number);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace fulcrum::backends::simd
