// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// What fits rest on: weights that are not negative, inverses, and what neighbours say.
#include "executor/least_squares.h"

#include <gtest/gtest.h>

#include <cmath>

#include "executor/residual.h"

namespace fulcrum::executor {
namespace {

TEST(LeastSquares, FindsWeightsAndNeverANegativeOne) {
  Matrix a(4, 3);
  std::vector<double> b(4);
  for (std::size_t r = 0; r < 4; ++r) {
    const double x = static_cast<double>(r + 1);
    a(r, 0) = 1;
    a(r, 1) = x;
    a(r, 2) = -x * x;  // would want a negative weight for nothing
    b[r] = 2 + 3 * x;
  }
  const auto weights = least_squares_nonnegative(a, b);
  EXPECT_NEAR(weights[0], 2, 0.05);
  EXPECT_NEAR(weights[1], 3, 0.05);
  EXPECT_GE(weights[2], 0);
}

TEST(LeastSquares, InvertsWhatIsPositiveAndRefusesTheRest) {
  Matrix a(2, 2);
  a(0, 0) = 4;
  a(1, 1) = 2;
  a(0, 1) = a(1, 0) = 1;
  const auto inverse = inverse_of_positive(a);
  ASSERT_TRUE(inverse);
  EXPECT_NEAR((*inverse)(0, 0) * 4 + (*inverse)(0, 1), 1, 1e-12);
  EXPECT_NEAR((*inverse)(1, 0) * 4 + (*inverse)(1, 1), 0, 1e-12);
  a(1, 1) = 0.1;
  EXPECT_FALSE(inverse_of_positive(a));
}

TEST(LeastSquares, TheInverseTimesTheMatrixIsOne) {
  constexpr std::size_t kSize = 23;
  Matrix a(kSize, kSize);
  for (std::size_t i = 0; i < kSize; ++i) {
    for (std::size_t j = 0; j < kSize; ++j)
      a(i, j) =
          std::exp(-0.1 * std::abs(static_cast<double>(i) - static_cast<double>(j))) + (i == j ? 0.01 : 0);
  }
  const auto inverse = inverse_of_positive(a);
  ASSERT_TRUE(inverse);
  for (std::size_t i = 0; i < kSize; ++i) {
    for (std::size_t j = 0; j < kSize; ++j) {
      double sum = 0;
      for (std::size_t k = 0; k < kSize; ++k) sum += a(i, k) * (*inverse)(k, j);
      EXPECT_NEAR(sum, i == j ? 1 : 0, 1e-10) << i << ' ' << j;
    }
  }
}

TEST(Residual, GoesThroughItsPointsAndFadesAwayFromThem) {
  std::vector<std::array<float, kMostFeatures>> points(2);
  points[1][0] = 1;
  const ResidualBasis basis(points, 1, 1, 1e-6);
  const std::vector<double> values{0.3, -0.1};
  const ResidualFit fit = basis.fit(values);
  const auto value = [&](float x) {
    return fit.weights[0] * closeness(x * x, 1) + fit.weights[1] * closeness((x - 1) * (x - 1), 1);
  };
  EXPECT_NEAR(value(0), 0.3, 1e-3);
  EXPECT_NEAR(value(1), -0.1, 1e-3);
  EXPECT_NEAR(value(20), 0, 1e-3);
}

}  // namespace
}  // namespace fulcrum::executor
