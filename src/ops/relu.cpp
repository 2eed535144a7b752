// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// relu: keeps what is above zero. Written as x <= 0 ? 0 : x, so that NaN passes.
#include "ops/support/elementwise.h"

namespace fulcrum::ops {
namespace {

double truth(double x) { return x <= 0 ? 0 : x; }

}  // namespace

Op relu() {
  Op op = unary();
  op.name = "relu";
  op.summary = "out[i] = x[i] <= 0 ? 0 : x[i]";
  op.reference = unary_reference<truth, exact>;
  op.work = unary_work<1, 1>;
  op.symbols = {"*relu*", "*Relu*", "*ReLU*"};
  return op;
}

}  // namespace fulcrum::ops
