// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// See residual.h. What a point says about itself when it is left out follows from the inverse alone: value_i -
// weights_i / inverse_ii is the prediction without it.
#include "executor/residual.h"

#include <cmath>

#include "executor/least_squares.h"

namespace fulcrum::executor {

float closeness(float distance_squared, float scale) {
  const float r = std::sqrt(3 * distance_squared) / scale;
  return std::exp(-r) * (1 + r);
}

ResidualBasis::ResidualBasis(std::span<const std::array<float, kMostFeatures>> at, int features, float scale,
                             double nugget)
    : count_(at.size()) {
  Matrix kernel(count_, count_);
  for (std::size_t i = 0; i < count_; ++i) {
    for (std::size_t j = 0; j < count_; ++j) {
      float sum = 0;
      for (int k = 0; k < features; ++k) {
        const float step = at[i][static_cast<std::size_t>(k)] - at[j][static_cast<std::size_t>(k)];
        sum += step * step;
      }
      kernel(i, j) = closeness(sum, scale) + (i == j ? nugget : 0);
    }
  }
  if (const auto inverse = inverse_of_positive(kernel)) inverse_ = inverse->values;
}

ResidualFit ResidualBasis::fit(std::span<const double> values) const {
  ResidualFit fit{std::vector<double>(count_, 0), {values.begin(), values.end()}, 0};
  double sum = 0;
  for (std::size_t i = 0; i < count_; ++i) {
    if (!inverse_.empty()) {
      for (std::size_t j = 0; j < count_; ++j) fit.weights[i] += inverse_[i * count_ + j] * values[j];
      fit.misses[i] = fit.weights[i] / inverse_[i * count_ + i];
    }
    sum += fit.misses[i] * fit.misses[i];
  }
  fit.error = std::sqrt(sum / static_cast<double>(count_));
  return fit;
}

}  // namespace fulcrum::executor
