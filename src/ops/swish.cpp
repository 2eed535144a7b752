// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// swish: x sigmoid(x), also called silu. At -Inf it is its limit, 0.
#include "ops/support/elementwise.h"

namespace fulcrum::ops {
namespace {

double truth(double x) {
  if (x == -INFINITY) return 0;
  const double t = std::exp(-std::abs(x));
  return x * ((x >= 0 ? 1 : t) / (1 + t));
}

/// x times a sigmoid in the denormal range, whose own floor is 2^-126: |x| is below 2^7 there.
double allowed(double truth) { return ulps(8, truth, 0x1p-119); }

}  // namespace

Op swish() {
  Op op = unary();
  op.name = "swish";
  op.summary = "out[i] = x[i] / (1 + exp(-x[i]))";
  op.reference = unary_reference<truth, allowed>;
  op.work = unary_work<5, 20>;
  op.symbols = {"*swish*", "*Swish*", "*silu*", "*SiLU*"};
  return op;
}

}  // namespace fulcrum::ops
