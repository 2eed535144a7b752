// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// tanh: odd bit by bit, tanh(-x) = -tanh(x).
#include "ops/support/elementwise.h"

namespace fulcrum::ops {
namespace {

double truth(double x) { return std::tanh(x); }

}  // namespace

Op tanh() {
  Op op = unary();
  op.name = "tanh";
  op.summary = "out[i] = tanh(x[i])";
  op.reference = unary_reference<truth, within_ulps<8>>;
  op.work = unary_work<6, 16>;
  op.symbols = {"tanhf", "*tanh*", "*Tanh*"};
  return op;
}

}  // namespace fulcrum::ops
