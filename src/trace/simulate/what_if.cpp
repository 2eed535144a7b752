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
  const double unchanged = simulate(*graph, Change{}, tracing_ns), seconds = timeline.seconds;
  // The timeline is longer than its ops by what lies at its ends, and shorter by one-off work among them.
  const double untraced = unchanged + seconds - observed_seconds(*graph);
  return [graph, tracing_ns, unchanged, seconds, untraced](const Change& change) {
    const double saved = unchanged - simulate(*graph, change, tracing_ns);
    if (!tracing_ns) return Saved{saved, seconds > 0 ? saved / seconds : 0};
    const double share = untraced > 0 ? saved / untraced : 0;
    return Saved{share * seconds, share};
  };
}

}  // namespace fulcrum::trace
