// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// The profiles in share/machines: all are read, every number says where it comes from, and what must rise rises.
#include <fulcrum/machine.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "machine/store.h"

namespace fulcrum::machine {
namespace {

ProfileFolder shipped() {
  return ProfileFolder(std::filesystem::path(FULCRUM_SOURCE_DIR) / "share/machines", true);
}

/// Every quantity of a GPU with its name.
std::map<std::string, Quantity> quantities(const GpuCeilings& gpu) {
  std::map<std::string, Quantity> all;
  for (const auto& group : {gpu.rates, gpu.flops, gpu.latencies}) all.insert(group.begin(), group.end());
  for (const auto& group : {gpu.link, gpu.tables}) {
    for (const auto& [name, points] : group) {
      for (const auto& [key, quantity] : points) all[name + " " + std::to_string(key)] = quantity;
    }
  }
  return all;
}

TEST(ShippedProfiles, AreAllReadAndNamedByTheirFile) {
  const auto profiles = shipped().list();
  ASSERT_GE(profiles.size(), 5u);
  for (const StoredProfile& profile : profiles) {
    EXPECT_TRUE(profile.shipped);
    const auto machine = shipped().load(profile.name);
    ASSERT_TRUE(machine.ok()) << profile.name << ": " << machine.error().message;
    EXPECT_EQ(machine->id, profile.name);
    ASSERT_EQ(machine->gpus.size(), 1u) << profile.name;
    const GpuCeilings& gpu = machine->gpus[0];
    EXPECT_FALSE(gpu.compute_capability.empty()) << profile.name;
    EXPECT_GT(gpu.sms, 0) << profile.name;
    EXPECT_GT(gpu.l2_bytes, 0) << profile.name;
    EXPECT_GT(gpu.memory_bytes, gpu.l2_bytes) << profile.name;
    EXPECT_GT(gpu.max_sm_hz, 1e9) << profile.name;
  }
}

TEST(ShippedProfiles, HaveTheFieldsThatAModelNeedsAndSayWhereTheyComeFrom) {
  for (const StoredProfile& profile : shipped().list()) {
    const auto machine = shipped().load(profile.name);
    ASSERT_TRUE(machine.ok());
    const GpuCeilings& gpu = machine->gpus[0];
    for (const char* rate : {"hbm_read", "hbm_copy", "hbm_write", "hbm_add"})
      EXPECT_TRUE(gpu.rates.contains(rate)) << profile.name << " " << rate;
    for (const char* cost : {"launch", "launch_sync", "graph_sync", "graph_node", "alloc", "pin"})
      EXPECT_TRUE(gpu.latencies.contains(cost)) << profile.name << " " << cost;
    for (const char* way : {"pinned_h2d", "pinned_d2h", "pageable_h2d", "pageable_d2h"})
      EXPECT_TRUE(gpu.link.contains(way)) << profile.name << " " << way;
    EXPECT_TRUE(gpu.flops.contains("fp32")) << profile.name;
    const bool measured = !machine->measured_utc.empty();
    for (const auto& [name, quantity] : quantities(gpu)) {
      EXPECT_GT(quantity.low, 0) << profile.name << " " << name;
      EXPECT_LE(quantity.low, quantity.value) << profile.name << " " << name;
      EXPECT_LE(quantity.value, quantity.high) << profile.name << " " << name;
      EXPECT_EQ(quantity.source == Source::measured, measured) << profile.name << " " << name;
    }
  }
}

TEST(ShippedProfiles, InheritedNumbersHaveTheIntervalOfAnAssumption) {
  for (const StoredProfile& profile : shipped().list()) {
    const auto machine = shipped().load(profile.name);
    ASSERT_TRUE(machine.ok());
    for (const auto& [name, quantity] : quantities(machine->gpus[0])) {
      if (quantity.source != Source::assumed) continue;
      EXPECT_NEAR(quantity.value / quantity.low, 1.5, 0.01) << profile.name << " " << name;
      EXPECT_NEAR(quantity.high / quantity.value, 1.5, 0.01) << profile.name << " " << name;
    }
  }
}

TEST(ShippedProfiles, LinkTablesOfDatasheetsRiseWithTheSize) {
  for (const StoredProfile& profile : shipped().list()) {
    const auto machine = shipped().load(profile.name);
    ASSERT_TRUE(machine.ok());
    if (!machine->measured_utc.empty()) continue;
    for (const auto& [way, points] : machine->gpus[0].link) {
      for (std::size_t i = 1; i < points.size(); ++i) {
        EXPECT_GT(points[i].first, points[i - 1].first) << profile.name << " " << way;
        EXPECT_GE(points[i].second.value, points[i - 1].second.value) << profile.name << " " << way;
      }
    }
  }
}

}  // namespace
}  // namespace fulcrum::machine
