// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Kernels whose warps are active far less than would fit: blocks of unequal length, or launches that end in a thin wave.
// Samples of active warps disagree with ncu's counter, so only that one counts. The gain is (theoretical - achieved) / theoretical, and never more than what the busiest unit leaves.
#include <fmt/format.h>

#include <algorithm>

#include "diagnose/counters.h"
#include "diagnose/gain.h"

namespace fulcrum::diagnose {
namespace {

constexpr std::string_view kId = "occupancy_gap";
constexpr double kLeastPoints = 0.1;

// What the issue slots or the busiest unit leave of the time.
double left(const Facts& facts, const Timeline::Kernel& kernel) {
  const double issue = issue_rate(facts, kernel), busy = speed_of_light(facts, kernel).larger();
  return 1 - std::max({0.0, issue, busy});
}

double local_gain(const Facts& facts, const Timeline::Kernel& kernel) {
  const double theory = shape_of(facts, kernel).occupancy, achieved = achieved_occupancy(facts, kernel);
  return std::min((theory - achieved) / theory, left(facts, kernel));
}

Looked look(const Facts& facts) {
  Looked looked;
  if ((looked.not_checked = needs_metrics(facts, kId, {kActiveWarps}))) return looked;
  const auto has_gap = [&](const Timeline::Kernel& kernel) {
    const double theory = shape_of(facts, kernel).occupancy, achieved = achieved_occupancy(facts, kernel);
    // Below one wave the grid explains it.
    return theory > 0 && achieved >= 0 && theory - achieved > kLeastPoints && kernel.waves >= 1 &&
           !kernel.persistent && !kernel.tensor;
  };
  for (const Group& group : groups(facts, has_gap)) {
    const Timeline::Kernel& kernel = group.first();
    Finding finding{.claim = fmt::format("{} keeps {} of an SM's warps active where {} would fit", group.name,
                                         percent(achieved_occupancy(facts, kernel)),
                                         percent(shape_of(facts, kernel).occupancy)),
                    .evidence = {fmt::format("{:.1f} waves; {}", kernel.waves, launches_text(facts, group))},
                    .next_step = "blocks of equal length: smaller ones, or work handed out as they finish",
                    .grade = Evidence::modelled,
                    .subject = group.name,
                    .ops = some(group.ops)};
    add_gain(finding, kernel_gain(facts, group.ops, 0, local_gain(facts, kernel)));
    looked.findings.push_back(std::move(finding));
  }
  return looked;
}

}  // namespace

Rule occupancy_gap() {
  return Rule{.id = kId,
              .looks_for = "kernels whose active warps stay far below what fits",
              .needs = "counters of `ncu --csv`",
              .look = look};
}

}  // namespace fulcrum::diagnose
