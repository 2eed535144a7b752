// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// What changes would save: the event graph is built once, and every question is one pass over it. Runs are compared
// without what tracing added to launches, since nobody traces the run that is to become faster.
#include <fulcrum/trace.h>

#include <memory>

#include "trace/simulate/graph.h"

namespace fulcrum::trace {

WhatIf what_if(const GpuTrace& trace, const Timeline& timeline) {
  if (!timeline.simulated) return {};
  const auto graph = std::make_shared<const Graph>(Joined(trace), timeline);
  const auto tracing_ns = std::int64_t(timeline.tracing_per_launch.seconds * 1e9);
  const double unchanged = simulate(*graph, Change{}, tracing_ns);
  return [graph, tracing_ns, unchanged, seconds = timeline.seconds](const Change& change) {
    const double saved = unchanged - simulate(*graph, change, tracing_ns);
    const double share = unchanged > 0 ? saved / unchanged : 0;
    return tracing_ns ? Saved{share * seconds, share} : Saved{saved, seconds > 0 ? saved / seconds : 0};
  };
}

}  // namespace fulcrum::trace
