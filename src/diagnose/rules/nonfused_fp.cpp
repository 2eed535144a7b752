// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Additions and multiplications that could be one instruction: where all of them found a partner, half of them would be
// gone, which is worth as much as the unit that executes them is busy.
#include <fmt/format.h>

#include <algorithm>

#include "diagnose/counters.h"
#include "diagnose/gain.h"

namespace fulcrum::diagnose {
namespace {

constexpr std::string_view kId = "nonfused_fp";
constexpr std::string_view kAdd = "smsp__sass_thread_inst_executed_op_fadd_pred_on.sum",
                           kMultiply = "smsp__sass_thread_inst_executed_op_fmul_pred_on.sum",
                           kFused = "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum";
constexpr double kLeastShare = 0.1;

// Of the kernel's fp32 instructions: those that a partner could take in. Only pairs of both kinds fuse.
double could_fuse(const Facts& facts, const Timeline::Kernel& kernel) {
  const auto add = metric(facts, kernel, kAdd), multiply = metric(facts, kernel, kMultiply),
             fused = metric(facts, kernel, kFused);
  if (!add || !multiply || !fused) return 0;
  const double all = *add + *multiply + *fused;
  return all > 0 ? std::clamp(2 * std::min(*add, *multiply) / all, 0.0, 1.0) : 0;
}

double unit_busy(const Facts& facts, const Timeline::Kernel& kernel) {
  const auto busy = metric(facts, kernel, "sm__inst_executed_pipe_fma.avg.pct_of_peak_sustained_active");
  return busy ? std::clamp(*busy / 100, 0.0, 1.0) : std::max(0.0, speed_of_light(facts, kernel).compute);
}

Looked look(const Facts& facts) {
  Looked looked;
  if ((looked.not_checked = needs_metrics(facts, kId, {kAdd, kMultiply, kFused}))) return looked;
  const auto fires = [&](const Timeline::Kernel& kernel) { return could_fuse(facts, kernel) >= kLeastShare; };
  for (const Group& group : groups(facts, fires)) {
    const Timeline::Kernel& kernel = group.first();
    const double share = could_fuse(facts, kernel), busy = unit_busy(facts, kernel);
    Finding finding{
        .claim = fmt::format("{} of {}'s fp32 instructions are additions and multiplications of their own",
                             percent(share), group.name),
        .evidence = {fmt::format("fp32 units busy {}; {}", percent(busy), launches_text(facts, group))},
        .next_step =
            "write a * b + c so that the compiler sees both, use fmaf, and do not compile with -fmad=false "
            "unless every rounding counts",
        .grade = Evidence::modelled,
        .subject = group.name,
        .ops = some(group.ops)};
    add_gain(finding, kernel_gain(facts, group.ops, 0, 0.5 * share * busy));
    looked.findings.push_back(std::move(finding));
  }
  return looked;
}

}  // namespace

Rule nonfused_fp() {
  return Rule{.id = kId,
              .looks_for = "fp32 additions and multiplications that could be fused",
              .needs = "counters of `ncu --csv`",
              .look = look};
}

}  // namespace fulcrum::diagnose
