// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// gelu in its tanh form, written with a sigmoid: 0.5 x (1 + tanh z) = x sigmoid(2 z), without the cancellation
// near tanh = -1. At -Inf it is its limit, 0.
#include "ops/support/elementwise.h"

namespace fulcrum::ops {
namespace {

constexpr double kRootOfTwoOverPi = 0.7978845608028654;

double truth(double x) {
  if (x == -INFINITY) return 0;
  const double z2 = 2 * kRootOfTwoOverPi * (x + 0.044715 * x * x * x);
  const double t = std::exp(-std::abs(z2));
  return x * ((z2 >= 0 ? 1 : t) / (1 + t));
}

/// The exponential amplifies the rounding of its argument, so the bound is wider than that of sigmoid.
double allowed(double truth) { return std::max(ulps(64, truth), 1e-12); }

}  // namespace

Op gelu() {
  Op op = unary();
  op.name = "gelu";
  op.summary = "out[i] = x[i] * sigmoid(2 sqrt(2/pi) (x[i] + 0.044715 x[i]^3))";
  op.reference = unary_reference<truth, allowed>;
  op.work = unary_work<9, 23>;
  op.symbols = {"*gelu*", "*Gelu*", "*GELU*"};
  return op;
}

}  // namespace fulcrum::ops
