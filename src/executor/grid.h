// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Where the answer is clear: 16 x 16 cells over (log2 flops, log2 bytes). A cell has an answer only when it holds for all
// calls that were tried in it; everything else is the model's business. Read-only once it is built.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "executor/choose.h"
#include "executor/predictor.h"

namespace fulcrum::executor {

/// log2 without a call: exact at powers of two, at most 0.09 too low between them. Finite x >= 1.
inline float quick_log2(double x) {
  const auto bits = __builtin_bit_cast(std::uint64_t, x);
  return static_cast<float>(static_cast<std::int64_t>(bits >> 20) - (std::int64_t{1023} << 32)) * 0x1p-32F;
}

class Grid {
 public:
  static constexpr int kSide = 16;
  struct Cell {
    std::uint8_t best = 0, runner_up = 0;  // equal: all others are as fast, or cannot do it
    std::int16_t margin = -1;  // 256 log2(runner-up / best): the least of all, less one sigma; < 0: not clear
    float seconds = 0;         // of the best, the mean: as they are, since a decision hands them on
    float runner_seconds = 0;
  };

  /// One call that was tried: ln(seconds) of the candidates in `possible`.
  struct Trial {
    double flops = 1, bytes = 1;
    Estimates costs;
    Mask possible = 0;
  };
  /// Cells with fewer trials than `least` are not clear.
  Grid(std::span<const Trial> trials, const Preference& preference, int least);
  Grid() = default;

  /// Null: outside, or not clear.
  const Cell* find(double flops, double bytes) const {
    const int at = index_of(flops, bytes);
    return at >= 0 && cells_[static_cast<std::size_t>(at)].margin >= 0 ? &cells_[static_cast<std::size_t>(at)]
                                                                       : nullptr;
  }
  int clear_cells() const;

 private:
  int index_of(double flops, double bytes) const {
    const float x = (quick_log2(flops) - flops_low_) * flops_scale_;
    const float y = (quick_log2(bytes) - bytes_low_) * bytes_scale_;
    if (!(x >= 0 && x < kSide && y >= 0 && y < kSide)) return -1;
    return static_cast<int>(y) * kSide + static_cast<int>(x);
  }
  void settle(Cell& cell, std::span<const Trial* const> trials, const Preference& preference);

  float flops_low_ = 0, flops_scale_ = 0, bytes_low_ = 0, bytes_scale_ = 0;
  std::array<Cell, std::size_t{kSide} * kSide> cells_{};
};

}  // namespace fulcrum::executor
