// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// What is left over of times after a closed form, as a smooth function of the features: a Gaussian process with a Matern
// 3/2 kernel that fades to nothing away from its points.
#pragma once

#include <array>
#include <span>
#include <vector>

#include "executor/features.h"

namespace fulcrum::executor {

/// Points that a surface needs.
inline constexpr std::size_t kLeastForSurface = 5;
/// Reaches of a neighbour, in units of the features' own scale, and shares of noise that are tried.
inline constexpr float kScales[] = {0.6F, 1.2F, 2.4F};
inline constexpr double kNuggets[] = {0.01, 0.1, 2};

/// exp(-r)(1 + r) with r = sqrt(3) distance / scale.
float closeness(float distance_squared, float scale);

struct ResidualFit {
  std::vector<double> weights;  // by point
  std::vector<double> misses;   // by point: what it is above what the others say of it
  double error = 0;             // root mean square of the misses
};
/// Inverse kernel matrix of some points, shared by all candidates that were measured at them.
class ResidualBasis {
 public:
  ResidualBasis(std::span<const std::array<float, kMostFeatures>> at, int features, float scale,
                double nugget);
  ResidualFit fit(std::span<const double> values) const;

 private:
  std::size_t count_;
  std::vector<double> inverse_;  // row major; empty: not to be had
};

}  // namespace fulcrum::executor
