// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// What the trace lost or could not see, as far as it bears on the findings: drops, records without time stamps, clocks
// that disagree, refused kinds, graphs without nodes, processes that another profiler held, a simulation that does not
// match.
#include <fmt/format.h>

#include <algorithm>

#include "diagnose/frame.h"
#include "diagnose/gain.h"

namespace fulcrum::diagnose {
namespace {

constexpr std::string_view kId = "integrity";
constexpr double kMostGraphTime = 0.05;  // share of the timeline in graphs whose nodes were not seen

// Kinds that no finding rests on: clocks come from NVML.
bool matters(std::string_view refused) { return !refused.starts_with("ENVIRONMENT"); }

double graph_share(const Facts& facts) {
  double ns = 0;
  for (const GpuTrace::Op& op : facts.trace.ops) {
    if (op.kind == GpuOpKind::graph) ns += double(op.duration_ns());
  }
  return facts.timeline.seconds > 0 ? std::min(1.0, ns * 1e-9 / facts.timeline.seconds) : 0;
}

std::vector<std::string> problems(const Facts& facts) {
  std::vector<std::string> out = doubts(facts);
  for (const GpuTrace::Process& process : facts.trace.processes) {
    if (!process.profiler.empty()) {
      out.push_back(fmt::format("process {} was not traced: {} held the profiling interface", process.pid,
                                process.profiler));
    }
    for (const std::string& kind : process.refused) {
      if (matters(kind)) out.push_back(fmt::format("records of kind {} were refused", kind));
    }
  }
  if (const double share = graph_share(facts); share > kMostGraphTime) {
    out.push_back(fmt::format("{} of the time is graphs whose kernels were not seen", percent(share)));
  }
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

Looked look(const Facts& facts) {
  Looked looked;
  std::vector<std::string> found = problems(facts);
  if (found.empty()) return looked;
  // The one that makes findings unreliable speaks first.
  if (const auto worst = doubts(facts); !worst.empty()) {
    std::stable_partition(found.begin(), found.end(),
                          [&](const std::string& text) { return text == worst.front(); });
  }
  Finding finding{
      .claim = "The trace does not show everything: " + found.front(),
      .evidence = {found.begin() + 1, found.end()},
      .next_step =
          "trace a shorter part of the run, or with --full; findings that rest on what is missing "
          "may be wrong",
      .grade = Evidence::measured,
      .subject = "trace"};
  looked.findings.push_back(std::move(finding));
  return looked;
}

}  // namespace

Rule integrity() {
  return Rule{.id = kId,
              .looks_for = "records that were lost, refused or contradict each other",
              .needs = "activity records",
              .look = look};
}

}  // namespace fulcrum::diagnose
