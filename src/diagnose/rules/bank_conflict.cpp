// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Accesses to shared memory that are served one bank after the other: conflicts as a share of all wavefronts, times how
// busy the first-level cache is.
#include <fmt/format.h>

#include <algorithm>

#include "diagnose/counters.h"
#include "diagnose/gain.h"

namespace fulcrum::diagnose {
namespace {

constexpr std::string_view kId = "bank_conflict";
constexpr std::string_view kConflicts = "l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum";
constexpr std::string_view kWavefronts = "l1tex__data_pipe_lsu_wavefronts_mem_shared.sum";
constexpr double kLeastShare = 0.1;

double conflicts(const Facts& facts, const Timeline::Kernel& kernel) {
  const auto count = metric(facts, kernel, kConflicts), all = metric(facts, kernel, kWavefronts);
  return count && all && *all > 0 ? std::clamp(*count / *all, 0.0, 1.0) : 0;
}

double cache_busy(const Facts& facts, const Timeline::Kernel& kernel) {
  const auto busy = metric(facts, kernel, "l1tex__throughput.avg.pct_of_peak_sustained_active");
  return busy ? std::clamp(*busy / 100, 0.0, 1.0) : std::max(0.0, speed_of_light(facts, kernel).larger());
}

Looked look(const Facts& facts) {
  Looked looked;
  if ((looked.not_checked = needs_metrics(facts, kId, {kConflicts, kWavefronts}))) return looked;
  const auto fires = [&](const Timeline::Kernel& kernel) { return conflicts(facts, kernel) >= kLeastShare; };
  for (const Group& group : groups(facts, fires)) {
    const Timeline::Kernel& kernel = group.first();
    const double share = conflicts(facts, kernel), busy = cache_busy(facts, kernel);
    Finding finding{
        .claim =
            fmt::format("{} of {}'s trips to shared memory are bank conflicts", percent(share), group.name),
        .evidence = {fmt::format("first-level cache busy {}; {}", percent(busy),
                                 launches_text(facts, group))},
        .next_step = "pad rows by one element, or swizzle the index so that a warp's lanes use 32 banks",
        .grade = Evidence::modelled,
        .subject = group.name,
        .ops = some(group.ops)};
    add_gain(finding, kernel_gain(facts, group.ops, 0, share * busy));
    looked.findings.push_back(std::move(finding));
  }
  return looked;
}

}  // namespace

Rule bank_conflict() {
  return Rule{.id = kId,
              .looks_for = "bank conflicts in shared memory",
              .needs = "counters of `ncu --csv`",
              .look = look};
}

}  // namespace fulcrum::diagnose
