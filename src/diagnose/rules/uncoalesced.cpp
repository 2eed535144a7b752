// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Global loads and stores that touch more sectors than their bytes need. The gain is the excess share of what keeps the
// second-level cache busy.
#include <fmt/format.h>

#include <algorithm>

#include "diagnose/counters.h"
#include "diagnose/gain.h"

namespace fulcrum::diagnose {
namespace {

constexpr std::string_view kId = "uncoalesced";
constexpr std::string_view kSectors = "memory_l2_theoretical_sectors_global";
constexpr std::string_view kIdeal = "memory_l2_theoretical_sectors_global_ideal";
constexpr double kLeastGain = 0.05;

double excess(const Facts& facts, const Timeline::Kernel& kernel) {
  const auto sectors = metric(facts, kernel, kSectors), ideal = metric(facts, kernel, kIdeal);
  return sectors && ideal && *sectors > 0 ? std::max(0.0, 1 - *ideal / *sectors) : 0;
}

double local_gain(const Facts& facts, const Timeline::Kernel& kernel) {
  const auto cache = metric(facts, kernel, "lts__throughput.avg.pct_of_peak_sustained_elapsed");
  const SpeedOfLight light = speed_of_light(facts, kernel);
  const double busy = cache ? *cache / 100 : light.memory;
  return std::clamp(busy, 0.0, 1.0) * excess(facts, kernel);
}

Looked look(const Facts& facts) {
  Looked looked;
  if ((looked.not_checked = needs_metrics(facts, kId, {kSectors, kIdeal}))) return looked;
  const auto fires = [&](const Timeline::Kernel& kernel) {
    const SpeedOfLight light = speed_of_light(facts, kernel);
    return light.memory >= light.compute && local_gain(facts, kernel) >= kLeastGain;
  };
  for (const Group& group : groups(facts, fires)) {
    const Timeline::Kernel& kernel = group.first();
    const double more = 1 / (1 - excess(facts, kernel));
    Finding finding{.claim = fmt::format("{} moves {:.1f} times the sectors that its loads and stores need",
                                         group.name, more),
                    .evidence = {launches_text(facts, group)},
                    .next_step =
                        "let neighbouring threads use neighbouring addresses: structure of arrays, or a tile "
                        "through shared memory",
                    .grade = Evidence::modelled,
                    .subject = group.name,
                    .ops = some(group.ops)};
    add_gain(finding, kernel_gain(facts, group.ops, 0, local_gain(facts, kernel)));
    looked.findings.push_back(std::move(finding));
  }
  return looked;
}

}  // namespace

Rule uncoalesced() {
  return Rule{.id = kId,
              .looks_for = "global memory accesses that touch more sectors than they need",
              .needs = "counters of `ncu --csv`",
              .look = look};
}

}  // namespace fulcrum::diagnose
