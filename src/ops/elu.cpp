// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// elu: x above zero, al (e^x - 1) below. expm1 is part of the definition: exp(x) - 1 loses all digits of a small x.
#include <fmt/format.h>

#include "ops/support/elementwise.h"

namespace fulcrum::ops {
namespace {

Status validate(const Args& args) {
  const double al = args.scalar[0].f;
  if (al > 0 && std::isfinite(static_cast<float>(al))) return {};
  return Error{Code::invalid_argument, fmt::format("al={} of elu is not a positive finite f32", al),
               "for example al=1"};
}

double truth(const Args& args, double x) { return x > 0 ? x : parameter(args, 0) * std::expm1(x); }

}  // namespace

Op elu() {
  Op op = unary();
  op.name = "elu";
  op.summary = "out[i] = x[i] > 0 ? x[i] : al * (exp(x[i]) - 1)";
  op.slots.push_back(real("al", 1));
  op.validate = validate;
  op.reference = unary_reference<truth, within_ulps<8>>;
  op.work = unary_work<3, 17>;
  op.symbols = {"elu", "elu_*", "*_elu*", "*Elu*", "*ELU*"};
  op.edge_shapes = {"n=33,al=0.3", "n=33,al=1e-30", "n=33,al=1e6"};
  return op;
}

}  // namespace fulcrum::ops
