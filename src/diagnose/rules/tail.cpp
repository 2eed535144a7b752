// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Kernels whose last wave of blocks fills little of the GPU. At w waves the time is that of ceil(w), so the last one
// wastes T (ceil(w) - w) / ceil(w): 45 % at 1.1 waves, 5 % at 1.9. That is the bound, of blocks that take as long alone
// as beside others. Most do not: an SM that has enough warps left works at its full rate, so the finding also needs the
// last wave to take long in that light.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "diagnose/gain.h"

namespace fulcrum::diagnose {
namespace {

constexpr std::string_view kId = "tail";
constexpr double kLeastGain = 0.2;   // of the kernel's time
constexpr double kLeastShare = 0.1;  // of the timeline: who changes the shape of a kernel that matters less
constexpr double kLeastNs = 10'000;  // below, starting and draining the blocks is what a kernel does
constexpr double kMostBeside = 0.5;  // others fill the last wave

// Warps that keep an SM at its full rate: four for each of its schedulers.
constexpr double kFillingWarps = 16;

double warps_of(const LaunchShape& shape) { return std::ceil(shape.threads() / 32); }

double wasted_by_last_wave(double waves) {
  const double whole = std::floor(waves + 1e-9);
  if (whole < 1 || waves - whole < 1e-9) return 0;
  return (whole + 1 - waves) / (whole + 1);
}

// All blocks run at once, but some SMs have one more than others, and a block alone keeps an SM busy: then the time is
// that of the SMs with one more.
double wasted_by_uneven(const LaunchShape& shape, int sms, double waves) {
  const double each = shape.blocks() / sms;
  if (waves > 1 - 1e-9 || each <= 1 || warps_of(shape) < kFillingWarps) return 0;
  return 1 - each / std::ceil(each - 1e-9);
}

// Memory that is busy stays busy with fewer blocks: the last wave then costs its bytes and no more.
double gain_of(const Facts& facts, const Timeline::Kernel& kernel) {
  const GpuTrace::Device* device = device_of(facts, kernel);
  if (device == nullptr || device->sms <= 0) return 0;
  const double wasted = std::max(wasted_by_last_wave(kernel.waves),
                                 wasted_by_uneven(shape_of(facts, kernel), device->sms, kernel.waves));
  return std::min(wasted, 1 - std::max({0.0, kernel.dram_share, kernel.tensor_share}));
}

// Time of the last wave, of that of a full one: an SM that keeps some of its blocks finishes them sooner, unless too few
// warps are left to hide each other's latencies.
double last_wave(const GpuTrace::Device& device, const LaunchShape& shape, double waves) {
  const double slots = double(device.sms) * shape.blocks_per_sm;
  const double left = (waves - std::floor(waves + 1e-9)) * slots;
  const double on_one = std::ceil(left / device.sms - 1e-9);
  const double rate = std::min(1.0, on_one * warps_of(shape) / kFillingWarps);
  return rate <= 0 ? 1 : std::min(1.0, on_one / shape.blocks_per_sm / rate);
}

bool wastes_sms(const Facts& facts, const Timeline::Kernel& kernel) {
  const GpuTrace::Device* device = device_of(facts, kernel);
  const LaunchShape& shape = shape_of(facts, kernel);
  if (device == nullptr || device->sms <= 0 || shape.blocks_per_sm <= 0) return false;
  const double taken = std::floor(kernel.waves + 1e-9) + last_wave(*device, shape, kernel.waves);
  return taken > 0 && 1 - kernel.waves / taken >= kLeastGain - 1e-9;
}

bool has_tail(const Facts& facts, const Timeline::Kernel& kernel) {
  return !kernel.persistent && wastes_sms(facts, kernel) && kernel.median_ns >= kLeastNs &&
         gain_of(facts, kernel) >= kLeastGain - 1e-9 && beside_others(facts, kernel) < kMostBeside;
}

std::string claim_of(const Group& group, const LaunchShape& shape, double waves, int sms) {
  const double whole = std::floor(waves + 1e-9);
  if (whole >= 1) {
    return fmt::format("{} runs {:.1f} waves of blocks, and the last one is {} empty", group.name, waves,
                       percent(1 - (waves - whole)));
  }
  const double most = std::ceil(shape.blocks() / sms - 1e-9);
  return fmt::format("{} gives some SMs {:.0f} blocks and others {:.0f}: {:.0f} blocks on {} SMs", group.name,
                     most, most - 1, shape.blocks(), sms);
}

Looked look(const Facts& facts) {
  Looked looked;
  if ((looked.not_checked = needs_kernels(facts, kId))) return looked;
  const auto& kernels = facts.timeline.kernels;
  if (std::none_of(kernels.begin(), kernels.end(),
                   [&](const auto& k) { return shape_of(facts, k).blocks_per_sm > 0; })) {
    looked.not_checked =
        not_checked(kId, "how many blocks fit an SM is not in the trace", "trace with fulcrum itself");
    return looked;
  }
  for (const Group& group : groups(facts, [&](const auto& kernel) { return has_tail(facts, kernel); })) {
    if (group.share < kLeastShare) continue;
    const Timeline::Kernel& kernel = group.first();
    const LaunchShape& shape = shape_of(facts, kernel);
    const int sms = device_of(facts, kernel)->sms;
    // A wave, or a block an SM where all run at once.
    const double wave = kernel.waves >= 1 ? shape.blocks() / kernel.waves : sms;
    const double whole = std::floor(shape.blocks() / wave + 1e-9);
    Change change;
    for (const auto* one : group.kernels) shorten(facts, change, one->ops, 1 - gain_of(facts, *one));
    Finding finding{.claim = claim_of(group, shape, kernel.waves, sms),
                    .evidence = {fmt::format("{:.0f} blocks, {} at once an SM; {}", shape.blocks(),
                                             shape.blocks_per_sm, launches_text(facts, group))},
                    .next_step = fmt::format(
                        "change the tile or block size so that about {:.0f} or {:.0f} blocks do the work, or "
                        "many small ones, or let {:.0f} blocks loop over it; equal blocks are assumed",
                        whole * wave, (whole + 1) * wave, whole * wave),
                    .grade = Evidence::bounded,
                    .subject = group.name,
                    .ops = some(group.ops)};
    add_gain(finding, simulate_up_to(facts, std::move(change)));
    looked.findings.push_back(std::move(finding));
  }
  return looked;
}

}  // namespace

Rule tail() {
  return Rule{.id = kId,
              .looks_for = "kernels whose last wave of blocks leaves much of the GPU empty",
              .needs = "activity records",
              .look = look};
}

}  // namespace fulcrum::diagnose
