// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// SMs that are done long before the last one: blocks of unequal work, or too few of them. Shared evenly, the kernel would
// take as long as the average SM is active.
#include <fmt/format.h>

#include <algorithm>

#include "diagnose/counters.h"
#include "diagnose/gain.h"

namespace fulcrum::diagnose {
namespace {

constexpr std::string_view kId = "imbalance";
constexpr std::string_view kAverage = "sm__cycles_active.avg", kMost = "sm__cycles_active.max",
                           kElapsed = "sm__cycles_elapsed.max";
constexpr double kLeastGain = 0.05;  // of the kernel's time

double gain_of(const Facts& facts, const Timeline::Kernel& kernel) {
  const auto average = metric(facts, kernel, kAverage), most = metric(facts, kernel, kMost),
             elapsed = metric(facts, kernel, kElapsed);
  if (!average || !most || !elapsed || *most <= 0 || *elapsed <= 0) return 0;
  return std::clamp((1 - *average / *most) * std::min(1.0, *most / *elapsed), 0.0, 1.0);
}

Looked look(const Facts& facts) {
  Looked looked;
  if ((looked.not_checked = needs_metrics(facts, kId, {kAverage, kMost, kElapsed}))) return looked;
  const auto fires = [&](const Timeline::Kernel& kernel) {
    return !kernel.persistent && gain_of(facts, kernel) >= kLeastGain - 1e-9;
  };
  for (const Group& group : groups(facts, fires)) {
    const Timeline::Kernel& kernel = group.first();
    const double average = metric(facts, kernel, kAverage).value_or(0),
                 most = metric(facts, kernel, kMost).value_or(1);
    Finding finding{
        .claim = fmt::format("{} keeps its busiest SM active for {:.2f} times as long as the average one",
                             group.name, most / std::max(average, 1.0)),
        .evidence = {fmt::format("{:.0f} blocks, {:.1f} waves; {}", shape_of(facts, kernel).blocks(),
                                 kernel.waves, launches_text(facts, group))},
        .next_step =
            "blocks of equal work, more and smaller ones, the long ones first, or a counter from which "
            "blocks "
            "fetch what is left",
        .grade = Evidence::modelled,
        .subject = group.name,
        .ops = some(group.ops)};
    add_gain(finding, kernel_gain(facts, group.ops, 0, gain_of(facts, kernel)));
    looked.findings.push_back(std::move(finding));
  }
  return looked;
}

}  // namespace

Rule imbalance() {
  return Rule{.id = kId,
              .looks_for = "SMs that are done long before the last one",
              .needs = "counters of `ncu --csv`",
              .look = look};
}

}  // namespace fulcrum::diagnose
