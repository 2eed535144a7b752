// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// See conv2d_rows.h. One body, compiled twice: with the fma instruction and without.
#include "backends/scalar/conv2d_rows.h"

#include <algorithm>
#include <cmath>

namespace fulcrum::backends::scalar {
namespace {

using Rows = void (*)(const ops::Conv2d&, const float*, const float*, std::int64_t, std::int64_t, float*);

[[gnu::always_inline]] inline void body(const ops::Conv2d& g, const float* x, const float* k,
                                        std::int64_t begin, std::int64_t end, float* y) {
  for (std::int64_t oy = begin; oy < end; ++oy) {
    const std::int64_t top = oy * g.stride_y - g.pad_y;
    const std::int64_t first_row = std::max<std::int64_t>(0, -top), last_row = std::min(g.kh, g.h - top);
    for (std::int64_t ox = 0; ox < g.wo; ++ox) {
      const std::int64_t left = ox * g.stride_x - g.pad_x;
      const std::int64_t first = std::max<std::int64_t>(0, -left), last = std::min(g.kw, g.w - left);
      float sum = 0;
      for (std::int64_t i = first_row; i < last_row; ++i) {
        const float* row = x + (top + i) * g.w + left;
        for (std::int64_t j = first; j < last; ++j) sum = __builtin_fmaf(k[i * g.kw + j], row[j], sum);
      }
      *y++ = sum;
    }
  }
}

void rows_anywhere(const ops::Conv2d& g, const float* x, const float* k, std::int64_t begin, std::int64_t end,
                   float* y) {
  body(g, x, k, begin, end, y);
}

#if defined(__x86_64__)
[[gnu::target("fma")]] void rows_with_fma(const ops::Conv2d& g, const float* x, const float* k,
                                          std::int64_t begin, std::int64_t end, float* y) {
  body(g, x, k, begin, end, y);
}
Rows choose() { return __builtin_cpu_supports("fma") ? rows_with_fma : rows_anywhere; }
#else
Rows choose() { return rows_anywhere; }
#endif

}  // namespace

void conv2d_rows(const ops::Conv2d& geometry, const float* x, const float* k, std::int64_t begin,
                 std::int64_t end, float* y) {
  static const Rows rows = choose();
  rows(geometry, x, k, begin, end, y);
}

}  // namespace fulcrum::backends::scalar
