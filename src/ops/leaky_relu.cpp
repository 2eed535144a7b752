// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// leaky_relu: relu that lets a share of the negative side through. With al = 0 it is relu, also at -Inf.
#include <fmt/format.h>

#include "ops/support/elementwise.h"

namespace fulcrum::ops {
namespace {

Status validate(const Args& args) {
  const double al = args.scalar[0].f;
  if (al >= 0 && al < 1) return {};
  return Error{Code::invalid_argument, fmt::format("al={} of leaky_relu is not in [0, 1)", al),
               "for example al=0.01"};
}

/// The product of two f32 is exact in fp64: rounding it to f32 is the correctly rounded f32 product.
double truth(const Args& args, double x) {
  const float al = parameter(args, 0);
  if (!(x <= 0)) return x;
  return al == 0 ? 0 : static_cast<float>(al * x);
}

}  // namespace

Op leaky_relu() {
  Op op = unary();
  op.name = "leaky_relu";
  op.summary = "out[i] = x[i] > 0 ? x[i] : al * x[i]";
  op.slots.push_back(real("al", 0.01));
  op.validate = validate;
  op.reference = unary_reference<truth, exact>;
  op.work = unary_work<2, 2>;
  op.symbols = {"*leaky_relu*", "*LeakyRelu*", "*LeakyReLU*"};
  op.edge_shapes = {"n=33,al=0", "n=33,al=0.999", "n=33,al=1e-30"};
  return op;
}

}  // namespace fulcrum::ops
