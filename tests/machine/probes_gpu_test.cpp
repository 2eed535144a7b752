// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// The probes of the device at hand: each gives a value, and none is larger than the bus or the clock allows.
#include <fulcrum/machine.h>
#include <gtest/gtest.h>

#include "machine/gpu.h"

namespace fulcrum::machine {
namespace {

const backends::Backend* gpu_backend() {
  for (const backends::Backend* backend : backends::all()) {
    if (backend->name() == "cuda" && backend->available()) return backend;
  }
  return nullptr;
}

TEST(DeviceProbes, FillEveryFieldOfTheProfile) {
  const backends::Backend* backend = gpu_backend();
  if (!backend) GTEST_SKIP() << "SKIPPED: no GPU";
  GpuCeilings gpu;
  std::vector<std::string> notes;
  ASSERT_TRUE(measure_gpu(*backend, {}, 1, gpu, notes).ok());
  for (const std::string& note : notes) {
    EXPECT_EQ(note.find("left out"), std::string::npos) << note;
  }
  for (const char* rate : {"hbm_read", "hbm_copy", "hbm_write", "hbm_add", "l2_read", "l2_copy"})
    EXPECT_GT(gpu.rates[rate].low, 0) << rate;
  EXPECT_GT(gpu.flops["fp32"].low, 0);
  for (const char* cost : {"launch", "launch_sync", "graph_sync", "graph_node", "event_resolution", "alloc",
                           "alloc_async", "pin", "register", "grid_barrier"})
    EXPECT_GT(gpu.latencies[cost].low, 0) << cost;
  for (const char* way : {"pinned_h2d", "pinned_d2h", "pageable_h2d", "pageable_d2h", "mapped_read",
                          "mapped_write", "duplex"}) {
    EXPECT_EQ(gpu.link[way].size(), 14u) << way;
  }
  for (const char* table : {"read_by_ctas", "read_by_ctas_one_load"})
    EXPECT_GE(gpu.tables[table].size(), 6u) << table;
  // 128 multiply-adds an SM and clock is the most that any device of today has.
  if (gpu.max_sm_hz > 0) {
    EXPECT_LE(gpu.flops["fp32"].value, 1.05 * 256 * static_cast<double>(gpu.sms) * gpu.max_sm_hz);
  }
}

}  // namespace
}  // namespace fulcrum::machine
