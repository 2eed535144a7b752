// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// The little linear algebra that fits need: least squares without negative weights, and symmetric systems.
#pragma once

#include <optional>
#include <span>
#include <vector>

namespace fulcrum::executor {

/// Row-major, rows x columns.
struct Matrix {
  Matrix(std::size_t row_count, std::size_t column_count)
      : rows(row_count), columns(column_count), values(row_count * column_count) {}
  double& operator()(std::size_t r, std::size_t c) { return values[r * columns + c]; }
  double operator()(std::size_t r, std::size_t c) const { return values[r * columns + c]; }
  std::size_t rows, columns;
  std::vector<double> values;
};

/// x >= 0 that minimises |A x - b|.
std::vector<double> least_squares_nonnegative(const Matrix& a, std::span<const double> b);

/// Inverse of a symmetric positive definite matrix; none when it is not.
std::optional<Matrix> inverse_of_positive(const Matrix& a);

}  // namespace fulcrum::executor
