// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// lstm_cell: four sums of products for each hidden unit of each batch row, then the point-wise part at once.
#include <fulcrum/ops/lstm_cell.h>

#include "backends/scalar/common.h"

namespace fulcrum::backends::scalar::kernels {
namespace {

enum Pointer { kX, kH, kC, kInputWeights, kHiddenWeights, kBias, kNextH, kNextC };
enum Dim { kBatch, kInputs, kHidden };

float sigmoid(float x) {
  const float t = std::exp(-std::abs(x));
  return (x >= 0 ? 1 : t) / (1 + t);
}

float gate(const fulcrum_args& a, std::int64_t row, std::int64_t weight_row) {
  const std::int64_t inputs = a.dim[kInputs], hidden = a.dim[kHidden];
  const float* wx = a.in<float>(kInputWeights) + weight_row * inputs;
  const float* wh = a.in<float>(kHiddenWeights) + weight_row * hidden;
  const float* x = a.in<float>(kX) + row * inputs;
  const float* h = a.in<float>(kH) + row * hidden;
  const float from_input = sum_in_four(0, inputs, [&](std::int64_t i) { return wx[i] * x[i]; });
  const float from_hidden = sum_in_four(0, hidden, [&](std::int64_t i) { return wh[i] * h[i]; });
  return a.in<float>(kBias)[weight_row] + from_input + from_hidden;
}

void step(const fulcrum_args& a, std::int64_t row, std::int64_t unit) {
  const std::int64_t hidden = a.dim[kHidden], at = row * hidden + unit;
  const float i = sigmoid(gate(a, row, ops::kGateInput * hidden + unit));
  const float f = sigmoid(gate(a, row, ops::kGateForget * hidden + unit));
  const float g = std::tanh(gate(a, row, ops::kGateCell * hidden + unit));
  const float o = sigmoid(gate(a, row, ops::kGateOutput * hidden + unit));
  const float c = f * a.in<float>(kC)[at] + i * g;
  a.out<float>(kNextC)[at] = c;
  a.out<float>(kNextH)[at] = o * std::tanh(c);
}

void partial(const fulcrum_args* a, std::int32_t, std::int64_t begin, std::int64_t end, void*) {
  const std::int64_t row_blocks = (a->dim[kBatch] + ops::kLstmRows - 1) / ops::kLstmRows;
  for (std::int64_t piece = begin; piece < end; ++piece) {
    const std::int64_t unit = piece / row_blocks * ops::kLstmUnits;
    const std::int64_t row = piece % row_blocks * ops::kLstmRows;
    for (std::int64_t r = row; r < std::min(row + ops::kLstmRows, a->dim[kBatch]); ++r) {
      for (std::int64_t u = unit; u < std::min(unit + ops::kLstmUnits, a->dim[kHidden]); ++u) step(*a, r, u);
    }
  }
}

fulcrum_status run(const fulcrum_args* a, void*, std::int64_t count) {
  const std::int64_t row_blocks = (a->dim[kBatch] + ops::kLstmRows - 1) / ops::kLstmRows;
  const std::int64_t unit_blocks = (a->dim[kHidden] + ops::kLstmUnits - 1) / ops::kLstmUnits;
  for (std::int64_t i = 0; i < count; ++i) partial(a, 0, 0, row_blocks * unit_blocks, nullptr);
  return done();
}

}  // namespace

std::span<const fulcrum_kernel> lstm_cell() {
  static const fulcrum_kernel kernels[] = {make_kernel(1, run, partial)};
  return kernels;
}

}  // namespace fulcrum::backends::scalar::kernels
