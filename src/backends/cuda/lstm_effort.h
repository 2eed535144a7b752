// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// What a call of lstm_cell takes each of its kernels: nanoseconds with the launch, fitted like those of effort.h. The op
// takes the kernel whose number is the smallest.
#pragma once

#include <algorithm>
#include <cmath>

namespace fulcrum::backends::cuda::effort {

struct Cell {
  double batch, inputs, hidden;
  double parts(double size) const { return std::ceil(inputs / size) + std::ceil(hidden / size); }
  bool in_parts_of(double size) const { return std::fmod(inputs, size) == 0 && std::fmod(hidden, size) == 0; }
};

inline constexpr double kCellSms = 132;

/// Warps with `rows` batch rows of one unit: rounds of 32 terms one after the other, for which other warps of the
/// multiprocessor wait too.
inline double cell_warps(const Cell& cell, double rows) {
  const double rounds = cell.parts(32), warps = std::ceil(cell.batch / rows) * cell.hidden / kCellSms;
  const bool whole = cell.in_parts_of(32);  // loads without conditions
  if (rows == 1) return 10130 + (whole ? 0 : 151) * rounds + warps * (117 + (whole ? 40 : 0) * rounds);
  if (rows == 4) return 10060 + 190 * rounds + 10.4 * warps * rounds;
  if (rows == 8) return 10010 + (whole ? 109 : 212) * rounds + warps * (74 + 20.9 * rounds);
  return 10190 + (whole ? 190 : 280) * rounds + warps * (100 + 21.2 * rounds);
}

/// Batch rows of a tile: those of 64 read less than those of 32, which are more.
inline double cell_tile_rows(const Cell& cell, double sms = kCellSms) {
  return cell.batch > 32 && 4 * std::ceil(cell.hidden / 8) * std::ceil(cell.batch / 64) >= 3 * sms ? 64 : 32;
}

/// Tiles of so many rows and eight units: slabs of 128 terms one after the other.
inline double cell_tiles(const Cell& cell, double rows) {
  const double ctas = std::ceil(cell.batch / rows) * std::ceil(cell.hidden / 8) / kCellSms;
  const bool small = rows <= 32;
  return 10120 + cell.parts(128) * std::max(small ? 1900.0 : 2700.0, (small ? 600 : 1200) * ctas);
}

inline double cell_tensor(const Cell& cell) {
  const double rows = cell.batch <= 8    ? 8
                      : cell.batch <= 16 ? 16
                      : cell.batch <= 32 ? 32
                                         : 64,
               ctas = std::ceil(cell.batch / rows) * std::ceil(cell.hidden / 8) / kCellSms;
  const double slab = (cell.in_parts_of(4) ? 436 : 716) + 30.4 * rows;
  return 10770 + cell.parts(128) * slab * std::max(1.0, 0.6 * ctas);
}

/// Of the kernel that the op takes.
inline double cell_fastest(const Cell& cell) {
  const double one = cell.batch == 1 ? cell_warps(cell, 1) : cell_warps(cell, 4);
  return std::min({one, cell_warps(cell, 4), cell_warps(cell, 8), cell_warps(cell, 16),
                   cell_tiles(cell, cell_tile_rows(cell))});
}

}  // namespace fulcrum::backends::cuda::effort
