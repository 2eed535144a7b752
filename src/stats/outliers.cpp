// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Outliers are counted and kept, never removed: a slow call was a call.
// Why Tukey's fences on ln t: quartiles ignore the outliers they judge, and the logarithm takes most of the
// right skew away. Rejected: 3 sigma, where one huge sample widens sigma until it hides itself.
#include <fulcrum/stats.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

#include "stats/sorted.h"

namespace fulcrum::stats {
namespace {

constexpr double kMildFence = 1.5;
constexpr double kSevereFence = 3.0;
constexpr double kFirstRunSigmas = 10;
// A quantised clock gives a MAD of 0; then 1 % slower counts as slow, not any difference at all.
constexpr double kLeastSigma = 1e-3;

bool first_is_slow(std::span<const double> log_values) {
  if (log_values.size() < 4) return false;  // no spread to judge by
  const std::vector<double> rest = sorted(log_values.subspan(1));
  const double sigma = std::max(1.4826 * sorted_mad(rest), kLeastSigma);
  return log_values.front() - sorted_quantile(rest, 0.5) > kFirstRunSigmas * sigma;
}

}  // namespace

Outliers classify_outliers(std::span<const double> values) {
  Outliers out;
  const std::vector<double> log_values = logs(values);
  if (log_values.empty()) return out;
  const std::vector<double> ascending = sorted(log_values);
  const double q1 = sorted_quantile(ascending, 0.25), q3 = sorted_quantile(ascending, 0.75);
  const Interval mild{q1 - kMildFence * (q3 - q1), q3 + kMildFence * (q3 - q1)};
  const Interval severe{q1 - kSevereFence * (q3 - q1), q3 + kSevereFence * (q3 - q1)};
  for (const double v : ascending) {
    if (v < severe.low) {
      ++out.low_severe;
    } else if (v < mild.low) {
      ++out.low_mild;
    } else if (v > severe.high) {
      ++out.high_severe;
    } else if (v > mild.high) {
      ++out.high_mild;
    }
  }
  out.mild = {std::exp(mild.low), std::exp(mild.high)};
  out.severe = {std::exp(severe.low), std::exp(severe.high)};
  out.slow_first = first_is_slow(log_values);
  return out;
}

}  // namespace fulcrum::stats
