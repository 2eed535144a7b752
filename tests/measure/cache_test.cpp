// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Proofs of cache state, from recorded sentinels.
#include "measure/cache.h"

#include <gtest/gtest.h>

#include <numeric>

namespace fulcrum::measure {
namespace {

Quantity quantity(double value) { return Quantity{value, value, value, Source::measured}; }

Machine machine_with(double l3_read, double dram_read) {
  Machine machine;
  MemoryLevel l3{.name = "L3", .capacity_bytes = 32 << 20, .shared_by_threads = 2};
  MemoryLevel dram{.name = "DRAM"};
  l3.one_thread["read"] = quantity(l3_read);
  dram.one_thread["read"] = quantity(dram_read);
  dram.latency_seconds = quantity(140e-9);
  machine.cpu.levels = {l3, dram};
  return machine;
}
const Machine kMachine = machine_with(30.5e9, 17.5e9);

Sentinel at_rates(double bytes, double first_rate, double again_rate) {
  return Sentinel{bytes, bytes / first_rate, bytes / again_rate};
}

TEST(Cache, AReadAtTheRateOfDramProvesColdIfASecondReadIsFaster) {
  EXPECT_TRUE(proves_cold(at_rates(1e6, 17e9, 50e9), kMachine));
  EXPECT_FALSE(proves_cold(at_rates(1e6, 30e9, 50e9), kMachine)) << "it came from L3";
  EXPECT_FALSE(proves_cold(at_rates(1e6, 15e9, 16e9), kMachine))
      << "a read this slow would not notice a cache";
}

TEST(Cache, ASetThatNoCacheHoldsNeedsNoSecondRead) {
  EXPECT_TRUE(proves_cold(at_rates(256e6, 17e9, 17e9), kMachine));
}

TEST(Cache, AReadAtTheRateOfACacheProvesWarm) {
  EXPECT_TRUE(proves_warm(at_rates(1e6, 30e9, 30e9), kMachine));
  EXPECT_FALSE(proves_warm(at_rates(1e6, 17e9, 30e9), kMachine));
  EXPECT_FALSE(proves_warm(at_rates(1e6, 20e9, 30e9), kMachine))
      << "a few MB stream faster than a large array";
}

TEST(Cache, AFewLinesAreProvedWarmByLatency) {
  EXPECT_TRUE(proves_warm(Sentinel{192, 40e-9, 40e-9}, kMachine));
  EXPECT_FALSE(proves_warm(Sentinel{192, 180e-9, 40e-9}, kMachine));
}

TEST(Cache, WithoutAMeasuredRateNothingIsProved) {
  EXPECT_FALSE(proves_warm(at_rates(1e6, 100e9, 100e9), Machine{}));
  EXPECT_FALSE(proves_cold(at_rates(1e6, 1e9, 100e9), Machine{}));
  EXPECT_FALSE(proves_cold(at_rates(1e6, 1e9, 100e9), machine_with(0, 0)));
}

TEST(Cache, StreamingMeansThatNoLevelHoldsTheSet) {
  EXPECT_FALSE(streams(32 << 20, 1, kMachine));
  EXPECT_TRUE(streams((32 << 20) + 1, 1, kMachine));
  EXPECT_TRUE(streams((32 << 20) + 1, 2, kMachine)) << "both threads share it";
}

TEST(Cache, FlushingChangesNoByte) {
  std::vector<std::uint8_t> bytes(4097);
  std::iota(bytes.begin(), bytes.end(), std::uint8_t{1});
  const std::vector<std::uint8_t> before = bytes;
  const Operands operands{std::as_bytes(std::span(bytes).subspan(3))};
  flush(operands);
  EXPECT_EQ(bytes, before);
}

TEST(Cache, TheSentinelReadsEveryByte) {
  std::vector<std::uint8_t> bytes(100, 0);
  const Operands operands{std::as_bytes(std::span(bytes))};
  const std::uint64_t zero = read_all(operands);
  for (std::uint8_t& byte : bytes) {
    byte = 1;
    EXPECT_NE(read_all(operands), zero);
    byte = 0;
  }
}

}  // namespace
}  // namespace fulcrum::measure
