// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// What a program should do once and does in its loop: graphs that are instantiated again in every step, modules that are
// loaded again. Simulated with these calls gone; at the low end something is left, as the update of a graph.
#include <fmt/format.h>

#include <algorithm>

#include "diagnose/idle.h"

namespace fulcrum::diagnose {
namespace {

constexpr double kLeastSteps = 0.25;  // steps with such a call, of all: fewer are growth or warm-up
constexpr std::size_t kLeastCalls = 3;
constexpr double kSurelyGone = 0.8;  // of what is lost

bool is_setup(CallKind kind) { return kind == CallKind::graph_instantiate || kind == CallKind::module_load; }

struct Setup {
  Change gone;
  double seconds = 0;  // in the calls
  std::size_t graphs = 0;
  std::vector<std::uint32_t> calls;
};

Setup setup_of(const Facts& facts, const Joined& joined) {
  Setup found;
  for (std::uint32_t i = 0; i < facts.trace.calls.size(); ++i) {
    const GpuTrace::Call& call = facts.trace.calls[i];
    if (!is_setup(joined.kind[i]) || !is_steady(facts, call.begin_ns) || !joined.outermost(i)) continue;
    found.seconds += double(call.end_ns - call.begin_ns) * 1e-9;
    found.graphs += joined.kind[i] == CallKind::graph_instantiate;
    found.gone.call_ns[i] = 0;
    found.calls.push_back(i);
  }
  return found;
}

Looked look(const Facts& facts) {
  if (auto missing = needs_simulation(facts, "setup_in_loop")) return {{}, std::move(missing)};
  const Joined joined(facts);
  Setup found = setup_of(facts, joined);
  if (found.calls.size() < kLeastCalls || !has_steps(facts)) return {};
  if (double(found.calls.size()) < kLeastSteps * steps(facts)) return {};
  double lost = 0;
  for (const Timeline::Gap& gap : facts.timeline.gaps) {
    if (gap.steady && gap.cause == GapCause::module_load) lost += double(gap.end_ns - gap.begin_ns) * 1e-9;
  }
  const double all = facts.timeline.seconds, high = std::min(lost, saved_seconds(facts, found.gone));
  if (high < facts.threshold * all) return {};

  const bool graphs = 2 * found.graphs > found.calls.size();
  Finding finding;
  finding.subject = graphs ? "graphs" : "modules";
  finding.grade = Evidence::measured;
  finding.claim = fmt::format("{} every step: the GPU idles {} of the time for it",
                              graphs ? "A graph is instantiated" : "Code is loaded", percent(lost / all));
  finding.evidence.push_back(fmt::format("{}, {} in these calls",
                                         count_text(facts, double(found.calls.size()), "calls"),
                                         time_text(facts, found.seconds)));
  finding.next_step = graphs ? "instantiate the graph once and launch it again; where its parameters change, "
                               "update it (cudaGraphExecUpdate)"
                             : "load modules once before the loop and keep them";
  finding.verify = verify_by_difference();
  finding.calls = some(found.calls);
  add_gain(finding,
           range(facts, kSurelyGone * high, high, double(found.calls.size()), std::move(found.gone)));
  return {{std::move(finding)}, {}};
}

}  // namespace

Rule setup_in_loop() {
  return Rule{.id = "setup_in_loop",
              .looks_for = "graphs instantiated or code loaded in every step",
              .needs = "API records",
              .look = look};
}

}  // namespace fulcrum::diagnose
