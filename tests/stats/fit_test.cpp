// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Growth exponents and straight lines.
#include <fulcrum/stats.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "stats/streams.h"

namespace fulcrum::stats {
namespace {

using testing::Stream;

TEST(Growth, OfAPowerLawIsItsExponent) {
  std::vector<double> sizes, seconds;
  for (double n = 16; n <= 4096; n *= 2) {
    sizes.push_back(n);
    seconds.push_back(3e-9 * n * n * n);
  }
  const Growth g = fit_growth(sizes, seconds);
  EXPECT_NEAR(g.exponent, 3, 1e-12);
  EXPECT_NEAR(g.coefficient, 3e-9, 1e-18);
  EXPECT_NEAR(g.max_log_residual, 0, 1e-11);
  ASSERT_TRUE(g.interval);
  EXPECT_NEAR(g.interval->low, 3, 1e-11);
}

TEST(Growth, IsNotTiltedByOneBadSize) {
  std::vector<double> sizes, seconds;
  for (int i = 0; i < 9; ++i) {
    sizes.push_back(std::pow(2.0, i));
    seconds.push_back(std::pow(2.0, i) * (i == 8 ? 10 : 1));
  }
  const Growth g = fit_growth(sizes, seconds);
  EXPECT_NEAR(g.exponent, 1, 0.01);
  EXPECT_NEAR(g.max_log_residual, std::log(10.0), 0.05);
}

TEST(Growth, HasAnIntervalFromFiveSizesOn) {
  const std::vector<double> x{1, 2, 4, 8, 16};
  EXPECT_TRUE(fit_growth(x, x).interval);
  EXPECT_FALSE(fit_growth(std::span(x).first(4), std::span(x).first(4)).interval);
  EXPECT_TRUE(fit_growth(std::span(x).first(4), std::span(x).first(4), 0.1).interval);
  EXPECT_TRUE(std::isnan(fit_growth(std::span(x).first(1), std::span(x).first(1)).exponent));
  EXPECT_FALSE(fit_growth(std::vector<double>(6, 2.0), std::vector<double>(6, 1.0)).interval);
}

TEST(Growth, IntervalCoversTheExponentForFewAndManySizes) {
  Stream stream(81);
  for (const int count : {5, 8, 20, 80}) {
    int covered = 0;
    for (int run = 0; run < 500; ++run) {
      std::vector<double> sizes, seconds;
      for (int i = 0; i < count; ++i) {
        sizes.push_back(std::pow(1.5, i));
        seconds.push_back(std::pow(sizes.back(), 1.5) * stream.skewed(0.1));
      }
      const Growth g = fit_growth(sizes, seconds);
      covered += g.interval->low <= 1.5 && 1.5 <= g.interval->high;
    }
    EXPECT_GE(covered, 475 - 15) << count;
    EXPECT_LE(covered, 498) << count;
  }
}

TEST(AffineFit, GoesThroughPointsOnALine) {
  const std::vector<double> x{1, 2, 3, 10}, y{5, 7, 9, 23};
  const Affine f = fit_affine(x, y);
  EXPECT_NEAR(f.slope, 2, 1e-12);
  EXPECT_NEAR(f.intercept(), 3, 1e-12);
  EXPECT_NEAR(f.at(100), 203, 1e-10);
  EXPECT_NEAR(f.max_residual, 0, 1e-12);
}

TEST(AffineFit, KeepsItsDigitsOnTimestamps) {
  std::vector<double> host, device;
  for (int i = 0; i < 100; ++i) {
    host.push_back(1.7e18 + 1e6 * i);
    device.push_back(4e12 + 1.0001 * 1e6 * i);
  }
  const Affine f = fit_affine(host, device);
  EXPECT_NEAR(f.slope, 1.0001, 1e-6);
  EXPECT_NEAR(f.at(host[50]), device[50], 300);  // one unit in the last place of the host clock is 256
}

TEST(AffineFit, WeightsDecideWhoIsBelieved) {
  const std::vector<double> x{0, 1, 2, 3}, y{0, 1, 2, 30}, w{1, 1, 1, 1e-12};
  EXPECT_NEAR(fit_affine(x, y, w).slope, 1, 1e-9);
  EXPECT_GT(fit_affine(x, y).slope, 5);
}

TEST(AffineFit, StandardErrorsMatchTheSpreadOfRepeatedFits) {
  Stream stream(82);
  std::vector<double> slopes, intercepts;
  double slope_stderr = 0, intercept_stderr = 0;
  for (int run = 0; run < 1000; ++run) {
    std::vector<double> x, y;
    for (int i = 1; i <= 10; ++i) {
      x.push_back(i);
      y.push_back(4 + 0.5 * i + 0.1 * stream.normal());
    }
    const Affine f = fit_affine(x, y);
    slopes.push_back(f.slope);
    intercepts.push_back(f.intercept());
    slope_stderr += f.slope_stderr / 1000;
    intercept_stderr += f.intercept_stderr / 1000;
  }
  EXPECT_NEAR(stddev(slopes) / slope_stderr, 1, 0.1);
  EXPECT_NEAR(stddev(intercepts) / intercept_stderr, 1, 0.1);
}

TEST(AffineFit, OfOnePointHasNoSlope) {
  EXPECT_TRUE(std::isnan(fit_affine(std::vector<double>{1, 1}, std::vector<double>{2, 3}).slope));
  EXPECT_TRUE(std::isnan(fit_affine({}, {}).slope));
}

}  // namespace
}  // namespace fulcrum::stats
