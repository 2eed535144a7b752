// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// cosine_similarity, one score after the other, in blocks of rows that several queries share.
#include "backends/scalar/cosine.h"

namespace fulcrum::backends::scalar::kernels {
namespace {

enum Pointer { kQuery, kRows, kInverseNorm, kOut };
enum Dim { kQ, kN, kD };

void block(const fulcrum_args& a, std::int64_t first_query, std::int64_t first_row) {
  const std::int64_t n = a.dim[kN], d = a.dim[kD];
  const std::int64_t queries = std::min(ops::kCosineQueries, a.dim[kQ] - first_query);
  const std::int64_t rows = std::min(ops::kCosineRows, n - first_row);
  Norm q_norm[ops::kCosineQueries];
  for (std::int64_t i = 0; i < queries; ++i)
    q_norm[i] = norm_of(a.in<float>(kQuery) + (first_query + i) * d, d);
  for (std::int64_t row = first_row; row < first_row + rows; ++row) {
    const Norm t_norm =
        norm_of_row(a.in<float>(kRows), a.in<float>(kInverseNorm), a.scalar[0].i == 1, row, d);
    const float* t = a.in<float>(kRows) + row * d;
    for (std::int64_t i = 0; i < queries; ++i) {
      const float* q = a.in<float>(kQuery) + (first_query + i) * d;
      a.out<float>(kOut)[(first_query + i) * n + row] = cosine(q, t, d, q_norm[i], t_norm);
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
