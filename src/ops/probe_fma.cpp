// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// probe_fma: n independent chains of multiply-adds that touch no memory. Counting by ones is exact in fp32 up to
// 2^24, where 2^24 + 1 rounds back to 2^24: the result says how many steps were made.
#include <fulcrum/ops/probes.h>

#include <algorithm>

#include "ops/support/elementwise.h"

namespace fulcrum::ops {
namespace {

enum Scalar { kSteps };

Status validate(const Args& args) {
  if (args.scalar[kSteps].i >= 0) return {};
  return Error{Code::invalid_argument, "steps of probe_fma must not be negative", "for example steps=1000"};
}

Work work(const Args& args) {
  const auto n = static_cast<double>(args.dim[0]);
  const double steps = n * static_cast<double>(args.scalar[kSteps].i);
  return Work{.flops = 2 * steps, .issue_slots = steps, .write_bytes = 4 * n, .link_out_bytes = 4 * n};
}

void reference(const Args& args, int, std::span<const std::int64_t> index, Truth* truth) {
  const auto steps = static_cast<double>(args.scalar[kSteps].i);
  for (std::size_t i = 0; i < index.size(); ++i) truth[i] = Truth{.value = std::min(steps, 0x1p24)};
}

}  // namespace

Op probe_fma() {
  return Op{
      .name = "probe_fma",
      .summary = "y[i] = y[i] * 1 + 1, steps times, from 0",
      .category = "probe",
      .slots = {out("y"), dim("n"), integer("steps", 1000)},
      .extent = [](const Args& args, int) { return args.dim[0]; },
      .validate = validate,
      .work = work,
      .reference = reference,
      .split = Split{.phases = 1,
                     .pieces = [](const Args& args, int) { return divide_up(args.dim[0], kProbeChains); }},
      .default_sizes = {"n=768,steps=10000", "n=49152,steps=10000"},
      .reference_cost = [](const Args&) { return 1.0; },
  };
}

}  // namespace fulcrum::ops
