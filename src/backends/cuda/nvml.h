// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// What the driver's management library says about the device in use: clocks, temperature, power, who else is there.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace fulcrum::backends::cuda {

/// Each value alone may be unknown: an older driver, a virtual GPU, a container without the permission.
struct DeviceReading {
  std::optional<double> sm_hz, max_sm_hz, memory_hz;
  std::optional<double> temperature_c, power_w, power_limit_w;
  std::optional<std::uint64_t> throttle_reasons;  // NVML's bits
  std::optional<std::int64_t> other_processes;    // with a context on the device, ours not counted
  std::string driver;                             // "580.65.06"
};

/// Empty where the library is missing or does not know the device. Calls are cheap (no context is made).
DeviceReading read_device();

}  // namespace fulcrum::backends::cuda
