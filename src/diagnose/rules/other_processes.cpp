// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Other processes that use the GPU at the same time: their work is not in the trace, and ours gets slower by it. One
// that only holds memory does no harm: where utilisation is known it must be more than what the trace explains.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "diagnose/gain.h"

namespace fulcrum::diagnose {
namespace {

constexpr std::string_view kId = "other_processes";
constexpr double kLeastShare = 0.5;        // of the samples
constexpr double kUnexplainedBusy = 0.25;  // utilisation above what our ops explain

bool ours(const Facts& facts, std::int64_t pid) {
  const auto& all = facts.trace.processes;
  return std::any_of(all.begin(), all.end(), [&](const auto& process) { return process.pid == pid; });
}

Looked look(const Facts& facts) {
  Looked looked;
  if (facts.trace.clocks.empty()) {
    looked.not_checked =
        not_checked(kId, "nobody looked who else uses the GPU", "NVML must be there: `fulcrum doctor` looks");
    return looked;
  }
  for (const GpuTrace::Device& device : facts.trace.devices) {
    std::set<std::int64_t> pids;
    double samples = 0, with_others = 0, utilisation = 0, known = 0;
    for (const GpuTrace::Clock& clock : facts.trace.clocks) {
      if (clock.device != device.id) continue;
      ++samples;
      bool found = false;
      for (const std::int64_t pid : clock.others) {
        if (!ours(facts, pid)) pids.insert(pid), found = true;
      }
      with_others += found ? 1 : 0;
      if (clock.utilisation >= 0) utilisation += clock.utilisation, ++known;
    }
    if (with_others == 0 || with_others < kLeastShare * samples) continue;
    double busy = 0;
    for (const Timeline::Device& one : facts.timeline.devices) {
      if (one.id == device.id && facts.timeline.seconds > 0) busy = one.busy_seconds / facts.timeline.seconds;
    }
    if (known > 0 && utilisation / known < busy + kUnexplainedBusy) continue;
    std::string list;
    for (const std::int64_t pid : pids) list += fmt::format("{}{}", list.empty() ? "" : ", ", pid);
    Finding finding{
        .claim = fmt::format("{} other process{} use{} GPU {} while this one runs", pids.size(),
                             pids.size() == 1 ? "" : "es", pids.size() == 1 ? "s" : "", device.id),
        .evidence = {fmt::format("process {}, in {} of {:.0f} samples", list, percent(with_others / samples),
                                 samples)},
        .next_step = "run alone before measuring, or give each its own GPU",
        .grade = Evidence::measured,
        .verify = "nvidia-smi",
        .subject = fmt::format("GPU {}", device.id)};
    if (known > 0) {
      finding.evidence.push_back(fmt::format("utilisation {}, of which this program explains {}",
                                             percent(utilisation / known), percent(busy)));
    }
    looked.findings.push_back(std::move(finding));
  }
  return looked;
}

}  // namespace

Rule other_processes() {
  return Rule{.id = kId,
              .looks_for = "other processes that use the GPU at the same time",
              .needs = "clocks (NVML)",
              .look = look};
}

}  // namespace fulcrum::diagnose
