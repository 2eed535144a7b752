// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// What a change to a trace saves, by the simulation.
#pragma once

#include <fulcrum/trace.h>
#include <gtest/gtest.h>

#include <vector>

namespace fulcrum::test {

/// Nanoseconds; -1 and a failure where the trace cannot be simulated.
inline double saved_ns(const GpuTrace& trace, const Change& change) {
  const Timeline timeline = trace::timeline(trace);
  EXPECT_TRUE(timeline.simulated) << timeline.why_not;
  if (!timeline.simulated) return -1;
  return trace::what_if(trace, timeline)(change).seconds * 1e9;
}

inline std::vector<std::uint32_t> calls_of(const GpuTrace& trace, CallKind kind) {
  std::vector<std::uint32_t> result;
  for (std::uint32_t i = 0; i < trace.calls.size(); ++i) {
    if (trace.calls[i].kind == kind) result.push_back(i);
  }
  return result;
}

}  // namespace fulcrum::test
