// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// What the machine does to a sample is seen and counted.
#include "measure/environment.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <chrono>
#include <thread>

#include "support/fake_clock.h"

namespace fulcrum::measure {
namespace {

using testing::FakeClock;

TEST(Environment, FreshPagesTagTheSampleThatTouchesThem) {
  FakeClock clock;
  EnvironmentWatch watch(*clock.clock());
  constexpr std::size_t kBytes = 1 << 20;
  void* memory = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  watch.before_sample();
  for (std::size_t i = 0; i < kBytes; i += 4096) static_cast<volatile char*>(memory)[i] = 1;
  EXPECT_NE(watch.after_sample(1e-3) & kPageFault, 0);
  munmap(memory, kBytes);
  EXPECT_GT(watch.finish().page_faults, 0);
}

TEST(Environment, SleepingIsAContextSwitch) {
  FakeClock clock;
  EnvironmentWatch watch(*clock.clock());
  watch.before_sample();
  std::this_thread::sleep_for(std::chrono::microseconds(100));
  EXPECT_NE(watch.after_sample(1e-3) & kContextSwitch, 0);
  EXPECT_GT(watch.finish().context_switches, 0);
}

TEST(Environment, WallTimeIsOfTheClockGiven) {
  FakeClock clock;
  EnvironmentWatch watch(*clock.clock());
  clock.advance(42);
  EXPECT_NEAR(watch.finish().wall_seconds, 42, 1e-9);
}

TEST(Environment, AClockThatStandsGivesNoFrequency) {
  FakeClock clock;
  EXPECT_EQ(estimate_clock_hz(*clock.clock()), 0);
}

#if defined(__x86_64__)
TEST(Environment, TheFrequencyIsThatOfThreeCyclesAMultiplication) {
  FakeClock clock(1e-9, 20e-6);  // 20,000 multiplications between two reads
  EXPECT_NEAR(estimate_clock_hz(*clock.clock()), 3e9, 1e3);
}
#endif

TEST(Environment, StolenTimeIsNeverNegative) { EXPECT_GE(stolen_seconds(), 0); }

}  // namespace
}  // namespace fulcrum::measure
