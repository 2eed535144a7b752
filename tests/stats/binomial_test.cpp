// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Exact binomial probabilities, ranks and corrections against hand-computed values.
#include <fulcrum/stats.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace fulcrum::stats {
namespace {

TEST(Binomial, PmfEqualsCountedWays) {
  EXPECT_NEAR(binomial_pmf(2, 4, 0.5), 6.0 / 16, 1e-15);
  EXPECT_NEAR(binomial_pmf(3, 5, 0.2), 10 * 0.008 * 0.64, 1e-15);
  EXPECT_NEAR(binomial_pmf(20, 40, 0.5), 137846528820.0 / 1099511627776.0, 1e-14);
  EXPECT_EQ(binomial_pmf(5, 4, 0.5), 0);
  EXPECT_EQ(binomial_pmf(-1, 4, 0.5), 0);
  EXPECT_EQ(binomial_pmf(0, 4, 0), 1);
  EXPECT_EQ(binomial_pmf(4, 4, 1), 1);
}

TEST(Binomial, PmfSumsToOneAcrossTheSwitchOfFactorialFormulas) {
  for (const std::int64_t n : {1, 15, 16, 17, 31, 33, 1000, 100000}) {
    double sum = 0;
    for (std::int64_t k = 0; k <= n; ++k) sum += binomial_pmf(k, n, 0.3);
    EXPECT_NEAR(sum, 1, 1e-9) << n;
  }
}

TEST(Binomial, CdfEqualsCountedWaysInBothTails) {
  EXPECT_NEAR(binomial_cdf(1, 12, 0.5), 13.0 / 4096, 1e-16);
  EXPECT_NEAR(binomial_cdf(10, 12, 0.5), 4095.0 / 4096 - 12.0 / 4096, 1e-15);
  EXPECT_NEAR(binomial_cdf(0, 100, 0.5), std::pow(0.5, 100), 1e-42);
  EXPECT_NEAR(binomial_cdf(28, 29, 0.9), 1 - std::pow(0.9, 29), 1e-14);
  EXPECT_EQ(binomial_cdf(-1, 9, 0.5), 0);
  EXPECT_EQ(binomial_cdf(9, 9, 0.5), 1);
  EXPECT_NEAR(binomial_cdf(50000, 100001, 0.5), 0.5, 1e-9);
}

TEST(Binomial, MedianRanksAreThoseOfTheTables) {
  // Classic 95 % and 99 % tables of the sign test.
  EXPECT_EQ(median_rank(5, 0.05), 0);
  EXPECT_EQ(median_rank(6, 0.05), 1);
  EXPECT_EQ(median_rank(8, 0.05), 1);
  EXPECT_EQ(median_rank(9, 0.05), 2);
  EXPECT_EQ(median_rank(20, 0.05), 6);
  EXPECT_EQ(median_rank(50, 0.05), 18);
  EXPECT_EQ(median_rank(100, 0.05), 40);
  EXPECT_EQ(median_rank(100, 0.01), 37);
  EXPECT_EQ(median_rank(0, 0.05), 0);
}

TEST(Binomial, GateRanksAreTwoFourEight) {
  EXPECT_EQ(median_rank(12, 2 * 0.0125), 2);
  EXPECT_EQ(median_rank(18, 2 * 0.0125), 4);
  EXPECT_EQ(median_rank(27, 2 * 0.025), 8);
}

TEST(Binomial, RanksAreTheLargestAllowedAtEveryNAndLevel) {
  for (const double alpha : {0.05, 0.025, 0.025 / 9, 1e-6}) {
    for (const std::int64_t n : {6, 7, 30, 101, 999, 1025, 3844, 100000}) {
      const std::int64_t r = median_rank(n, alpha);
      EXPECT_LE(2 * binomial_cdf(r - 1, n, 0.5), alpha) << n << " " << alpha;
      EXPECT_GT(2 * binomial_cdf(r, n, 0.5), alpha) << n << " " << alpha;
    }
  }
}

TEST(Binomial, SignTestIsTwoSidedAndNeverAboveOne) {
  EXPECT_NEAR(sign_test(0, 6), 2.0 / 64, 1e-15);
  EXPECT_NEAR(sign_test(10, 2), 2 * 79.0 / 4096, 1e-14);
  EXPECT_EQ(sign_test(5, 5), 1);
  EXPECT_EQ(sign_test(0, 0), 1);
}

TEST(Binomial, NormalQuantileInvertsTheNormalCdf) {
  EXPECT_NEAR(normal_quantile(0.975), 1.959963984540054, 1e-12);
  EXPECT_NEAR(normal_quantile(1e-10), -6.361340902404056, 1e-10);
  EXPECT_NEAR(normal_quantile(0.5), 0, 1e-15);
  EXPECT_TRUE(std::isnan(normal_quantile(-0.1)));
  EXPECT_TRUE(std::isinf(normal_quantile(1)));
}

TEST(Holm, StepsDownAndStaysMonotone) {
  const std::vector<double> p{0.04, 0.01, 0.03, 0.5};
  const std::vector<double> adjusted = holm(p);
  EXPECT_NEAR(adjusted[1], 0.04, 1e-15);
  EXPECT_NEAR(adjusted[2], 0.09, 1e-15);
  EXPECT_NEAR(adjusted[0], 0.09, 1e-15);  // 2 * 0.04 would fall below the step before it
  EXPECT_NEAR(adjusted[3], 0.5, 1e-15);
  EXPECT_TRUE(holm({}).empty());
}

}  // namespace
}  // namespace fulcrum::stats
