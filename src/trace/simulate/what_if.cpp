// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// What changes would save: the event graph is built once, and every question is one pass over it. Runs are compared
// without what tracing added to launches, since nobody traces the run that is to become faster.
#include <fulcrum/trace.h>

#include <memory>

#include "trace/simulate/graph.h"

namespace fulcrum::trace {

namespace {

/// What the timeline has beside its ops: the ends of its spans, less what was loaded once among them.
double beside_ops(const Joined& joined, const Timeline& timeline, const Graph& graph) {
  double seconds =
      seconds_of(clipped(joined.windows, timeline.begin_ns, timeline.end_ns)) - observed_seconds(graph);
  for (const auto& gap : timeline.gaps) {
    const bool inside = gap.begin_ns >= timeline.begin_ns && gap.end_ns <= timeline.end_ns;
    if (inside && !gap.steady) seconds -= double(gap.end_ns - gap.begin_ns) * 1e-9;
  }
  return seconds;
}

}  // namespace

WhatIf what_if(const GpuTrace& trace, const Timeline& timeline) {
  if (!timeline.simulated) return {};
  const Joined joined(trace);
  const auto graph = std::make_shared<const Graph>(joined, timeline);
  const double unchanged = simulate(*graph, Change{}, true), seconds = timeline.seconds;
  const bool traced = simulate(*graph, Change{}) != unchanged;
  const double untraced = traced ? unchanged + beside_ops(joined, timeline, *graph) : seconds;
  return [graph, unchanged, seconds, traced, untraced](const Change& change) {
    const double saved = unchanged - simulate(*graph, change, true);
    const double share = untraced > 0 ? saved / untraced : 0;
    return Saved{traced ? share * seconds : saved, share};
  };
}

}  // namespace fulcrum::trace
