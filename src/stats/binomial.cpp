// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Exact binomial probabilities and the tests that need only them.
// Why exact: a normal approximation with a fixed z forgets the level it was asked for (nanobench does so
// above 1024 rounds), and a schedule of looks needs 0.28 % and 2.5 % tails at every n from 6 to 100,000.
#include <fulcrum/stats.h>

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace fulcrum::stats {
namespace {

// ln n!. Stirling's series; the product below 16, where four terms would not reach double precision.
// Rejected: std::lgamma, because glibc's writes the global signgam, a data race between threads.
double log_factorial(std::int64_t n) {
  if (n < 16) {
    double product = 1;
    for (std::int64_t i = 2; i <= n; ++i) product *= static_cast<double>(i);
    return std::log(product);
  }
  constexpr double kHalfLogTwoPi = 0.91893853320467274178;
  const double x = static_cast<double>(n);
  const double r = 1 / (x * x);
  const double tail = (1.0 / 12 - r * (1.0 / 360 - r * (1.0 / 1260 - r / 1680))) / x;
  return (x + 0.5) * std::log(x) - x + kHalfLogTwoPi + tail;
}

// Terms fall at least geometrically away from the mode: a term this small cannot change the sum.
constexpr double kNegligible = 1e-18;

double lower_tail(std::int64_t k, std::int64_t n, double p) {
  double term = binomial_pmf(k, n, p);
  double sum = term;
  const double odds = (1 - p) / p;
  for (std::int64_t i = k; i > 0 && term > kNegligible * sum; --i) {
    term *= odds * static_cast<double>(i) / static_cast<double>(n - i + 1);
    sum += term;
  }
  return sum;
}

}  // namespace

double binomial_pmf(std::int64_t k, std::int64_t n, double p) {
  if (k < 0 || k > n) return 0;
  if (p <= 0) return k == 0 ? 1 : 0;
  if (p >= 1) return k == n ? 1 : 0;
  const double ways = log_factorial(n) - log_factorial(k) - log_factorial(n - k);
  return std::exp(ways + static_cast<double>(k) * std::log(p) + static_cast<double>(n - k) * std::log1p(-p));
}

double binomial_cdf(std::int64_t k, std::int64_t n, double p) {
  if (k < 0) return 0;
  if (k >= n || p <= 0) return 1;
  if (p >= 1) return 0;
  // Sum the smaller tail, so that tiny probabilities keep their digits.
  if (static_cast<double>(k) < static_cast<double>(n) * p) return std::min(1.0, lower_tail(k, n, p));
  return std::max(0.0, 1 - lower_tail(n - k - 1, n, 1 - p));
}

double sign_test(std::int64_t positive, std::int64_t negative) {
  return std::min(1.0, 2 * binomial_cdf(std::min(positive, negative), positive + negative, 0.5));
}

std::int64_t median_rank(std::int64_t n, double alpha) {
  const auto allowed = [&](std::int64_t r) { return 2 * binomial_cdf(r - 1, n, 0.5) <= alpha; };
  if (n < 1 || !allowed(1)) return 0;
  std::int64_t good = 1, bad = n / 2 + 1;  // 2 P(X <= n/2) > 1
  while (bad - good > 1) {
    const std::int64_t middle = good + (bad - good) / 2;
    (allowed(middle) ? good : bad) = middle;
  }
  return good;
}

// Bisection on erfc. Why: it is called a few times per fit, never per sample, and needs no table of
// coefficients.
double normal_quantile(double p) {
  if (!(p > 0)) return p == 0 ? -std::numeric_limits<double>::infinity() : kUndefined;
  if (p >= 1) return p == 1 ? std::numeric_limits<double>::infinity() : kUndefined;
  if (p > 0.5) return -normal_quantile(1 - p);
  double low = -40, high = 0;
  for (int i = 0; i < 80; ++i) {
    const double middle = 0.5 * (low + high);
    (0.5 * std::erfc(-middle / std::sqrt(2.0)) < p ? low : high) = middle;
  }
  return 0.5 * (low + high);
}

}  // namespace fulcrum::stats
