// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Calls and seconds of a kernel in the whole run. Where it was traced in windows, the trace's totals speak for the rest.
#pragma once

#include <fulcrum/core/finding.h>
#include <fulcrum/core/trace.h>

#include <algorithm>
#include <cstdint>

namespace fulcrum::report {

struct WholeRun {
  std::int64_t calls = 0;
  double seconds = 0;
};

inline WholeRun whole_run(const GpuTrace& trace, const Timeline::Kernel& kernel) {
  WholeRun run;
  for (const GpuTrace::Total& total : trace.totals) {
    if (total.shape != kernel.shape && trace.shapes[total.shape] != trace.shapes[kernel.shape]) continue;
    run.calls += total.count;
    run.seconds += static_cast<double>(total.sum_ns) * 1e-9;
  }
  // A program that was killed has no totals of its last seconds.
  run.calls = std::max(run.calls, static_cast<std::int64_t>(kernel.ops.size()));
  run.seconds = std::max(run.seconds, kernel.seconds);
  return run;
}

}  // namespace fulcrum::report
