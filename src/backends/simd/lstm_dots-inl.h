// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// lstm_cell on weights as they lie: the sum of a gate is a dot product with a row of weights, whose terms are in the lanes
// of a vector. What tiles over laid-out weights save is less than what laying them out for a single call costs.
// Included once per instruction set.
#include "backends/simd/lstm-inl.h"
#include "backends/simd/sums-inl.h"

#if defined(FULCRUM_BACKENDS_SIMD_LSTM_DOTS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FULCRUM_BACKENDS_SIMD_LSTM_DOTS_INL_H_
#undef FULCRUM_BACKENDS_SIMD_LSTM_DOTS_INL_H_
#else
#define FULCRUM_BACKENDS_SIMD_LSTM_DOTS_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace fulcrum::backends::simd::HWY_NAMESPACE {

/// sum += the products of kRows rows of `from` with a unit's row of weights in each gate, `gate` floats apart.
template <std::size_t kRows>
HWY_INLINE void add_dots(const float* weights, std::size_t gate, const float* from, std::size_t n,
                         Floats (&sum)[kRows][kGates]) {
  const Float d;
  const auto add = [&](const auto& load) HWY_ATTR {
    Floats left[kRows];
    HWY_UNROLL(8)
    for (std::size_t i = 0; i < kRows; ++i) left[i] = load(from + i * n);
    HWY_UNROLL(4)
    for (std::size_t g = 0; g < kGates; ++g) {
      const auto right = load(weights + g * gate);
      HWY_UNROLL(8)
      for (std::size_t i = 0; i < kRows; ++i) sum[i][g] = hn::MulAdd(left[i], right, sum[i][g]);
    }
  };
  std::size_t k = 0;
  for (; k + kLanes <= n; k += kLanes) add([&](const float* at) HWY_ATTR { return hn::LoadU(d, at + k); });
  if (k < n) add([&](const float* at) HWY_ATTR { return load_first(at + k, n - k); });
}

/// The four gates of one hidden unit for kRows batch rows; those of a row next to each other, rows `stride` floats apart.
template <std::size_t kRows>
HWY_NOINLINE void unit_dots(const LstmCell& cell, std::size_t row, std::size_t unit, float* sums,
                            std::size_t stride) {
  const Float d;
  Floats sum[kRows][kGates];
  HWY_UNROLL(8)
  for (std::size_t i = 0; i < kRows; ++i) {
    HWY_UNROLL(4)
    for (std::size_t g = 0; g < kGates; ++g) sum[i][g] = hn::Zero(d);
  }
  add_dots<kRows>(cell.x_weights + unit * cell.inputs, cell.hidden * cell.inputs, cell.x + row * cell.inputs,
                  cell.inputs, sum);
  add_dots<kRows>(cell.h_weights + unit * cell.hidden, cell.hidden * cell.hidden, cell.h + row * cell.hidden,
                  cell.hidden, sum);
  HWY_UNROLL(8)
  for (std::size_t i = 0; i < kRows; ++i)
    store_four_sums(d, sum[i][0], sum[i][1], sum[i][2], sum[i][3], sums + i * stride);
}

using UnitDots = void (*)(const LstmCell&, std::size_t, std::size_t, float*, std::size_t);
template <std::size_t... kIndex>
constexpr std::array<UnitDots, sizeof...(kIndex)> unit_dots_by_rows(std::index_sequence<kIndex...>) {
  return {unit_dots<kIndex + 1>...};
}
inline constexpr auto kUnitDots = unit_dots_by_rows(std::make_index_sequence<kTileRows>());

/// Hidden units [first, last) of batch rows [row, end), at most a piece of the call.
inline void step_in_place(const LstmCell& cell, std::size_t row, std::size_t end, std::size_t first,
                          std::size_t last) {
  constexpr std::size_t kRows = ops::kLstmRows, kStride = ops::kLstmUnits * kGates;
  static_assert(ops::kLstmUnits % kLanes == 0);
  const Float d;
  HWY_ALIGN float sums[kRows * kStride];
  if (last - first < ops::kLstmUnits) std::fill_n(sums, (end - row) * kStride, 0.0F);
  // A row of weights is read once, and the batch rows lie in a near cache.
  for (std::size_t unit = first; unit < last; ++unit) {
    std::size_t i = row;
    for (std::size_t left = (end - row + kTileRows - 1) / kTileRows; i < end; --left) {
      const std::size_t rows = (end - i + left - 1) / left;
      kUnitDots[rows - 1](cell, i, unit, sums + (i - row) * kStride + (unit - first) * kGates, kStride);
      i += rows;
    }
  }
  for (std::size_t unit = first; unit < last; unit += kLanes) {
    const std::size_t lanes = std::min(kLanes, last - unit);
    Floats bias[kGates];
    for (std::size_t g = 0; g < kGates; ++g) {
      const float* at = cell.bias + g * cell.hidden + unit;
      bias[g] = lanes == kLanes ? hn::LoadU(d, at) : load_first(at, lanes);
    }
    for (std::size_t i = row; i < end; ++i) {
      Floats sum[kGates];
      hn::LoadInterleaved4(d, sums + (i - row) * kStride + (unit - first) * kGates, sum[0], sum[1], sum[2],
                           sum[3]);
      HWY_UNROLL(4)
      for (std::size_t g = 0; g < kGates; ++g) sum[g] = hn::Add(sum[g], bias[g]);
      step_units(cell, sum, i, unit, lanes);
    }
  }
}

}  // namespace fulcrum::backends::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
