// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Tracing as the rest of the module sees it: how well the records of the device lie on the host's clock, what tracing
// costs beside the traced calls, and who needs the pages of unified memory traced.
#pragma once

#include <cstdint>

namespace fulcrum::backends::cuda {

/// All in seconds, of the tracing that was started last.
struct TracingState {
  /// Largest error seen so far: of the fit between the two clocks, and of device work that seems to begin before the
  /// host's call that caused it. 0: nothing traced yet, or no error seen.
  double clock_error_seconds = 0;
  double load_seconds = 0, enable_seconds = 0, first_work_seconds = 0;  // of start()
  double migrations_seconds = 0, flush_seconds = 0, stop_seconds = 0;   // flush: all of them together
};
TracingState tracing_state();

/// While tracing: also the migrations of managed memory, from now on. Asked for by those who use such memory.
void watch_migrations();

/// A scope in which the host writes or reads managed memory: a migration, while tracing. The library's records cover the
/// way of the bytes, not the host's faults that ask for it, which take longer.
class HostTouch {
 public:
  HostTouch();
  HostTouch(const HostTouch&) = delete;
  HostTouch& operator=(const HostTouch&) = delete;
  ~HostTouch();

 private:
  std::uint64_t begin_ns_ = 0;  // 0: nobody traces
};

}  // namespace fulcrum::backends::cuda
