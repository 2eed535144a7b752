// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// sigmoid: 1 / (1 + e^-x) in the form that never overflows, t = e^-|x|.
#include "ops/support/elementwise.h"

namespace fulcrum::ops {
namespace {

double truth(double x) {
  const double t = std::exp(-std::abs(x));
  return (x >= 0 ? 1 : t) / (1 + t);
}

}  // namespace

Op sigmoid() {
  Op op = unary();
  op.name = "sigmoid";
  op.summary = "out[i] = 1 / (1 + exp(-x[i]))";
  op.reference = unary_reference<truth, within_ulps<8>>;
  op.work = unary_work<4, 19>;
  op.symbols = {"*sigmoid*", "*Sigmoid*", "*logistic*"};
  return op;
}

}  // namespace fulcrum::ops
