// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// matmul: tiles of the output, one row at a time, k outermost inside, so that B is read along its rows.
#include <fulcrum/ops/matmul.h>

#include "backends/scalar/common.h"

namespace fulcrum::backends::scalar::kernels {
namespace {

enum Pointer { kA, kB, kBias, kC };
enum Dim { kM, kN, kK };
enum Epilogue { kNone, kRelu, kGelu };

/// x * sigmoid(2c (x + 0.044715 x^3)), c = sqrt(2 / pi).
float gelu(float x) {
  if (x == -INFINITY) return 0;  // the limit; the product would be -Inf * 0
  const float z = 1.5957691216057308f * (x + 0.044715f * x * x * x);
  const float t = std::exp(-std::abs(z));
  return x * ((z >= 0 ? 1 : t) / (1 + t));
}

float activate(float x, std::int64_t epilogue) {
  if (epilogue == kRelu) return x <= 0 ? 0 : x;
  return epilogue == kGelu ? gelu(x) : x;
}

void tile_row(const fulcrum_args& args, std::int64_t row, std::int64_t first, std::int64_t width) {
  const std::int64_t n = args.dim[kN], k = args.dim[kK];
  const float* a = args.in<float>(kA) + row * k;
  const float* b = args.in<float>(kB) + first;
  const auto* bias = args.in<float>(kBias);
  float sums[ops::kMatmulTileColumns] = {};
  for (std::int64_t p = 0; p < k; ++p, b += n) {
    for (std::int64_t j = 0; j < width; ++j) sums[j] += a[p] * b[j];
  }
  float* c = args.out<float>(kC) + row * n + first;
  for (std::int64_t j = 0; j < width; ++j) {
    c[j] = activate(bias ? sums[j] + bias[first + j] : sums[j], args.scalar[0].i);
  }
}

void partial(const fulcrum_args* a, std::int32_t, std::int64_t begin, std::int64_t end, void*) {
  const std::int64_t m = a->dim[kM], n = a->dim[kN];
  const ops::MatmulTiles tiles(m, n, a->dim[kK]);
  for (std::int64_t piece = begin; piece < end; ++piece) {
    const std::int64_t row = piece / tiles.across * tiles.rows;
    const std::int64_t column = piece % tiles.across * tiles.columns;
    const std::int64_t right = std::min(column + tiles.columns, n);
    for (std::int64_t i = row; i < std::min(row + tiles.rows, m); ++i) {
      for (std::int64_t j = column; j < right; j += ops::kMatmulTileColumns)
        tile_row(*a, i, j, std::min(ops::kMatmulTileColumns, right - j));
    }
  }
}

fulcrum_status run(const fulcrum_args* a, void*, std::int64_t count) {
  const std::int64_t pieces = ops::MatmulTiles(a->dim[kM], a->dim[kN], a->dim[kK]).pieces();
  for (std::int64_t i = 0; i < count; ++i) partial(a, 0, 0, pieces, nullptr);
  return done();
}

}  // namespace

std::span<const fulcrum_kernel> matmul() {
  static const fulcrum_kernel kernels[] = {make_kernel(1, run, partial)};
  return kernels;
}

}  // namespace fulcrum::backends::scalar::kernels
