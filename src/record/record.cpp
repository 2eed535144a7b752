// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Chooses the way to record and checks what was asked for.
#include <fmt/format.h>
#include <fulcrum/record.h>

#include "record/session.h"

namespace fulcrum::record {
namespace {

Status check(const Options& options) {
  if (options.command.empty() == (options.pid == 0)) {
    return Error{Code::usage, "record needs either a command or the number of a running process", ""};
  }
  if (!(options.rate_hz >= 1 && options.rate_hz <= 10'000)) {
    return Error{Code::usage, fmt::format("a rate of {} samples a second is out of range", options.rate_hz),
                 "choose 1 to 10000; the default is 199"};
  }
  if (options.size_limit_bytes < 100'000) {
    return Error{Code::usage, "a size limit below 100 kB leaves no room for a profile", ""};
  }
  if (options.duration_seconds < 0) return Error{Code::usage, "the duration is negative", ""};
  return {};
}

}  // namespace

Result<CpuProfile> record(const Options& options) {
  FULCRUM_CHECK(check(options));
  const EventAccess access = probe_access();
  if (options.mode == Mode::timer || (options.mode == Mode::automatic && !access.allowed)) {
    return record_timer(options, access);
  }
  if (!access.allowed) {
    return Error{Code::environment,
                 fmt::format("perf events are not allowed here (kernel.perf_event_paranoid is {})",
                             access.paranoid_level),
                 "as root: sysctl kernel.perf_event_paranoid=2; in a container allow perf_event_open; or "
                 "record with timers (Mode::automatic)"};
  }
  return record_perf(options, access);
}

}  // namespace fulcrum::record
