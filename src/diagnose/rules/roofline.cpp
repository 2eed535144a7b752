// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Kernels that memory limits and that stay below its roof: T - bytes / rate. The roof is the rate that this card was
// measured to reach; without a measurement the share of the nominal rate that well-made kernels reach stands in.
#include <fmt/format.h>

#include <algorithm>

#include "diagnose/counters.h"
#include "diagnose/gain.h"

namespace fulcrum::diagnose {
namespace {

constexpr std::string_view kId = "roofline";
constexpr double kMemorySide = 0.3;
constexpr double kLeastGap = 0.2;     // to the floor, of the kernel's time
constexpr double kAssumedRoof = 0.9;  // of the nominal rate
constexpr double kModest = 0.75;      // of the roof: what a change reaches at least

double roof_share(const Facts& facts, const Timeline::Kernel& kernel) {
  const GpuTrace::Device* device = device_of(facts, kernel);
  const double nominal = device == nullptr ? 0 : device->memory_bytes_per_second;
  if (facts.roofs.dram_bytes_per_second <= 0 || nominal <= 0) return kAssumedRoof;
  return std::clamp(facts.roofs.dram_bytes_per_second / nominal, 0.1, 1.0);
}

double gap(const Facts& facts, const Timeline::Kernel& kernel, double reached) {
  const double memory = speed_of_light(facts, kernel).memory;
  return std::max(0.0, 1 - memory / (roof_share(facts, kernel) * reached));
}

Looked look(const Facts& facts) {
  Looked looked;
  if ((looked.not_checked = needs_counters(facts, kId))) return looked;
  const auto below = [&](const Timeline::Kernel& kernel) {
    const SpeedOfLight light = speed_of_light(facts, kernel);
    return light.known() && light.memory >= kMemorySide && light.memory >= light.compute && !kernel.tensor &&
           gap(facts, kernel, 1) >= kLeastGap;
  };
  for (const Group& group : groups(facts, below)) {
    const Timeline::Kernel& kernel = group.first();
    const SpeedOfLight light = speed_of_light(facts, kernel);
    Finding finding{
        .claim = fmt::format("{} is limited by memory and reaches {} of its peak; {} can be had", group.name,
                             percent(light.memory), percent(roof_share(facts, kernel))),
        .evidence = {fmt::format("SMs at {}; {}", percent(light.compute), launches_text(facts, group)),
                     "roof: " + (facts.roofs.dram_bytes_per_second > 0 && !facts.roofs.from.empty()
                                     ? facts.roofs.from
                                     : "assumed; `fulcrum machine --measure` measures it")},
        .next_step =
            "16-byte loads, neighbouring threads on neighbouring addresses, more loads in flight; or fewer "
            "bytes: "
            "fuse it with the kernel before or after",
        .grade = Evidence::modelled,
        .subject = group.name,
        .ops = some(group.ops)};
    add_gain(finding, kernel_gain(facts, group.ops, gap(facts, kernel, kModest), gap(facts, kernel, 1)));
    looked.findings.push_back(std::move(finding));
  }
  return looked;
}

}  // namespace

Rule roofline() {
  return Rule{.id = kId,
              .looks_for = "memory-bound kernels that stay below the rate that this GPU's memory reaches",
              .needs = "counters",
              .look = look};
}

}  // namespace fulcrum::diagnose
