// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// What the program that started us asked for. All of it comes by the environment, which is the only way into somebody
// else's process; a value that makes no sense counts as absent.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace fulcrum::trace::inject {

struct Config {
  std::string folder;                                  // FULCRUM_TRACE_FOLDER; empty: do nothing at all
  bool full = false;                                   // FULCRUM_TRACE_FULL
  double budget_share = 0.05;                          // FULCRUM_TRACE_BUDGET
  std::int64_t limit_bytes = std::int64_t{256} << 20;  // FULCRUM_TRACE_LIMIT
  bool counters = false;                               // FULCRUM_TRACE_COUNTERS
  bool hash_copies = false;                            // FULCRUM_TRACE_HASH
  bool managed = true;                                 // FULCRUM_TRACE_MANAGED
  // What a record adds to the thread that launches: FULCRUM_TRACE_RECORD_NS and _CALL_NS, calibrated. Otherwise what
  // an H200's host takes, where a launch of 4.3 us became one of 5.6.
  double record_ns = 900, call_ns = 500;
  // Words by which a measurement of the collector itself changes it, with commas: FULCRUM_TRACE_PARTS. no-calls,
  // no-kernels, no-clocks: without these records; runtime-layer: calls of the runtime and not of the driver; pinned:
  // CUPTI's buffers in host memory; never: no windows; stay: CUPTI is not detached between them; off: they end after half
  // a second; alternate: they change every fifth of a second.
  std::string parts;
  bool has_part(std::string_view word) const;
};

Config config_from_environment();

}  // namespace fulcrum::trace::inject
