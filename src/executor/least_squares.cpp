// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// See least_squares.h. Fits have at most a dozen columns and some sixty rows.
#include "executor/least_squares.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace fulcrum::executor {
namespace {

// Of the diagonal: columns that say the same share their weight instead of one of them taking all.
constexpr double kRidge = 1e-6;

/// Gram matrix and right side of the normal equations, columns scaled to length one.
struct Normal {
  Normal(const Matrix& a, std::span<const double> b)
      : matrix(a.columns, a.columns), right(a.columns), scale(a.columns) {
    for (std::size_t c = 0; c < a.columns; ++c) {
      double sum = 0;
      for (std::size_t r = 0; r < a.rows; ++r) sum += a(r, c) * a(r, c);
      scale[c] = sum > 0 ? 1 / std::sqrt(sum) : 0;
    }
    for (std::size_t i = 0; i < a.columns; ++i) {
      for (std::size_t r = 0; r < a.rows; ++r) right[i] += a(r, i) * scale[i] * b[r];
      for (std::size_t j = 0; j < a.columns; ++j) {
        for (std::size_t r = 0; r < a.rows; ++r) matrix(i, j) += a(r, i) * scale[i] * a(r, j) * scale[j];
      }
      matrix(i, i) += kRidge;
    }
  }
  double gradient(std::size_t i, std::span<const double> x) const {
    double value = right[i];
    for (std::size_t j = 0; j < x.size(); ++j) value -= matrix(i, j) * x[j];
    return value;
  }
  Matrix matrix;
  std::vector<double> right, scale;
};

/// The plain solution over the columns in `in`; zero elsewhere.
std::vector<double> solve(const Normal& normal, const std::vector<bool>& in) {
  std::vector<std::size_t> used;
  for (std::size_t i = 0; i < in.size(); ++i) {
    if (in[i]) used.push_back(i);
  }
  Matrix part(used.size(), used.size());
  for (std::size_t i = 0; i < used.size(); ++i) {
    for (std::size_t j = 0; j < used.size(); ++j) part(i, j) = normal.matrix(used[i], used[j]);
  }
  std::vector<double> x(in.size(), 0);
  const auto inverse = inverse_of_positive(part);
  for (std::size_t i = 0; inverse && i < used.size(); ++i) {
    for (std::size_t j = 0; j < used.size(); ++j) x[used[i]] += (*inverse)(i, j) * normal.right[used[j]];
  }
  return x;
}

}  // namespace

// Lawson and Hanson: columns enter one by one, the one that helps most first, and leave when their weight would become
// negative.
std::vector<double> least_squares_nonnegative(const Matrix& a, std::span<const double> b) {
  const Normal normal(a, b);
  const std::size_t n = a.columns;
  std::vector<double> x(n, 0);
  std::vector<bool> in(n, false);
  for (std::size_t step = 0; step < 3 * n; ++step) {
    std::size_t enter = n;
    double most = 1e-9;
    for (std::size_t i = 0; i < n; ++i) {
      if (in[i] || normal.scale[i] == 0) continue;
      const double gradient = normal.gradient(i, x);
      if (gradient > most) {
        most = gradient;
        enter = i;
      }
    }
    if (enter == n) break;
    in[enter] = true;
    for (std::size_t leave = 0; leave < n; ++leave) {
      const std::vector<double> wanted = solve(normal, in);
      double reach = 1;
      for (std::size_t i = 0; i < n; ++i) {
        if (in[i] && wanted[i] <= 0) reach = std::min(reach, x[i] / (x[i] - wanted[i] + 1e-300));
      }
      for (std::size_t i = 0; i < n; ++i) {
        x[i] += reach * (wanted[i] - x[i]);
        if (in[i] && x[i] <= 1e-12) {
          in[i] = false;
          x[i] = 0;
        }
      }
      if (reach >= 1) break;
    }
  }
  for (std::size_t i = 0; i < n; ++i) x[i] *= normal.scale[i];
  return x;
}

// a = L L', then L inverted row by row, then inverse = L^-1' L^-1: every inner loop runs along rows.
std::optional<Matrix> inverse_of_positive(const Matrix& a) {
  const std::size_t n = a.rows;
  Matrix lower = a;
  std::vector<double> column(n);
  for (std::size_t k = 0; k < n; ++k) {
    if (!(lower(k, k) > 0)) return {};
    const double pivot = lower(k, k) = std::sqrt(lower(k, k));
    for (std::size_t i = k + 1; i < n; ++i) column[i] = lower(i, k) /= pivot;
    for (std::size_t i = k + 1; i < n; ++i) {
      double* row = &lower(i, 0);
      for (std::size_t j = k + 1; j <= i; ++j) row[j] -= column[i] * column[j];
    }
  }
  for (std::size_t i = 0; i < n; ++i) {
    double* row = &lower(i, 0);
    std::copy(row, row + i, column.begin());
    std::fill(row, row + i, 0.0);
    const double pivot = std::exchange(row[i], 1.0);
    for (std::size_t k = 0; k < i; ++k) {
      const double* above = &lower(k, 0);
      for (std::size_t j = 0; j <= k; ++j) row[j] -= column[k] * above[j];
    }
    for (std::size_t j = 0; j <= i; ++j) row[j] /= pivot;
  }
  Matrix inverse(n, n);
  for (std::size_t k = 0; k < n; ++k) {
    const double* row = &lower(k, 0);
    for (std::size_t i = 0; i <= k; ++i) {
      double* to = &inverse(i, 0);
      for (std::size_t j = 0; j <= i; ++j) to[j] += row[i] * row[j];
    }
  }
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = i + 1; j < n; ++j) inverse(i, j) = inverse(j, i);
  }
  return inverse;
}

}  // namespace fulcrum::executor
