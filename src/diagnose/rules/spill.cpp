// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Kernels with local memory: registers that were spilled, or arrays that the compiler could not keep in registers. What
// it costs the trace does not show, so there is no gain.
#include <fmt/format.h>

#include "diagnose/gain.h"

namespace fulcrum::diagnose {
namespace {

constexpr std::string_view kId = "spill";
constexpr double kLeastShare = 0.1;       // of the timeline
constexpr std::int64_t kLeastBytes = 16;  // below, a saved register or two around a call

Looked look(const Facts& facts) {
  Looked looked;
  if ((looked.not_checked = needs_kernels(facts, kId))) return looked;
  const auto spills = [&](const Timeline::Kernel& kernel) {
    return shape_of(facts, kernel).local_bytes >= kLeastBytes;
  };
  for (const Group& group : groups(facts, spills)) {
    if (group.share < kLeastShare) continue;
    const LaunchShape& shape = shape_of(facts, group.first());
    looked.findings.push_back(
        {.claim = fmt::format("{} keeps {} a thread in local memory", group.name,
                              human_bytes(double(shape.local_bytes))),
         .evidence = {fmt::format("{} registers a thread, {:.0f} threads a block; {}", shape.registers,
                                  shape.threads(), launches_text(facts, group)),
                      "spilled registers, or arrays whose index is not known when compiling: nvcc -Xptxas -v "
                      "says which"},
         .next_step = "fewer values alive at once, a smaller tile, unrolled loops over small arrays, or a "
                      "higher register "
                      "limit (__launch_bounds__)",
         .grade = Evidence::bounded,
         .subject = group.name,
         .ops = some(group.ops)});
  }
  return looked;
}

}  // namespace

Rule spill() {
  return Rule{.id = kId,
              .looks_for = "kernels that keep values in local memory: spills and arrays",
              .needs = "activity records",
              .look = look};
}

}  // namespace fulcrum::diagnose
