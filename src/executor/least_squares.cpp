// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// See least_squares.h. Fits have at most a dozen columns and some sixty rows.
#include "executor/least_squares.h"

#include <algorithm>
#include <cmath>

namespace fulcrum::executor {
namespace {

constexpr int kSweeps = 400;
// Of the diagonal: columns that say the same share their weight instead of one of them taking all.
constexpr double kRidge = 1e-4;

}  // namespace

std::vector<double> least_squares_nonnegative(const Matrix& a, std::span<const double> b) {
  const std::size_t n = a.columns;
  std::vector<double> scale(n, 0), right(n, 0), x(n, 0);
  for (std::size_t c = 0; c < n; ++c) {
    for (std::size_t r = 0; r < a.rows; ++r) scale[c] += a(r, c) * a(r, c);
    scale[c] = scale[c] > 0 ? 1 / std::sqrt(scale[c]) : 0;
  }
  Matrix normal(n, n);
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t r = 0; r < a.rows; ++r) right[i] += a(r, i) * scale[i] * b[r];
    for (std::size_t j = 0; j < n; ++j) {
      for (std::size_t r = 0; r < a.rows; ++r) normal(i, j) += a(r, i) * scale[i] * a(r, j) * scale[j];
    }
    normal(i, i) += kRidge;
  }
  for (int sweep = 0; sweep < kSweeps; ++sweep) {
    double moved = 0;
    for (std::size_t i = 0; i < n; ++i) {
      double gradient = right[i];
      for (std::size_t j = 0; j < n; ++j) gradient -= normal(i, j) * x[j];
      const double next = std::max(0.0, x[i] + gradient / normal(i, i));
      moved = std::max(moved, std::abs(next - x[i]));
      x[i] = next;
    }
    if (moved < 1e-9) break;
  }
  for (std::size_t i = 0; i < n; ++i) x[i] *= scale[i];
  return x;
}

std::optional<Matrix> inverse_of_positive(const Matrix& a) {
  const std::size_t n = a.rows;
  Matrix lower(n, n), inverse(n, n);
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = 0; j <= i; ++j) {
      double sum = a(i, j);
      for (std::size_t k = 0; k < j; ++k) sum -= lower(i, k) * lower(j, k);
      if (i == j && sum <= 0) return {};
      lower(i, j) = i == j ? std::sqrt(sum) : sum / lower(j, j);
    }
  }
  for (std::size_t column = 0; column < n; ++column) {
    std::vector<double> x(n, 0);
    for (std::size_t i = 0; i < n; ++i) {
      double sum = i == column ? 1 : 0;
      for (std::size_t k = 0; k < i; ++k) sum -= lower(i, k) * x[k];
      x[i] = sum / lower(i, i);
    }
    for (std::size_t i = n; i-- > 0;) {
      double sum = x[i];
      for (std::size_t k = i + 1; k < n; ++k) sum -= lower(k, i) * x[k];
      x[i] = sum / lower(i, i);
      inverse(i, column) = x[i];
    }
  }
  return inverse;
}

}  // namespace fulcrum::executor
