// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// A host that asks the GPU over and over whether it is done. It costs a CPU core and the driver's locks, and no time of
// the GPU that could be simulated: a note without a gain.
#include <fmt/format.h>

#include "diagnose/idle.h"

namespace fulcrum::diagnose {
namespace {

constexpr double kLeastAStep = 100, kLeastShare = 0.1;

Looked look(const Facts& facts) {
  if (auto missing = needs_calls(facts, "query_storm")) return {{}, std::move(missing)};
  double count = 0, seconds = 0;
  std::vector<std::uint32_t> calls;
  for (std::uint32_t i = 0; i < facts.trace.calls.size(); ++i) {
    const GpuTrace::Call& call = facts.trace.calls[i];
    if (call.kind != CallKind::query || !is_steady(facts, call.begin_ns)) continue;
    count += 1;
    seconds += double(call.end_ns - call.begin_ns) * 1e-9;
    if (calls.size() < 8) calls.push_back(i);
  }
  if (count < kLeastAStep * steps(facts) || seconds < kLeastShare * facts.timeline.seconds) return {};
  Finding finding;
  finding.subject = "host";
  finding.claim = fmt::format("The host polls the GPU: {}", count_text(facts, count, "queries"));
  finding.evidence.push_back(
      fmt::format("{} in cudaStreamQuery and cudaEventQuery", time_text(facts, seconds)));
  finding.next_step = "wait with cudaEventSynchronize on an event made with cudaEventBlockingSync";
  finding.calls = std::move(calls);
  return {{std::move(finding)}, {}};
}

}  // namespace

Rule query_storm() {
  return Rule{
      .id = "query_storm", .looks_for = "a host that polls the GPU", .needs = "API records", .look = look};
}

}  // namespace fulcrum::diagnose
