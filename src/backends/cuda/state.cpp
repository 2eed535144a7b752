// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// The state of the device now, as JSON: what NVML says, how the pools stand, what tracing cost. A key that is not known is left out.
#include "backends/cuda/activities.h"
#include "backends/cuda/json.h"
#include "backends/cuda/nvml.h"
#include "backends/cuda/parts.h"
#include "backends/cuda/pools.h"
#include "backends/cuda/runtime.h"

namespace fulcrum::backends::cuda {
namespace {

JsonObject pool_state(const Pool& pool) {
  const PoolCounters counters = pool.counters();
  JsonObject json;
  json.integer("hits", counters.hits)
      .integer("misses", counters.misses)
      .number("hit_rate", counters.hit_rate());
  json.integer("in_use_bytes", static_cast<std::int64_t>(counters.in_use_bytes));
  json.integer("cached_bytes", static_cast<std::int64_t>(counters.cached_bytes));
  json.integer("peak_bytes", static_cast<std::int64_t>(counters.peak_bytes));
  json.number("fragmentation", counters.fragmentation());
  return json.integer("source_calls", counters.source_calls).integer("strays", counters.strays);
}

JsonObject tracing() {
  const TracingState now = tracing_state();
  JsonObject json;
  json.number("clock_error_seconds", now.clock_error_seconds).number("load_seconds", now.load_seconds);
  json.number("enable_seconds", now.enable_seconds).number("first_work_seconds", now.first_work_seconds);
  json.number("migrations_seconds", now.migrations_seconds).number("flush_seconds", now.flush_seconds);
  return json.number("stop_seconds", now.stop_seconds);
}

const char* state() {
  static thread_local std::string text;
  JsonObject json;
  const auto add = [&json](const char* key, const std::optional<double>& value) {
    if (value) json.number(key, *value);
  };
  if (available()) {
    const DeviceReading now = read_device();
    add("sm_hz", now.sm_hz);
    add("max_sm_hz", now.max_sm_hz);
    add("mem_hz", now.memory_hz);
    add("temperature_c", now.temperature_c);
    add("power_w", now.power_w);
    add("power_limit_w", now.power_limit_w);
    if (now.throttle_reasons)
      json.integer("throttle_reasons", static_cast<std::int64_t>(*now.throttle_reasons));
    if (now.other_processes) json.integer("other_processes", *now.other_processes);
    if (!now.driver.empty()) json.text("driver", now.driver);
    json.object("device_pool", pool_state(device_pool())).object("pinned_pool", pool_state(pinned_pool()));
    if (tracing_state().load_seconds > 0) json.object("tracing", tracing());
  }
  text = json.str();
  return text.c_str();
}

}  // namespace

void add_state(fulcrum_backend& table) { table.state = state; }

}  // namespace fulcrum::backends::cuda
