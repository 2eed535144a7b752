// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Everything a report says about one series of times.
#include <fulcrum/stats.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

#include "stats/sorted.h"

namespace fulcrum::stats {
namespace {

constexpr double kMadToSigma = 1.4826;  // for a normal distribution, 1 / normal_quantile(0.75)
constexpr double kBoundAlpha = 0.05;

}  // namespace

double mean(std::span<const double> values) {
  if (values.empty()) return kUndefined;
  double sum = 0;
  for (const double v : values) sum += v;
  return sum / static_cast<double>(values.size());
}

// Two passes. Rejected: E[x^2] - E[x]^2, which cancels to noise (or below zero) where CV is small. The second
// sum takes out what the rounding of the mean left.
double stddev(std::span<const double> values) {
  if (values.size() < 2) return kUndefined;
  const double centre = mean(values);
  double squares = 0, rest = 0;
  for (const double v : values) {
    squares += (v - centre) * (v - centre);
    rest += v - centre;
  }
  const double n = static_cast<double>(values.size());
  return std::sqrt(std::max(0.0, squares - rest * rest / n) / (n - 1));
}

// The bounds of p90 and p99 take n, not n_eff: n_eff is about the median's signs and says nothing about how
// tail events cluster.
Summary summarize(std::span<const double> values, double alpha) {
  Summary out{.n = static_cast<std::int64_t>(values.size())};
  if (values.empty()) return out;
  const std::vector<double> ascending = sorted(values);
  const MedianInterval interval = sorted_median_interval(ascending, effective_sample_size(values), alpha);
  out.n_eff = interval.n_eff;
  out.median = sorted_quantile(ascending, 0.5);
  out.ci_low = interval.low;
  out.ci_high = interval.high;
  out.level = 1 - alpha;
  out.exact = interval.exact;
  out.mean = mean(values);
  out.stddev = stddev(values);
  out.mad = sorted_mad(ascending);
  out.iqr = sorted_quantile(ascending, 0.75) - sorted_quantile(ascending, 0.25);
  out.cv = out.stddev / out.mean;
  out.cv_robust = kMadToSigma * out.mad / out.median;
  out.min = ascending.front();
  out.max = ascending.back();
  out.p90 = sorted_quantile(ascending, 0.90);
  out.p99 = sorted_quantile(ascending, 0.99);
  out.p90_upper = sorted_upper_bound(ascending, 0.90, kBoundAlpha);
  out.p99_upper = sorted_upper_bound(ascending, 0.99, kBoundAlpha);
  return out;
}

}  // namespace fulcrum::stats
