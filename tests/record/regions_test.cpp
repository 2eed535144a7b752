// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// FULCRUM_REGION: counts are exact, shares are those of the work, and without a recorder nothing happens.
#include "record/regions.h"

#include <fulcrum/region.h>

#include "record/libdw.h"
#include "record/recording.h"

namespace fulcrum::record {
namespace {

TEST(Regions, CountExactlyAndShareAsTheWorkDoes) {
  if (!probe_access().allowed) GTEST_SKIP() << "SKIPPED: perf events are not allowed here";
  if (!libdw()) GTEST_SKIP() << "SKIPPED: " << libdw_text();
  const auto profile = record(run_of("regions", {"20000"}));
  ASSERT_TRUE(profile.ok()) << profile.error().message;
  ASSERT_EQ(profile->regions.size(), 2u);
  const CpuProfile::Region &outer = profile->regions[0], &inner = profile->regions[1];
  EXPECT_EQ(outer.name, "outer");
  EXPECT_EQ(inner.name, "inner");
  EXPECT_EQ(outer.parent, 0u);
  EXPECT_EQ(inner.parent, 1u);
  // Parent and child process together.
  EXPECT_EQ(outer.entries, 40000);
  EXPECT_EQ(inner.entries, 40000);
  EXPECT_EQ(outer.work, 0);
  EXPECT_EQ(inner.work, 40000.0 * 6000);
  double samples = 0, in_outer = 0, in_inner = 0;
  for (const CpuProfile::Sample& sample : profile->samples) {
    if (sample.blocked) continue;
    ++samples;
    if (sample.region == 1) ++in_outer;
    if (sample.region == 2) ++in_inner;
  }
  ASSERT_GT(samples, 100);
  const auto margin = [&](double p) { return 4.5 * std::sqrt(p * (1 - p) / samples) + 2 / samples; };
  EXPECT_NEAR(in_inner / samples, 60.0 / 120, margin(0.5));
  EXPECT_NEAR(in_outer / samples, 40.0 / 120, margin(40.0 / 120));
}

TEST(Regions, WithoutARecorderNothingHappens) {
  FULCRUM_REGION("alone", 1);
  EXPECT_EQ(fulcrum_region_state, FULCRUM_REGION_NOBODY);
}

TEST(Regions, OnlyAMarkAtItsOwnAddressCounts) {
  Regions regions;
  ASSERT_FALSE(regions.path().empty());
  const int descriptor = ::open(regions.path().c_str(), O_RDWR | O_CLOEXEC);
  ASSERT_GE(descriptor, 0);
  void* map =
      ::mmap(nullptr, sizeof(fulcrum_region_memory), PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  ::close(descriptor);
  ASSERT_NE(map, MAP_FAILED);
  auto* memory = static_cast<fulcrum_region_memory*>(map);
  EXPECT_EQ(fulcrum_region_find(memory, "a", 0), 1u);
  EXPECT_EQ(fulcrum_region_find(memory, "b", 1), 2u);
  EXPECT_EQ(fulcrum_region_find(memory, "b", 0), 3u);
  EXPECT_EQ(fulcrum_region_find(memory, "a", 0), 1u);

  SampleView sample;
  sample.registers[kDwarfSp] = 0x7ffc0000;
  std::uint64_t stack[16] = {};
  sample.stack = std::as_bytes(std::span(stack));
  EXPECT_EQ(regions.find(sample), 0u);
  stack[6] = FULCRUM_REGION_MAGIC ^ (0x7ffc0000 + 48);
  stack[7] = 2;
  EXPECT_EQ(regions.find(sample), 2u);
  stack[2] = FULCRUM_REGION_MAGIC ^ (0x7ffc0000 + 48);  // a copy of it elsewhere
  stack[3] = 1;
  EXPECT_EQ(regions.find(sample), 2u);
  stack[2] = FULCRUM_REGION_MAGIC ^ (0x7ffc0000 + 16);
  EXPECT_EQ(regions.find(sample), 1u);
  stack[3] = 5000;
  EXPECT_EQ(regions.find(sample), 2u);
  ::munmap(map, sizeof(fulcrum_region_memory));
  EXPECT_EQ(regions.read().size(), 3u);
}

}  // namespace
}  // namespace fulcrum::record
