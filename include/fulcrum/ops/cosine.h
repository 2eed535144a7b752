// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// How the cosine ops fall into pieces, and the score they fall back on.
#pragma once

#include <fulcrum/ops.h>

namespace fulcrum::ops {

/// Piece b * row_blocks + r is queries 32 b .. against rows 32 r .. .
inline constexpr std::int64_t kCosineQueries = 32;
inline constexpr std::int64_t kCosineRows = 32;
/// One score in fp64: for kernels whose fp32 norm left [2^-50, 2^50] or whose dot product is not finite. 0 when a
/// row is zero, NaN when either row holds a NaN or Inf (which wins over zero).
float cosine_score(const float* q, const float* t, std::int64_t d);
/// Inputs that keep an op's promises: `normalized` rows get length 1, and `inverse`, unless null, their 1 / length
/// (0 for a row of zeros). Rows that are not finite stay as they are.
void cosine_rows(float* rows, float* inverse, std::int64_t n, std::int64_t d, bool normalized);

}  // namespace fulcrum::ops
