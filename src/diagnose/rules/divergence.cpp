// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Warps that run with few of their 32 lanes: branches that neighbours take differently. The gain is the idle lanes' share
// of what keeps the SMs busy.
#include <fmt/format.h>

#include <algorithm>

#include "diagnose/counters.h"
#include "diagnose/gain.h"

namespace fulcrum::diagnose {
namespace {

constexpr std::string_view kId = "divergence";
constexpr std::string_view kLanes = "smsp__thread_inst_executed_per_inst_executed.ratio";
constexpr double kWarp = 32, kLeastLanes = 24;

Looked look(const Facts& facts) {
  Looked looked;
  if ((looked.not_checked = needs_metrics(facts, kId, {kLanes}))) return looked;
  const auto fires = [&](const Timeline::Kernel& kernel) {
    const auto lanes = metric(facts, kernel, kLanes);
    return lanes && *lanes > 0 && *lanes < kLeastLanes;
  };
  for (const Group& group : groups(facts, fires)) {
    const Timeline::Kernel& kernel = group.first();
    const double lanes = *metric(facts, kernel, kLanes);
    const double busy = std::max(0.0, speed_of_light(facts, kernel).compute);
    Finding finding{
        .claim = fmt::format("{} runs with {:.1f} of 32 lanes on average", group.name, lanes),
        .evidence = {fmt::format("SMs at {}; {}", percent(busy), launches_text(facts, group))},
        .next_step = "sort or bin the work so that neighbours take the same branch, or make both sides one",
        .grade = Evidence::modelled,
        .subject = group.name,
        .ops = some(group.ops)};
    add_gain(finding, kernel_gain(facts, group.ops, 0, (1 - lanes / kWarp) * busy));
    looked.findings.push_back(std::move(finding));
  }
  return looked;
}

}  // namespace

Rule divergence() {
  return Rule{.id = kId,
              .looks_for = "warps in which few lanes work",
              .needs = "counters of `ncu --csv`",
              .look = look};
}

}  // namespace fulcrum::diagnose
