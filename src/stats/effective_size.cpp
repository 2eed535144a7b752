// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// How many independent samples a time-ordered series is worth, for its median.
// Why the 0/1 series above/below the median: the median's variance depends on those signs alone, and one huge
// outlier cannot hide the correlation of the rest, as it would in the autocorrelation of the times
// themselves.
// Rejected: batch means (needs a batch length), lag 1 alone (drift has a long memory).
#include <fulcrum/stats.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace fulcrum::stats {
namespace {

constexpr std::size_t kMaxLag = 400;

// Sum of (s_i - m)(s_{i+lag} - m) for a 0/1 series with sum ones; whole counts, so no rounding builds up.
double lagged_product(std::span<const std::uint8_t> above, std::size_t lag, double mean_above,
                      std::int64_t ones) {
  const std::size_t n = above.size();
  std::int64_t both = 0, head = 0, tail = 0;  // head, tail: ones that have no partner at this lag
  for (std::size_t i = 0; i + lag < n; ++i) both += above[i] & above[i + lag];
  for (std::size_t i = 0; i < lag; ++i) {
    head += above[i];
    tail += above[n - 1 - i];
  }
  const double partnered = static_cast<double>(2 * ones - head - tail);
  return static_cast<double>(both) - mean_above * partnered +
         static_cast<double>(n - lag) * mean_above * mean_above;
}

}  // namespace

double effective_sample_size(std::span<const double> values) {
  const std::size_t n = values.size();
  if (n < 2) return static_cast<double>(n);
  const double centre = median(values);
  std::vector<std::uint8_t> above(n);
  std::int64_t ones = 0;
  for (std::size_t i = 0; i < n; ++i) ones += above[i] = values[i] > centre ? 1 : 0;
  const double mean_above = static_cast<double>(ones) / static_cast<double>(n);
  const double variance = static_cast<double>(n) * mean_above * (1 - mean_above);
  if (variance == 0) return static_cast<double>(n);  // constant series: nothing to correlate

  // Adjacent lags are summed in pairs, which are positive for a reversible process: the first that is not is
  // noise.
  const std::size_t max_lag = std::min(n / 4, kMaxLag);
  double sum = 0;
  for (std::size_t lag = 1; lag + 1 <= max_lag; lag += 2) {
    const double pair =
        (lagged_product(above, lag, mean_above, ones) + lagged_product(above, lag + 1, mean_above, ones)) /
        variance;
    if (pair <= 0) break;
    sum += pair;
  }
  return std::max(1.0, static_cast<double>(n) / (1 + 2 * sum));
}

}  // namespace fulcrum::stats
