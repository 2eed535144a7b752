// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// expression: the tape, step by step, for one element after the other. Functions are those of the scalar ops, so that
// an expression gives the bits of its ops called one by one.
#include <fulcrum/ops/expression.h>

#include "backends/scalar/common.h"

namespace fulcrum::backends::scalar::kernels {
namespace {

using ops::Tape;
using ops::TapeCode;
using ops::TapeStep;

float sigmoid_of(float x) {
  const float t = std::exp(-std::abs(x));
  return (x >= 0 ? 1 : t) / (1 + t);
}

float gelu_of(float x) {
  if (x == -INFINITY) return 0;
  const float z2 = 1.59576912F * x * (1 + 0.044715F * x * x);
  const float t = std::exp(-std::abs(z2));
  return x * ((z2 >= 0 ? 1 : t) / (1 + t));
}

float clipped(float x, float lo, float hi) {
  const float raised = x < lo ? lo : x;
  return raised > hi ? hi : raised;
}

float function(const TapeStep& step, float r) {
  switch (step.code) {
    case TapeCode::negate:
      return -r;
    case TapeCode::absolute:
      return std::abs(r);
    case TapeCode::sqrt:
      return std::sqrt(r);
    case TapeCode::relu:
      return r <= 0 ? 0 : r;
    case TapeCode::leaky_relu:
      if (!(r <= 0)) return r;
      return step.p == 0 ? 0 : step.p * r;  // 0 * -Inf would be NaN
    case TapeCode::elu:
      return r > 0 ? r : step.p * std::expm1(r);
    case TapeCode::clip:
      return clipped(r, step.p, step.q);
    case TapeCode::sigmoid:
      return sigmoid_of(r);
    case TapeCode::tanh:
      return std::tanh(r);
    case TapeCode::swish:
      return r == -INFINITY ? 0 : r * sigmoid_of(r);
    default:
      return gelu_of(r);
  }
}

float stepped(const TapeStep& step, float r, float a, float b) {
  switch (step.code) {
    case TapeCode::load:
      return a;
    case TapeCode::add:
      return r + a;
    case TapeCode::subtract:
      return r - a;
    case TapeCode::take_from:
      return a - r;
    case TapeCode::multiply:
      return r * a;
    case TapeCode::divide:
      return r / a;
    case TapeCode::divide_by:
      return a / r;
    case TapeCode::minimum:
      return r < a || r != r ? r : a;
    case TapeCode::maximum:
      return r > a || r != r ? r : a;
    case TapeCode::fma:
      return std::fma(r, a, b);
    case TapeCode::fma_onto:
      return std::fma(a, b, r);
    default:
      return function(step, r);
  }
}

void cover(const fulcrum_args& args, std::int64_t begin, std::int64_t end) {
  Tape tape;
  ops::bind_tape(*ops::tape_of(args), args, tape);
  for (std::int64_t i = begin; i < end; ++i) {
    float known[ops::kTapeConst + 1];
    for (int leaf = 0; leaf < tape.leaves; ++leaf) known[leaf] = args.in<float>(leaf)[i];
    float r = 0;
    for (int s = 0; s < tape.length; ++s) {
      const TapeStep& step = tape.step[s];
      if (step.code == TapeCode::store) {
        known[step.a] = r;
        continue;
      }
      const int operands = ops::operands_of(step.code);
      const float a = operands < 1 || step.a == ops::kTapeConst ? step.p : known[step.a];
      const float b = operands < 2 || step.b == ops::kTapeConst ? step.q : known[step.b];
      r = stepped(step, r, a, b);
    }
    args.out<float>(ops::kTapeResult)[i] = r;
  }
}

fulcrum_status run(const fulcrum_args* a, void*, std::int64_t count) {
  for (std::int64_t call = 0; call < count; ++call) cover(*a, 0, a->dim[0]);
  return done();
}

void partial(const fulcrum_args* a, std::int32_t, std::int64_t begin, std::int64_t end, void*) {
  cover(*a, begin * ops::kElementPiece, std::min(end * ops::kElementPiece, a->dim[0]));
}

}  // namespace

std::span<const fulcrum_kernel> expression() {
  static const fulcrum_kernel kernels[] = {make_kernel(1, run, partial)};
  return kernels;
}

}  // namespace fulcrum::backends::scalar::kernels
