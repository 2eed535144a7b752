// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// What the ways of lstm_cell share: the arguments by name, and the point-wise part behind the sums of the gates.
// Included once per instruction set.
#include <fulcrum/ops/lstm_cell.h>

#include "backends/simd/math-inl.h"

#if defined(FULCRUM_BACKENDS_SIMD_LSTM_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FULCRUM_BACKENDS_SIMD_LSTM_INL_H_
#undef FULCRUM_BACKENDS_SIMD_LSTM_INL_H_
#else
#define FULCRUM_BACKENDS_SIMD_LSTM_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace fulcrum::backends::simd::HWY_NAMESPACE {

inline constexpr std::size_t kGates = ops::kLstmGates;
// Batch rows at once: their sums, a vector of each row and one of weights are 6 * 4 + 6 + 1 of 32 registers with AVX-512,
// 3 * 4 + 3 + 1 of 16 elsewhere.
inline constexpr std::size_t kTileRows = HWY_TARGET <= HWY_AVX3 ? 6 : 3;

/// The arguments by name.
struct LstmCell {
  const float *x, *h, *c, *x_weights, *h_weights, *bias;
  float *next_h, *next_c;
  std::size_t inputs, hidden;

  explicit LstmCell(const fulcrum_args& a)
      : x(a.in<float>(0)),
        h(a.in<float>(1)),
        c(a.in<float>(2)),
        x_weights(a.in<float>(3)),
        h_weights(a.in<float>(4)),
        bias(a.in<float>(5)),
        next_h(a.out<float>(6)),
        next_c(a.out<float>(7)),
        inputs(static_cast<std::size_t>(a.dim[1])),
        hidden(static_cast<std::size_t>(a.dim[2])) {}
};

/// The state of `lanes` hidden units from `unit` on of one batch row, from the sums of their gates.
HWY_INLINE void step_units(const LstmCell& cell, const Floats (&sum)[kGates], std::size_t row,
                           std::size_t unit, std::size_t lanes) {
  const Float d;
  const std::size_t at = row * cell.hidden + unit;
  const auto before = lanes == kLanes ? hn::LoadU(d, cell.c + at) : load_first(cell.c + at, lanes);
  const auto kept = hn::Mul(sigmoid(sum[ops::kGateForget]), before);
  const auto c = hn::MulAdd(sigmoid(sum[ops::kGateInput]), tanh(sum[ops::kGateCell]), kept);
  const auto h = hn::Mul(sigmoid(sum[ops::kGateOutput]), tanh(c));
  if (lanes == kLanes) {
    hn::StoreU(c, d, cell.next_c + at);
    hn::StoreU(h, d, cell.next_h + at);
  } else {
    store_first(c, cell.next_c + at, lanes);
    store_first(h, cell.next_h + at, lanes);
  }
}

}  // namespace fulcrum::backends::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
