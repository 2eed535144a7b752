// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// cosine_similarity: a dot product and, unless they are known, the norms; pairs that fp32 cannot carry go through
// fp64.
#include <fulcrum/ops/cosine.h>
#include <fulcrum/ops/dot.h>

#include "backends/scalar/common.h"

namespace fulcrum::backends::scalar::kernels {
namespace {

enum Pointer { kQuery, kRows, kInverseNorm, kOut };
enum Dim { kQ, kN, kD };

/// A squared norm whose root lies in [2^-50, 2^50]; false for NaN.
bool is_safe(float squared) { return squared >= 0x1p-100f && squared <= 0x1p100f; }

/// What is known of a row before its dot product: 1/|t|, and whether fp32 carries it.
struct Norm {
  float inverse = 1;
  bool safe = true;
};

/// Any length: dot_product() over runs that keep its error bound.
float long_dot_product(const float* a, const float* b, std::int64_t d) {
  float sum = 0;
  for (std::int64_t first = 0; first < d; first += ops::kDotChunk) {
    sum += dot_product(a + first, b + first, std::min(ops::kDotChunk, d - first));
  }
  return sum;
}

Norm norm_of(const float* x, std::int64_t d) {
  const float squared = long_dot_product(x, x, d);
  return is_safe(squared) ? Norm{1 / std::sqrt(squared), true} : Norm{0, false};
}

Norm norm_of_row(const fulcrum_args& a, std::int64_t row) {
  if (a.scalar[0].i == 1) return Norm{};
  if (const auto* known = a.in<float>(kInverseNorm)) {
    return Norm{known[row], known[row] >= 0x1p-50f && known[row] <= 0x1p50f};
  }
  return norm_of(a.in<float>(kRows) + row * a.dim[kD], a.dim[kD]);
}

float score(const float* q, const float* t, std::int64_t d, Norm q_norm, Norm t_norm) {
  const float sum = long_dot_product(q, t, d);
  if (!q_norm.safe || !t_norm.safe || !std::isfinite(sum)) return ops::cosine_score(q, t, d);
  return std::clamp(sum * q_norm.inverse * t_norm.inverse, -1.0f, 1.0f);
}

void block(const fulcrum_args& a, std::int64_t first_query, std::int64_t first_row) {
  const std::int64_t n = a.dim[kN], d = a.dim[kD];
  const std::int64_t queries = std::min(ops::kCosineQueries, a.dim[kQ] - first_query);
  const std::int64_t rows = std::min(ops::kCosineRows, n - first_row);
  Norm q_norm[ops::kCosineQueries];
  for (std::int64_t i = 0; i < queries; ++i)
    q_norm[i] = norm_of(a.in<float>(kQuery) + (first_query + i) * d, d);
  for (std::int64_t row = first_row; row < first_row + rows; ++row) {
    const Norm t_norm = norm_of_row(a, row);
    const float* t = a.in<float>(kRows) + row * d;
    for (std::int64_t i = 0; i < queries; ++i) {
      const float* q = a.in<float>(kQuery) + (first_query + i) * d;
      a.out<float>(kOut)[(first_query + i) * n + row] = score(q, t, d, q_norm[i], t_norm);
    }
  }
}

void partial(const fulcrum_args* a, std::int32_t, std::int64_t begin, std::int64_t end, void*) {
  const std::int64_t row_blocks = (a->dim[kN] + ops::kCosineRows - 1) / ops::kCosineRows;
  for (std::int64_t piece = begin; piece < end; ++piece) {
    block(*a, piece / row_blocks * ops::kCosineQueries, piece % row_blocks * ops::kCosineRows);
  }
}

fulcrum_status run(const fulcrum_args* a, void*, std::int64_t count) {
  const std::int64_t query_blocks = (a->dim[kQ] + ops::kCosineQueries - 1) / ops::kCosineQueries;
  const std::int64_t row_blocks = (a->dim[kN] + ops::kCosineRows - 1) / ops::kCosineRows;
  for (std::int64_t i = 0; i < count; ++i) partial(a, 0, 0, query_blocks * row_blocks, nullptr);
  return done();
}

}  // namespace

std::span<const fulcrum_kernel> cosine_similarity() {
  static const fulcrum_kernel kernels[] = {make_kernel(1, run, partial)};
  return kernels;
}

}  // namespace fulcrum::backends::scalar::kernels
