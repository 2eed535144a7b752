// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// How matmul falls into pieces.
#pragma once

#include <fulcrum/ops.h>

namespace fulcrum::ops {

/// Piece r * column_tiles + c is the tile of rows 32 r .. and columns 128 c .. of the output.
inline constexpr std::int64_t kMatmulTileRows = 32;
inline constexpr std::int64_t kMatmulTileColumns = 128;

}  // namespace fulcrum::ops
