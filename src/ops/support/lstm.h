// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// What lstm_cell and lstm_sequence share: how networks are drawn, and how near their results must come as a whole.
#pragma once

#include <fmt/format.h>
#include <fulcrum/ops.h>
#include <fulcrum/ops/lstm_cell.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <string>

#include "ops/support/elementwise.h"

namespace fulcrum::ops {

/// Weights and bias of a network as it starts: drawn from [-1, 1], brought within 1/sqrt(hidden).
inline void scale_weights(float* values, std::int64_t n, std::int64_t hidden) {
  const auto scale = static_cast<float>(1 / std::sqrt(static_cast<double>(hidden)));
  for (std::int64_t i = 0; i < n; ++i) values[i] *= scale;
}

/// The bound for any input says little about such networks; empty when their errors are as small as theirs can be.
inline std::string check_network(std::span<const Checked> checked, double largest_error, double rms_error) {
  double worst = 0;
  double squares = 0;
  for (const Checked& one : checked) {
    const double error = std::abs(one.got - one.truth.value);
    worst = std::max(worst, error);
    squares += error * error;
  }
  const double rms = std::sqrt(squares / static_cast<double>(checked.size()));
  if (worst <= largest_error && rms <= rms_error) return {};
  return fmt::format("the errors reach {:.3g} (rms {:.3g}), more than {} ({})", worst, rms, largest_error,
                     rms_error);
}

}  // namespace fulcrum::ops
