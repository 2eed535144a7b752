// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// What CUPTI's records mean: a kind, an interval on a clock, who called. Pure: records in, values out.
#pragma once

#include <cupti.h>

#include <cstdint>
#include <vector>

namespace fulcrum::backends::cuda {

/// A record as CUPTI gave it: times in nanoseconds of its clock.
struct Seen {
  std::int32_t kind = 0;
  std::uint32_t correlation = 0;
  std::uint64_t begin_ns = 0, end_ns = 0;
  std::uint32_t thread = 0;
  enum class From : std::uint8_t { device, runtime, driver } from = From::device;
};

inline bool is_host(const Seen& seen) { return seen.from != Seen::From::device; }

/// One instant on both clocks.
struct Instant {
  std::uint64_t host_ns = 0, cupti_ns = 0;
  std::uint64_t error_ns = 0;
};

/// From the clock of the records to the host's: identity when CUPTI asked us for the time, else a line through an
/// instant before the records and one after them.
struct ClockMap {
  Instant first, last;
  bool same = true;

  double seconds(std::uint64_t ns) const {
    if (same) return static_cast<double>(ns) * 1e-9;
    const double since = static_cast<double>(static_cast<std::int64_t>(ns - first.cupti_ns));
    const double cupti = static_cast<double>(last.cupti_ns - first.cupti_ns);
    const double host = static_cast<double>(last.host_ns - first.host_ns);
    return (static_cast<double>(first.host_ns) + since * (cupti > 0 ? host / cupti : 1.0)) * 1e-9;
  }
};

/// False for a record that is no phase.
bool read_record(const CUpti_Activity& record, Seen& seen);
/// Sorts by begin and drops the driver's calls that a runtime call of the same thread made: their time is that call's.
void drop_nested(std::vector<Seen>& records);
/// Largest lead of device work over the call that enqueued it: what the two clocks disagree by at least.
std::uint64_t lead_ns(const std::vector<Seen>& records);

}  // namespace fulcrum::backends::cuda
