// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Growth exponent of time over size, and a straight line.
#include <fulcrum/stats.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "stats/sorted.h"

namespace fulcrum::stats {
namespace {

constexpr std::size_t kExactKendall = 60;  // above, the normal approximation is good to the fourth digit

// P(inversions <= k) of a random permutation of n, for every k; exact counts would overflow, shares do not.
std::vector<double> inversion_cdf(std::size_t n) {
  std::vector<double> share{1.0};
  for (std::size_t m = 2; m <= n; ++m) {
    std::vector<double> next(share.size() + m - 1, 0.0);
    for (std::size_t k = 0; k < share.size(); ++k) {
      for (std::size_t j = 0; j < m; ++j) next[k + j] += share[k] / static_cast<double>(m);
    }
    share = std::move(next);
  }
  for (std::size_t k = 1; k < share.size(); ++k) share[k] += share[k - 1];
  return share;
}

// Of m sorted pairwise slopes, the interval is [slope r, slope m + 1 - r] with the largest r such that
// 2 * P(inversions <= r - 1) <= alpha; 0 if there is none.
std::int64_t kendall_rank(std::size_t n, double alpha) {
  if (n <= kExactKendall) {
    const std::vector<double> cdf = inversion_cdf(n);
    std::int64_t r = 0;
    while (r < static_cast<std::int64_t>(cdf.size()) / 2 && 2 * cdf[static_cast<std::size_t>(r)] <= alpha)
      ++r;
    return r;
  }
  const double count = static_cast<double>(n);
  const double mean_inversions = count * (count - 1) / 4;
  const double sigma = std::sqrt(count * (count - 1) * (2 * count + 5) / 72);
  return static_cast<std::int64_t>(mean_inversions + normal_quantile(alpha / 2) * sigma);
}

}  // namespace

// Why Theil-Sen: one size that hits a cache edge or a bad moment does not tilt the line, and Kendall's
// interval assumes no shape. Rejected: least squares with a t interval, and picking the best of O(1), O(n),
// O(n^2) ... by RMS as Google Benchmark does: it always names a class and never a doubt.
Growth fit_growth(std::span<const double> sizes, std::span<const double> seconds, double alpha) {
  Growth out;
  std::vector<double> x, y;
  for (std::size_t i = 0; i < std::min(sizes.size(), seconds.size()); ++i) {
    if (!(sizes[i] > 0 && seconds[i] > 0)) continue;
    x.push_back(std::log(sizes[i]));
    y.push_back(std::log(seconds[i]));
  }
  std::vector<double> slopes;
  for (std::size_t i = 0; i < x.size(); ++i) {
    for (std::size_t j = i + 1; j < x.size(); ++j) {
      if (x[i] != x[j]) slopes.push_back((y[j] - y[i]) / (x[j] - x[i]));
    }
  }
  if (slopes.empty()) return out;
  std::sort(slopes.begin(), slopes.end());
  out.exponent = sorted_quantile(slopes, 0.5);
  const bool distinct = slopes.size() == x.size() * (x.size() - 1) / 2;
  const std::int64_t rank = distinct ? kendall_rank(x.size(), alpha) : 0;
  if (rank > 0) {
    const auto r = static_cast<std::size_t>(rank);
    out.interval = Interval{slopes[r - 1], slopes[slopes.size() - r]};
  }
  std::vector<double> offsets(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) offsets[i] = y[i] - out.exponent * x[i];
  const double offset = median(offsets);
  out.coefficient = std::exp(offset);
  out.max_log_residual = 0;
  for (const double v : offsets) out.max_log_residual = std::max(out.max_log_residual, std::abs(v - offset));
  return out;
}

// Why about the means: clock values near 1e18 ns squared would leave no digits for the slope.
Affine fit_affine(std::span<const double> x, std::span<const double> y, std::span<const double> weights) {
  Affine out;
  const std::size_t n = std::min(x.size(), y.size());
  const auto weight = [&](std::size_t i) { return i < weights.size() ? weights[i] : 1.0; };
  if (n == 0) return out;
  // From the first point, so that the sums themselves stay small.
  double total = 0, x_sum = 0, y_sum = 0;
  for (std::size_t i = 0; i < n; ++i) {
    total += weight(i);
    x_sum += weight(i) * (x[i] - x[0]);
    y_sum += weight(i) * (y[i] - y[0]);
  }
  out.x_pivot = x[0] + x_sum / total;
  out.y_pivot = y[0] + y_sum / total;
  double xx = 0, xy = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const double dx = x[i] - out.x_pivot;
    xx += weight(i) * dx * dx;
    xy += weight(i) * dx * (y[i] - out.y_pivot);
  }
  if (!(xx > 0)) return out;  // one x: no slope
  out.slope = xy / xx;
  double squares = 0, weighted_squares = 0;
  out.max_residual = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const double residual = y[i] - out.at(x[i]);
    squares += residual * residual;
    weighted_squares += weight(i) * residual * residual;
    out.max_residual = std::max(out.max_residual, std::abs(residual));
  }
  out.rms_residual = std::sqrt(squares / static_cast<double>(n));
  if (n > 2) {
    const double variance = weighted_squares / static_cast<double>(n - 2);
    out.slope_stderr = std::sqrt(variance / xx);
    out.intercept_stderr = std::sqrt(variance * (1 / total + out.x_pivot * out.x_pivot / xx));
  }
  return out;
}

}  // namespace fulcrum::stats
