// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// clip: min(max(x, lo), hi), NaN passing through both. Either bound may be infinite, and both may be the same.
#include <fmt/format.h>

#include "ops/support/elementwise.h"

namespace fulcrum::ops {
namespace {

Status validate(const Args& args) {
  const double lo = args.scalar[0].f, hi = args.scalar[1].f;
  if (lo <= hi) return {};
  return Error{Code::invalid_argument, fmt::format("lo={} of clip is not at most hi={}", lo, hi),
               "for example lo=-1,hi=1"};
}

double truth(const Args& args, double x) {
  const float lo = parameter(args, 0), hi = parameter(args, 1);
  const double raised = x < lo ? lo : x;
  return raised > hi ? hi : raised;
}

}  // namespace

Op clip() {
  Op op = unary();
  op.name = "clip";
  op.summary = "out[i] = min(max(x[i], lo), hi)";
  op.slots.push_back(real("lo", -1));
  op.slots.push_back(real("hi", 1));
  op.validate = validate;
  op.reference = unary_reference<truth, exact>;
  op.work = unary_work<2, 2>;
  op.symbols = {"*clip*", "*Clip*", "*clamp*", "*Clamp*"};
  op.edge_shapes = {"n=33,lo=0.5,hi=0.5", "n=33,lo=0,hi=6", "n=33,lo=-6,hi=0"};
  return op;
}

}  // namespace fulcrum::ops
