// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// batched_matmul: tiles of each entry's output, one row at a time, k outermost inside, so that B is read along its
// rows.
#include <fulcrum/ops/batched_matmul.h>

#include "backends/scalar/common.h"

namespace fulcrum::backends::scalar::kernels {
namespace {

enum Pointer { kA, kB, kC };
enum Dim { kBatch, kM, kN, kK, kRightSides };

void tile_row(const fulcrum_args& args, std::int64_t entry, std::int64_t row, std::int64_t first,
              std::int64_t width) {
  const std::int64_t m = args.dim[kM], n = args.dim[kN], k = args.dim[kK];
  const float* a = args.in<float>(kA) + (entry * m + row) * k;
  const float* b = args.in<float>(kB) + (args.dim[kRightSides] == 1 ? 0 : entry * k * n) + first;
  float sums[ops::kMatmulTileColumns] = {};
  for (std::int64_t p = 0; p < k; ++p, b += n) {
    for (std::int64_t j = 0; j < width; ++j) sums[j] += a[p] * b[j];
  }
  std::copy(sums, sums + width, args.out<float>(kC) + (entry * m + row) * n + first);
}

void partial(const fulcrum_args* a, std::int32_t, std::int64_t begin, std::int64_t end, void*) {
  const std::int64_t m = a->dim[kM], n = a->dim[kN];
  const ops::MatmulTiles tiles = ops::batched_matmul_tiles(*a);
  const std::int64_t each = tiles.pieces();
  for (std::int64_t piece = begin; piece < end; ++piece) {
    const std::int64_t row = piece % each / tiles.across * tiles.rows;
    const std::int64_t column = piece % tiles.across * tiles.columns;
    const std::int64_t right = std::min(column + tiles.columns, n);
    for (std::int64_t i = row; i < std::min(row + tiles.rows, m); ++i) {
      for (std::int64_t j = column; j < right; j += ops::kMatmulTileColumns)
        tile_row(*a, piece / each, i, j, std::min(ops::kMatmulTileColumns, right - j));
    }
  }
}

fulcrum_status run(const fulcrum_args* a, void*, std::int64_t count) {
  const std::int64_t pieces = a->dim[kBatch] * ops::batched_matmul_tiles(*a).pieces();
  for (std::int64_t i = 0; i < count; ++i) partial(a, 0, 0, pieces, nullptr);
  return done();
}

}  // namespace

std::span<const fulcrum_kernel> batched_matmul() {
  static const fulcrum_kernel kernels[] = {make_kernel(1, run, partial)};
  return kernels;
}

}  // namespace fulcrum::backends::scalar::kernels
