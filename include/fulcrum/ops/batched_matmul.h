// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// How batched_matmul falls into pieces: those of matmul, one entry of the batch after the other.
#pragma once

#include <fulcrum/ops/matmul.h>

namespace fulcrum::ops {

/// Tiles of one entry's output.
constexpr std::int64_t matmul_tiles(std::int64_t rows, std::int64_t columns) {
  const std::int64_t down = (rows + kMatmulTileRows - 1) / kMatmulTileRows;
  return down * ((columns + kMatmulTileColumns - 1) / kMatmulTileColumns);
}

}  // namespace fulcrum::ops
