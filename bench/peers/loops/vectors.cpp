// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Element-wise ops, reductions and the cosine of one vector against many.
#include <algorithm>
#include <cmath>
#include <limits>

#include "loops/loops.h"

namespace fulcrum::peers::loops {
namespace {

constexpr float kSqrtTwoOverPi = 0.7978845608028654f;

template <class Function>
void unary(const fulcrum_args& a, const Function& f) {
  const float* __restrict x = a.in<float>(0);
  float* __restrict out = a.out<float>(1);
  for (std::int64_t i = 0; i < a.dim[0]; ++i) out[i] = f(x[i]);
}

void vec_add(const fulcrum_args& a) {
  const float* __restrict x = a.in<float>(0);
  const float* __restrict y = a.in<float>(1);
  float* __restrict out = a.out<float>(3);
  const std::int64_t n = a.dim[0] * a.dim[1];
  for (std::int64_t i = 0; i < n; ++i) out[i] = x[i] + y[i];
}
int packed(const fulcrum_args* a) { return a->scalar[0].i == 0; }

void relu(const fulcrum_args& a) {
  unary(a, [](float x) { return x <= 0 ? 0.0f : x; });
}
void leaky_relu(const fulcrum_args& a) {
  const auto slope = static_cast<float>(a.scalar[0].f);
  unary(a, [slope](float x) { return x > 0 ? x : slope * x; });
}
void clip(const fulcrum_args& a) {
  const auto low = static_cast<float>(a.scalar[0].f), high = static_cast<float>(a.scalar[1].f);
  unary(a, [=](float x) { return x < low ? low : x > high ? high : x; });
}
/// The C library has a vector exp and no vector expm1.
void elu(const fulcrum_args& a) {
  const auto scale = static_cast<float>(a.scalar[0].f);
  unary(a, [scale](float x) { return x > 0 ? x : scale * (kFastMath ? std::exp(x) - 1 : std::expm1(x)); });
}
void sigmoid(const fulcrum_args& a) {
  unary(a, [](float x) { return 1 / (1 + std::exp(-x)); });
}
void tanh(const fulcrum_args& a) {
  unary(a, [](float x) { return std::tanh(x); });
}
void swish(const fulcrum_args& a) {
  unary(a, [](float x) { return x / (1 + std::exp(-x)); });
}
void gelu(const fulcrum_args& a) {
  unary(a, [](float x) { return 0.5f * x * (1 + std::tanh(kSqrtTwoOverPi * (x + 0.044715f * x * x * x))); });
}

float inner(const float* x, const float* y, std::int64_t n) {
  float sum = 0;
  for (std::int64_t i = 0; i < n; ++i) sum += x[i] * y[i];
  return sum;
}

void dot(const fulcrum_args& a) { *a.out<float>(2) = inner(a.in<float>(0), a.in<float>(1), a.dim[0]); }

float max_of(const float* x, std::int64_t n) {
  float max = -std::numeric_limits<float>::max();
  for (std::int64_t i = 0; i < n; ++i) max = x[i] > max ? x[i] : max;
  return max;
}

void softmax(const fulcrum_args& a) {
  const std::int64_t n = a.dim[1];
  for (std::int64_t row = 0; row < a.dim[0]; ++row) {
    const float* __restrict x = a.in<float>(0) + row * n;
    float* __restrict out = a.out<float>(1) + row * n;
    const float max = max_of(x, n);
    float sum = 0;
    for (std::int64_t i = 0; i < n; ++i) {
      out[i] = std::exp(x[i] - max);
      sum += out[i];
    }
    const float scale = 1 / sum;
    for (std::int64_t i = 0; i < n; ++i) out[i] *= scale;
  }
}

void log_softmax(const fulcrum_args& a) {
  const std::int64_t n = a.dim[1];
  for (std::int64_t row = 0; row < a.dim[0]; ++row) {
    const float* __restrict x = a.in<float>(0) + row * n;
    float* __restrict out = a.out<float>(1) + row * n;
    const float max = max_of(x, n);
    float sum = 0;
    for (std::int64_t i = 0; i < n; ++i) sum += std::exp(x[i] - max);
    const float log_sum = std::log(sum);
    for (std::int64_t i = 0; i < n; ++i) out[i] = (x[i] - max) - log_sum;
  }
}

float inverse_root(float squared) { return squared > 0 ? 1 / std::sqrt(squared) : 0; }

void cosine_similarity(const fulcrum_args& a) {
  const std::int64_t n = a.dim[1], d = a.dim[2];
  const auto* known = a.in<float>(2);
  for (std::int64_t q = 0; q < a.dim[0]; ++q) {
    const float* query = a.in<float>(0) + q * d;
    const float scale = inverse_root(inner(query, query, d));
    for (std::int64_t i = 0; i < n; ++i) {
      const float* row = a.in<float>(1) + i * d;
      const float row_scale = a.scalar[0].i == 1 ? 1 : known ? known[i] : inverse_root(inner(row, row, d));
      a.out<float>(3)[q * n + i] = std::clamp(inner(query, row, d) * scale * row_scale, -1.0f, 1.0f);
    }
  }
}

}  // namespace

void add_vectors(Kernels& kernels) {
  const Kernels with_sums_or_exp = {kernel<elu>("elu", kVariant),
                                    kernel<sigmoid>("sigmoid", kVariant),
                                    kernel<tanh>("tanh", kVariant),
                                    kernel<swish>("swish", kVariant),
                                    kernel<gelu>("gelu", kVariant),
                                    kernel<dot>("dot", kVariant),
                                    kernel<softmax>("softmax", kVariant),
                                    kernel<log_softmax>("log_softmax", kVariant),
                                    kernel<cosine_similarity>("cosine_similarity", kVariant)};
  kernels.insert(kernels.end(), with_sums_or_exp.begin(), with_sums_or_exp.end());
  if (kFastMath) return;  // the others are the same code under -ffast-math
  kernels.insert(kernels.end(), {kernel<vec_add>("vec_add", kVariant, packed), kernel<relu>("relu", kVariant),
                                 kernel<leaky_relu>("leaky_relu", kVariant), kernel<clip>("clip", kVariant)});
}

}  // namespace fulcrum::peers::loops
