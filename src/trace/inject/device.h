// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// What the driver says about a device, and how many blocks of a launch fit onto one of its multiprocessors.
#pragma once

#include <cstdint>

#include "trace/inject/cupti_table.h"
#include "trace/inject/writer.h"

namespace fulcrum::trace::inject {

struct DeviceFacts {
  std::uint32_t id = 0;
  char name[256] = "";
  char uuid[48] = "";  // as nvidia-smi has it; empty: not known
  int sms = 0, compute_major = 0, compute_minor = 0;
  int threads_per_sm = 0, blocks_per_sm = 0, registers_per_sm = 0, registers_per_block = 0;
  int threads_per_block = 0, warp = 32;
  std::int64_t shared_per_sm = 0, shared_per_block = 0, shared_per_block_optin = 0, reserved_shared = 0;
  std::int64_t memory_bytes = 0;
  double memory_bytes_per_second = 0, max_sm_mhz = 0;
};

/// From CUPTI's record, completed by the driver where there is one. False: the two disagree about the number of
/// multiprocessors, so the record's layout is not the one we know.
bool device_facts(const CUpti_ActivityDevice5&, DeviceFacts&) noexcept;
/// From the driver alone, for a device without a record.
bool device_facts(std::uint32_t id, DeviceFacts&) noexcept;
file::Device to_record(const DeviceFacts&, Writer&) noexcept;

struct Occupancy {
  int blocks_per_sm = 0;  // 0: not known
  float share = 0;        // of the warps that a multiprocessor holds
  const char* limiter = "";
};
Occupancy occupancy(const DeviceFacts&, const CUpti_ActivityKernel9& launch) noexcept;

/// cuDriverGetVersion; 0: no driver.
int driver_version() noexcept;
/// At least one: without a driver to ask, the first.
int device_count() noexcept;

}  // namespace fulcrum::trace::inject
