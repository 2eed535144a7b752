// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Blocks whose threads are no multiple of a warp: lanes of the last warp never work. Of w warps the last one wastes
// (1 - lanes / 32) / w of the time.
#include <fmt/format.h>

#include <cmath>

#include "diagnose/gain.h"

namespace fulcrum::diagnose {
namespace {

constexpr std::string_view kId = "ragged_block";
constexpr double kWarp = 32;

double wasted(const LaunchShape& shape) {
  const double threads = shape.threads(), warps = std::ceil(threads / kWarp);
  return threads < 1 ? 0 : 1 - threads / (warps * kWarp);
}

Looked look(const Facts& facts) {
  Looked looked;
  if ((looked.not_checked = needs_kernels(facts, kId))) return looked;
  const auto ragged = [&](const Timeline::Kernel& kernel) { return wasted(shape_of(facts, kernel)) > 0; };
  for (const Group& group : groups(facts, ragged)) {
    const double threads = shape_of(facts, group.first()).threads(), warps = std::ceil(threads / kWarp);
    Change change;
    for (const auto* one : group.kernels) shorten(facts, change, one->ops, 1 - wasted(shape_of(facts, *one)));
    Finding finding{.claim = fmt::format(
                        "{} launches blocks of {:.0f} thread{}: {:.0f} of their {:.0f} lanes never work",
                        group.name, threads, threads == 1 ? "" : "s", warps * kWarp - threads, warps * kWarp),
                    .evidence = {launches_text(facts, group)},
                    .next_step = fmt::format(
                        "use a multiple of 32 threads, such as {:.0f}, and test the index inside the kernel",
                        threads < 128 ? 128 : warps * kWarp),
                    .grade = Evidence::bounded,
                    .subject = group.name,
                    .ops = some(group.ops)};
    add_gain(finding, simulate_up_to(facts, std::move(change)));
    looked.findings.push_back(std::move(finding));
  }
  return looked;
}

}  // namespace

Rule ragged_block() {
  return Rule{.id = kId,
              .looks_for = "blocks whose threads are no multiple of 32",
              .needs = "activity records",
              .look = look};
}

}  // namespace fulcrum::diagnose
