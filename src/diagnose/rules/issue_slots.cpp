// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Kernels whose schedulers issue in few of their cycles, without one reason that dominates: min(1 - issue, 1 - busiest
// unit). Where one reason dominates, rule warp_stall names it.
#include <fmt/format.h>

#include "diagnose/counters.h"
#include "diagnose/gain.h"
#include "diagnose/stalls.h"

namespace fulcrum::diagnose {
namespace {

constexpr std::string_view kId = "issue_slots";
constexpr double kLeastIssue = 0.6;

Looked look(const Facts& facts) {
  Looked looked;
  if ((looked.not_checked = needs_metrics(facts, kId, {"smsp__issue_active.avg.per_cycle_active"})))
    return looked;
  const auto fires = [&](const Timeline::Kernel& kernel) {
    const double issue = issue_rate(facts, kernel);
    const auto stall = worst_stall(facts, kernel);
    return issue >= 0 && issue < kLeastIssue && !(stall && stall->share > kLeastStall);
  };
  for (const Group& group : groups(facts, fires)) {
    const Timeline::Kernel& kernel = group.first();
    Finding finding{.claim = fmt::format("{} issues an instruction in {} of its cycles", group.name,
                                         percent(issue_rate(facts, kernel))),
                    .evidence = {launches_text(facts, group)},
                    .next_step = "more warps, or more independent instructions in each",
                    .grade = Evidence::modelled,
                    .subject = group.name,
                    .ops = some(group.ops)};
    add_gain(finding, kernel_gain(facts, group.ops, 0, issue_gain(facts, kernel)));
    looked.findings.push_back(std::move(finding));
  }
  return looked;
}

}  // namespace

Rule issue_slots() {
  return Rule{.id = kId,
              .looks_for = "kernels whose schedulers issue in few of their cycles",
              .needs = "counters of `ncu --csv`",
              .look = look};
}

}  // namespace fulcrum::diagnose
