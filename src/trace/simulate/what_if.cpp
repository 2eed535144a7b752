// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// What changes would save: the event graph is built once, and every question is one pass over it.
#include <fulcrum/trace.h>

#include <memory>

#include "trace/simulate/graph.h"

namespace fulcrum::trace {

WhatIf what_if(const GpuTrace& trace, const Timeline& timeline) {
  if (!timeline.simulated) return {};
  const auto graph = std::make_shared<const Graph>(Joined(trace), timeline);
  const double unchanged = simulate(*graph, Change{});
  return [graph, unchanged, seconds = timeline.seconds](const Change& change) {
    const double saved = unchanged - simulate(*graph, change);
    return Saved{saved, seconds > 0 ? saved / seconds : 0};
  };
}

}  // namespace fulcrum::trace
