// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// The scales of a closed form from a few cells: how far off each of its parts is.
#include <algorithm>
#include <array>
#include <cmath>

#include "model/calibration.h"

namespace fulcrum::model {
namespace {

constexpr double kCellSigma = 0.08;  // what repeats of a run differ by
constexpr double kHuber = 0.25;      // cells further off count less
constexpr int kIterations = 25;

// Solves m x = v for a small symmetric positive matrix.
std::array<double, kParts> solve(std::array<std::array<double, kParts>, kParts> m,
                                 std::array<double, kParts> v) {
  for (std::size_t i = 0; i < kParts; ++i) {
    for (std::size_t j = i + 1; j < kParts; ++j) {
      const double factor = m[j][i] / m[i][i];
      for (std::size_t k = i; k < kParts; ++k) m[j][k] -= factor * m[i][k];
      v[j] -= factor * v[i];
    }
  }
  for (std::size_t i = kParts; i-- > 0;) {
    for (std::size_t k = i + 1; k < kParts; ++k) v[i] -= m[i][k] * v[k];
    v[i] /= m[i][i];
  }
  return v;
}

}  // namespace

double Scales::seconds(const Parts& parts) const {
  double sum = 0;
  for (std::size_t i = 0; i < kParts; ++i) sum += std::exp(log[i]) * parts[i];
  return sum;
}

Scales fit_scales(std::span<const Evidence> evidence, const Scales& prior, double spread) {
  Scales scales = prior;
  const double pull = 1 / (spread * spread);
  for (int step = 0; step < kIterations; ++step) {
    std::array<std::array<double, kParts>, kParts> m{};
    std::array<double, kParts> v{};
    for (std::size_t i = 0; i < kParts; ++i) {
      m[i][i] = pull;
      v[i] = pull * (prior.log[i] - scales.log[i]);
    }
    for (const Evidence& e : evidence) {
      const double model = scales.seconds(e.parts);
      if (!(model > 0)) continue;
      const double error = std::log(e.seconds / model);
      const double sigma = std::hypot(kCellSigma, e.noise);
      const double weight = std::min(1.0, kHuber / std::max(1e-9, std::abs(error))) / (sigma * sigma);
      std::array<double, kParts> share{};
      for (std::size_t i = 0; i < kParts; ++i) share[i] = std::exp(scales.log[i]) * e.parts[i] / model;
      for (std::size_t i = 0; i < kParts; ++i) {
        for (std::size_t j = 0; j < kParts; ++j) m[i][j] += weight * share[i] * share[j];
        v[i] += weight * share[i] * error;
      }
    }
    double moved = 0;
    const auto change = solve(m, v);
    for (std::size_t i = 0; i < kParts; ++i) {
      scales.log[i] += std::clamp(change[i], -1.0, 1.0);
      moved += std::abs(change[i]);
    }
    if (moved < 1e-9) break;
  }
  return scales;
}

}  // namespace fulcrum::model
