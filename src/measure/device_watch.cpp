// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// What the device did meanwhile, as its backend tells it: two readings outside of the timed regions.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "measure/bound.h"

namespace fulcrum::measure {
namespace {

// Power cap, hardware slow-down, thermal limits, power brake. Idle and locked clocks are no complaint.
constexpr std::uint64_t kThrottling = 0x4 | 0x8 | 0x20 | 0x40 | 0x80;
constexpr double kDropped = 0.9;

double number(const Json& json, const char* key) {
  const auto found = json.find(key);
  return found != json.end() && found->is_number() ? found->get<double>() : 0;
}

std::optional<Environment::Gpu> read(const backends::Backend& backend) {
  const Json state = backends::device_state(backend);
  if (!state.is_object() || !state.contains("sm_hz")) return std::nullopt;
  Environment::Gpu gpu;
  gpu.sm_hz_before = gpu.sm_hz_after = number(state, "sm_hz");
  gpu.temperature_c = number(state, "temperature_c");
  gpu.power_w = number(state, "power_w");
  gpu.throttle_reasons = static_cast<std::uint64_t>(std::max(0.0, number(state, "throttle_reasons")));
  gpu.other_processes = static_cast<std::int64_t>(number(state, "other_processes"));
  return gpu;
}

}  // namespace

DeviceWatch::DeviceWatch(const backends::Backend& backend) : backend_(backend), before_(read(backend)) {}

void DeviceWatch::finish(Measurement& m) const {
  std::optional<Environment::Gpu> after = read(backend_);
  if (!after || !before_) return;
  after->sm_hz_before = before_->sm_hz_before;
  after->throttle_reasons |= before_->throttle_reasons;
  after->other_processes = std::max(after->other_processes, before_->other_processes);
  if (after->throttle_reasons & kThrottling) add_flag(m.flags, "throttled");
  if (after->sm_hz_after < kDropped * after->sm_hz_before) add_flag(m.flags, "clock_dropped");
  if (after->other_processes > 0) add_flag(m.flags, "shared_device");
  m.environment.gpu = after;
}

}  // namespace fulcrum::measure
