// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Kernels in which neither memory nor SMs are busy: they wait for latencies. That is text without a gain; where memory is
// the busier of the two by far, rule roofline has the number.
#include <fmt/format.h>

#include "diagnose/counters.h"
#include "diagnose/gain.h"

namespace fulcrum::diagnose {
namespace {

constexpr std::string_view kId = "sol";
constexpr double kBusy = 0.6;
constexpr double kMemorySide = 0.3;  // rule roofline speaks from here on
constexpr double kLeastShare = 0.1;  // of the timeline

Looked look(const Facts& facts) {
  Looked looked;
  if ((looked.not_checked = needs_counters(facts, kId))) return looked;
  const auto waits = [&](const Timeline::Kernel& kernel) {
    const SpeedOfLight light = speed_of_light(facts, kernel);
    const bool memory_side = light.memory >= kMemorySide && light.memory >= light.compute;
    return light.known() && light.larger() < kBusy && !memory_side && kernel.median_ns > kDurationFloorNs;
  };
  for (const Group& group : groups(facts, waits)) {
    if (group.share < kLeastShare) continue;
    const SpeedOfLight light = speed_of_light(facts, group.first());
    looked.findings.push_back(
        {.claim = fmt::format("{} keeps neither {} ({}) nor SMs ({}) busy: it waits for latencies{}",
                              group.name, light.dram_alone ? "DRAM" : "memory", percent(light.memory),
                              percent(light.compute), light.dram_alone ? " or for caches" : ""),
         .evidence = {launches_text(facts, group)},
         .next_step = "more independent work in flight: more warps, several elements a thread, loads before "
                      "they are needed",
         .grade = Evidence::modelled,
         .subject = group.name,
         .ops = some(group.ops)});
  }
  return looked;
}

}  // namespace

Rule sol() {
  return Rule{.id = kId,
              .looks_for = "kernels in which neither memory nor SMs reach 60 % of their peak",
              .needs = "counters",
              .look = look};
}

}  // namespace fulcrum::diagnose
