// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// The element-wise ops as one Eigen expression each.
#include "eigen/eigen.h"

namespace fulcrum::peers::eigen {
namespace {

constexpr float kSqrtTwoOverPi = 0.7978845608028654f;
constexpr float kCubic = 0.044715f;

/// out = f(x) over n elements.
template <class Function>
void unary(const fulcrum_args& a, const Function& f) {
  output(a, 1, a.dim[0]) = f(input(a, 0, a.dim[0]));
}

void vec_add(const fulcrum_args& a) {
  const std::int64_t n = a.dim[0] * a.dim[1];
  output(a, 3, n) = input(a, 0, n) + input(a, 1, n);
}
int packed(const fulcrum_args* a) { return a->scalar[0].i == 0; }

void relu(const fulcrum_args& a) {
  unary(a, [](const auto& x) { return x.max(0.0f); });
}
void leaky_relu(const fulcrum_args& a) {
  const auto slope = static_cast<float>(a.scalar[0].f);
  output(a, 1, a.dim[0]) =
      (input(a, 0, a.dim[0]) > 0.0f).select(input(a, 0, a.dim[0]), slope * input(a, 0, a.dim[0]));
}
void clip(const fulcrum_args& a) {
  const auto low = static_cast<float>(a.scalar[0].f), high = static_cast<float>(a.scalar[1].f);
  output(a, 1, a.dim[0]) = input(a, 0, a.dim[0]).max(low).min(high);
}
void elu(const fulcrum_args& a) {
  const auto scale = static_cast<float>(a.scalar[0].f);
  const auto x = input(a, 0, a.dim[0]);
  output(a, 1, a.dim[0]) = (x > 0.0f).select(x, scale * x.expm1());
}
/// Eigen has no vector form of expm1 and of select, but one of exp; near 0 this form loses all digits.
void elu_by_exp(const fulcrum_args& a) {
  const auto scale = static_cast<float>(a.scalar[0].f);
  const auto x = input(a, 0, a.dim[0]);
  output(a, 1, a.dim[0]) = x.max(0.0f) + scale * (x.min(0.0f).exp() - 1.0f);
}
void sigmoid(const fulcrum_args& a) {
  unary(a, [](const auto& x) { return x.logistic(); });
}
void tanh(const fulcrum_args& a) {
  unary(a, [](const auto& x) { return x.tanh(); });
}
void swish(const fulcrum_args& a) {
  const auto x = input(a, 0, a.dim[0]);
  output(a, 1, a.dim[0]) = x * x.logistic();
}
void gelu(const fulcrum_args& a) {
  const auto x = input(a, 0, a.dim[0]);
  output(a, 1, a.dim[0]) = 0.5f * x * (1.0f + (kSqrtTwoOverPi * (x + kCubic * x * x * x)).tanh());
}
void gelu_by_logistic(const fulcrum_args& a) {
  const auto x = input(a, 0, a.dim[0]);
  output(a, 1, a.dim[0]) = x * (2 * kSqrtTwoOverPi * (x + kCubic * x * x * x)).logistic();
}

}  // namespace

void add_elementwise(Kernels& kernels) {
  kernels.insert(kernels.end(), {kernel<vec_add>("vec_add", "eigen", packed), kernel<relu>("relu", "eigen"),
                                 kernel<leaky_relu>("leaky_relu", "eigen"), kernel<clip>("clip", "eigen"),
                                 kernel<elu>("elu", "eigen"), kernel<elu_by_exp>("elu", "eigen_exp"),
                                 kernel<sigmoid>("sigmoid", "eigen"), kernel<tanh>("tanh", "eigen"),
                                 kernel<swish>("swish", "eigen"), kernel<gelu>("gelu", "eigen"),
                                 kernel<gelu_by_logistic>("gelu", "eigen_logistic")});
}

}  // namespace fulcrum::peers::eigen
