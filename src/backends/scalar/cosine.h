// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// One cosine at a time: a dot product and, unless they are known, the norms; pairs that fp32 cannot carry go through
// fp64.
#pragma once

#include <fulcrum/ops/cosine.h>
#include <fulcrum/ops/dot.h>

#include "backends/scalar/common.h"

namespace fulcrum::backends::scalar {

/// What is known of a vector before a dot product: 1/|x|, and whether fp32 carries it.
struct Norm {
  float inverse = 1;
  bool safe = true;
};

/// Any length: dot_product() over runs that keep its error bound.
inline float long_dot_product(const float* a, const float* b, std::int64_t d) {
  float sum = 0;
  for (std::int64_t first = 0; first < d; first += ops::kDotChunk) {
    sum += dot_product(a + first, b + first, std::min(ops::kDotChunk, d - first));
  }
  return sum;
}

/// A squared norm is safe when its root lies in [2^-50, 2^50]; NaN is not.
inline Norm norm_of(const float* x, std::int64_t d) {
  const float squared = long_dot_product(x, x, d);
  return squared >= 0x1p-100F && squared <= 0x1p100F ? Norm{1 / std::sqrt(squared), true} : Norm{0, false};
}

/// `inverse`: of all rows, or null.
inline Norm norm_of_row(const float* rows, const float* inverse, bool normalized, std::int64_t row,
                        std::int64_t d) {
  if (normalized) return Norm{};
  if (inverse) return Norm{inverse[row], inverse[row] >= 0x1p-50F && inverse[row] <= 0x1p50F};
  return norm_of(rows + row * d, d);
}

inline float cosine(const float* q, const float* t, std::int64_t d, Norm q_norm, Norm t_norm) {
  const float sum = long_dot_product(q, t, d);
  if (!q_norm.safe || !t_norm.safe || !std::isfinite(sum)) return ops::cosine_score(q, t, d);
  return std::clamp(sum * q_norm.inverse * t_norm.inverse, -1.0F, 1.0F);
}

}  // namespace fulcrum::backends::scalar
