// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Kernels of which fewer warps fit an SM than it holds, and what limits them. Few warps cost nothing as long as the SM
// has something to issue: a gain is quoted only where counters show that neither memory nor SMs are busy, and without
// counters the finding waits for them, unless hardly any warp fits in a kernel that matters: that is a note.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "diagnose/counters.h"
#include "diagnose/gain.h"

namespace fulcrum::diagnose {
namespace {

constexpr std::string_view kId = "low_occupancy";
constexpr double kLowOccupancy = 0.8, kBusy = 0.6;
constexpr double kVeryLow = 0.25, kMostOfTheTime = 0.3;  // then it is said even though nobody knows
// Two warps a scheduler hide next to nothing; half of what fits hides what there is to hide.
constexpr double kHidesNothing = 0.125, kHidesEnough = 0.5;
constexpr double kNextToNone = 0.0625;  // one warp a scheduler
constexpr double kManyWaves = 2;
constexpr int kTileRegisters = 64;   // a thread's, that hold part of a tile
constexpr double kLeastShare = 0.1;  // of the timeline, for kernels of which nobody knows whether it matters

// Matrix products and attention keep their tiles in registers and need few warps.
bool is_product(const LaunchShape& shape) {
  static constexpr std::array<std::string_view, 8> kNames{"gemm", "Gemm",   "conv", "cudnn",
                                                          "mma",  "matmul", "attn", "attention"};
  return shape.registers >= kTileRegisters &&
         std::any_of(kNames.begin(), kNames.end(),
                     [&](std::string_view part) { return shape.name.find(part) != std::string::npos; });
}

// One block an SM has its data there on purpose, unless it is a few warps that keep little in their registers while
// many more blocks wait for their turn.
bool is_one_by_design(const Timeline::Kernel& kernel, const LaunchShape& shape) {
  return shape.blocks_per_sm <= 1 &&
         (shape.occupancy > kNextToNone || shape.registers >= kTileRegisters || kernel.waves < kManyWaves);
}

bool is_low(const Facts& facts, const Timeline::Kernel& kernel) {
  const LaunchShape& shape = shape_of(facts, kernel);
  return shape.occupancy > 0 && shape.occupancy < kLowOccupancy && !is_one_by_design(kernel, shape) &&
         !kernel.tensor && !kernel.persistent;
}

std::string advice(const LaunchShape& shape) {
  if (shape.limiter == "registers") {
    return fmt::format(
        "{} registers a thread: __launch_bounds__ or smaller tiles free some, as long as nothing spills",
        shape.registers);
  }
  if (shape.limiter == "shared memory") {
    return fmt::format("{} of shared memory a block: smaller tiles, or more threads on the same tile",
                       human_bytes(double(shape.static_shared + shape.dynamic_shared)));
  }
  if (shape.limiter == "blocks") return "blocks are too small: more threads a block";
  return "choose a block size that divides what an SM holds";
}

void look_at(const Facts& facts, const Group& group, Looked& looked) {
  const LaunchShape& shape = shape_of(facts, group.first());
  const SpeedOfLight light = speed_of_light(facts, group.first());
  if (light.known() && light.larger() >= kBusy) return;
  Finding finding{
      .claim = fmt::format("{} fits {} of the warps that an SM holds, limited by {}", group.name,
                           percent(shape.occupancy), shape.limiter.empty() ? "its shape" : shape.limiter),
      .evidence = {launches_text(facts, group)},
      .next_step = advice(shape),
      .grade = Evidence::bounded,
      .subject = group.name,
      .ops = some(group.ops)};
  if (light.known()) {
    finding.evidence.push_back(fmt::format("memory {} and SMs {} of their peaks: it waits",
                                           percent(light.memory), percent(light.compute)));
    add_gain(finding, kernel_gain(facts, group.ops, 0,
                                  std::min(1 - shape.occupancy / kLowOccupancy, 1 - light.larger())));
  } else {
    if (group.share < kLeastShare || is_product(shape)) return;
    const bool matters = group.share >= kMostOfTheTime;
    if (matters && shape.occupancy <= kHidesNothing) {
      finding.evidence.push_back(
          fmt::format("{:.0f} warps an SM hide hardly any latency; --counters would tell what that costs",
                      shape.blocks_per_sm * std::ceil(shape.threads() / 32)));
      add_gain(finding, kernel_gain(facts, group.ops, 0, 1 - shape.occupancy / kHidesEnough));
    } else {
      finding.evidence.emplace_back("whether that costs anything only counters tell");
      if (!matters || shape.occupancy > kVeryLow) finding.blocked_by = "sol";
    }
  }
  looked.findings.push_back(std::move(finding));
}

Looked look(const Facts& facts) {
  Looked looked;
  if ((looked.not_checked = needs_kernels(facts, kId))) return looked;
  const auto& kernels = facts.timeline.kernels;
  const bool known = std::any_of(kernels.begin(), kernels.end(),
                                 [&](const auto& k) { return shape_of(facts, k).occupancy > 0; });
  if (!known) {
    looked.not_checked =
        not_checked(kId, "theoretical occupancy is not in the trace", "trace with fulcrum itself");
    return looked;
  }
  for (const Group& group : groups(facts, [&](const auto& kernel) { return is_low(facts, kernel); })) {
    look_at(facts, group, looked);
  }
  return looked;
}

}  // namespace

Rule low_occupancy() {
  return Rule{.id = kId,
              .looks_for = "kernels of which few warps fit an SM, and what limits them",
              .needs = "activity records; counters for a gain",
              .look = look};
}

}  // namespace fulcrum::diagnose
