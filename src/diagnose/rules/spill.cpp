// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Kernels with local memory: registers that were spilled, or arrays that the compiler could not keep in registers. How
// often they are used the trace does not show, but where they live it does: what all threads of an SM keep and L1 holds
// costs little, what goes to L2 or beyond can cost most of the kernel's time. The gain is such a bound.
#include <fmt/format.h>

#include "diagnose/gain.h"

namespace fulcrum::diagnose {
namespace {

constexpr std::string_view kId = "spill";
constexpr double kLeastShare = 0.1;       // of the timeline
constexpr std::int64_t kLeastBytes = 16;  // below, a saved register or two around a call
constexpr double kL1Bytes = 192 << 10,
                 kL2BytesAnSm = 384 << 10;            // of an SM; of an SM's part, as on A100 and H100
constexpr double kFromL2 = 0.67, kFromMemory = 0.93;  // of the kernel's time, at most

// Share of the kernel's time that local memory takes at most; 0: L1 holds it.
double most_lost(const LaunchShape& shape) {
  const double kept = double(shape.local_bytes) * shape.threads() * shape.blocks_per_sm;
  return kept > kL2BytesAnSm ? kFromMemory : kept > kL1Bytes ? kFromL2 : 0;
}

Looked look(const Facts& facts) {
  Looked looked;
  if ((looked.not_checked = needs_kernels(facts, kId))) return looked;
  const auto spills = [&](const Timeline::Kernel& kernel) {
    return shape_of(facts, kernel).local_bytes >= kLeastBytes;
  };
  for (const Group& group : groups(facts, spills)) {
    if (group.share < kLeastShare) continue;
    const LaunchShape& shape = shape_of(facts, group.first());
    Finding finding{
        .claim = fmt::format("{} keeps {} a thread in local memory", group.name,
                             human_bytes(double(shape.local_bytes))),
        .evidence = {fmt::format("{} registers a thread, {:.0f} threads a block; {}", shape.registers,
                                 shape.threads(), launches_text(facts, group)),
                     "spilled registers, or arrays whose index is not known when compiling: nvcc -Xptxas -v "
                     "says which"},
        .next_step =
            "fewer values alive at once, a smaller tile, unrolled loops over small arrays, or a "
            "higher register "
            "limit (__launch_bounds__)",
        .grade = Evidence::bounded,
        .subject = group.name,
        .ops = some(group.ops)};
    if (const double lost = most_lost(shape); lost > 0) {
      finding.evidence.push_back(
          fmt::format("all threads of an SM keep {}, more than its L1 holds",
                      human_bytes(double(shape.local_bytes) * shape.threads() * shape.blocks_per_sm)));
      add_gain(finding, kernel_gain(facts, group.ops, 0, lost));
    }
    looked.findings.push_back(std::move(finding));
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
