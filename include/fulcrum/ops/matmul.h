// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// How matmul falls into pieces.
#pragma once

#include <fulcrum/ops.h>

#include <algorithm>

namespace fulcrum::ops {

/// The largest tile, but for bands of whole rows.
inline constexpr std::int64_t kMatmulTileRows = 32;
inline constexpr std::int64_t kMatmulTileColumns = 128;

/// Piece r * across + c is the tile of rows `rows` * r .. and columns `columns` * c .. of the output.
struct MatmulTiles {
  std::int64_t rows = kMatmulTileRows, columns = kMatmulTileColumns;  // of a tile
  std::int64_t down = 0, across = 0;                                  // tiles

  /// For `outputs` products of m x k by k x n. Tiles become smaller, down to 16 x 32, where there are few and each is
  /// much work: by depth, one of 32 x 128 may be a whole product. Flat ones are last, since each band of them copies all
  /// of the right side.
  constexpr MatmulTiles(std::int64_t m, std::int64_t n, std::int64_t k, std::int64_t outputs = 1) {
    const bool bands = by_bands(m, n, k);
    if (bands) {
      rows = kBandRows;
      columns = n;
    }
    count(m, n);
    while (!bands && pieces() * outputs < kEnough &&
           std::min(rows, m) * std::min(columns, n) * k >= 2 * kLeastFmas) {
      if (columns > 32 && n > 32) {
        columns /= 2;
      } else if (rows > 16 && m >= 48) {
        rows /= 2;
      } else {
        break;
      }
      count(m, n);
    }
    // The same number of tiles, of the same size as far as can be.
    if (down > 0) rows = (m + down - 1) / down;
    if (across > 0) columns = std::min(columns, (n + 16 * across - 1) / (16 * across) * 16);
    count(m, n);
  }

  constexpr std::int64_t pieces() const { return down * across; }

 private:
  // Of pieces, for any number of threads; of work in one, which takes a core some microseconds.
  static constexpr std::int64_t kEnough = 96, kLeastFmas = 1 << 18, kBandRows = 8;

  /// Whether tiles are whole rows. Where rows do not end with a line, tiles beside each other share one in every row of them,
  /// and two threads hand it to and fro: M = 26, N = 193, K = 13 took two cores of a Xeon 3.3 us, beside 0.9 with N = 192. Not
  /// where a band would be much work, which more threads could share.
  static constexpr bool by_bands(std::int64_t m, std::int64_t n, std::int64_t k) {
    constexpr std::int64_t kLine = 16, kFewRows = 64;
    const std::int64_t most = m >= kFewRows ? 1 << 16 : 1 << 14;  // of the right side
    return n % kLine != 0 && n > kLine && m > kBandRows && n <= most / std::max<std::int64_t>(1, k);
  }

  constexpr void count(std::int64_t m, std::int64_t n) {
    down = (m + rows - 1) / rows;
    across = (n + columns - 1) / columns;
  }
};

}  // namespace fulcrum::ops
