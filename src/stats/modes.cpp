// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Modes of a timing distribution: peaks of a kernel density estimate of ln t that are deep, apart and heavy
// enough.
// Why: a mean or median of two clock states describes neither. Rejected: the dip test (says that there are
// modes, not where) and mixture fits (a skewed single mode gets two components).
#include <fulcrum/stats.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "stats/sorted.h"

namespace fulcrum::stats {
namespace {

constexpr double kMinValleyDepth = 0.2;       // of the lower peak; shallower is sampling noise
constexpr double kMinDistance = 0.019802627;  // ln 1.02: closer modes change no decision
constexpr double kMinShare = 0.1;
constexpr double kCellsPerBandwidth = 4;
constexpr double kKernelReach = 4;  // in bandwidths: what lies beyond is under 4e-4 of the centre
constexpr std::size_t kMaxCells =
    65'536;  // far outliers are moved to the edge of the grid; their order is kept
constexpr std::ptrdiff_t kMinSamples = 6;  // in a mode: at n = 30 three slow samples are a tail, not a mode

// Silverman's rule of thumb with the smaller of two spreads, so that two far modes do not blur each other.
double bandwidth(std::span<const double> ascending) {
  const double s = stddev(ascending);
  const double iqr = sorted_quantile(ascending, 0.75) - sorted_quantile(ascending, 0.25);
  const double spread = iqr > 0 ? std::min(s, iqr / 1.349) : s;
  return 0.9 * spread * std::pow(static_cast<double>(ascending.size()), -0.2);
}

struct Density {
  double origin = 0;
  double cell = 0;
  std::vector<double> height = {};
  double at(std::size_t i) const { return origin + cell * static_cast<double>(i); }
};

// Binned: O(n + cells) instead of O(n * cells), with cells of a quarter bandwidth.
Density estimate_density(std::span<const double> ascending, double h) {
  Density d{.cell = h / kCellsPerBandwidth};
  const double reach = d.cell * (static_cast<double>(kMaxCells) / 2 - 1) - kKernelReach * h;
  const double centre = sorted_quantile(ascending, 0.5);
  const double low = std::max(ascending.front(), centre - reach);
  const double high = std::min(ascending.back(), centre + reach);
  d.origin = low - kKernelReach * h;
  const auto cells = static_cast<std::size_t>((high - d.origin + kKernelReach * h) / d.cell) + 2;
  std::vector<double> counts(cells, 0.0);
  for (const double v : ascending) {
    const double position = (std::clamp(v, low, high) - d.origin) / d.cell;
    const auto left = static_cast<std::size_t>(position);
    counts[left] += 1 - (position - static_cast<double>(left));
    counts[left + 1] += position - static_cast<double>(left);
  }
  const auto taps = static_cast<std::size_t>(kKernelReach * kCellsPerBandwidth);
  std::vector<double> kernel(taps + 1);
  for (std::size_t k = 0; k <= taps; ++k) {
    const double u = static_cast<double>(k) / kCellsPerBandwidth;
    kernel[k] = std::exp(-0.5 * u * u);
  }
  d.height.assign(cells, 0.0);
  for (std::size_t i = 0; i < cells; ++i) {
    if (counts[i] == 0) continue;
    for (std::size_t k = i - std::min(i, taps); k <= std::min(i + taps, cells - 1); ++k) {
      d.height[k] += counts[i] * kernel[k > i ? k - i : i - k];
    }
  }
  return d;
}

struct Peak {
  std::size_t top = 0;     // cell
  std::size_t valley = 0;  // lowest cell between this peak and the next; the last peak has none
};

std::vector<Peak> find_peaks(const Density& d) {
  std::vector<Peak> peaks;
  std::size_t lowest = 0;
  for (std::size_t i = 1; i + 1 < d.height.size(); ++i) {
    if (d.height[i] < d.height[lowest]) lowest = i;
    if (d.height[i] <= d.height[i - 1] || d.height[i] < d.height[i + 1]) continue;
    std::size_t end = i;
    while (end + 1 < d.height.size() && d.height[end + 1] == d.height[i]) ++end;
    if (end + 1 < d.height.size() && d.height[end + 1] > d.height[i]) continue;  // a step, not a top
    if (!peaks.empty()) peaks.back().valley = lowest;
    peaks.push_back({.top = i});
    lowest = end;
    i = end;
  }
  return peaks;
}

// Joins peak i and i + 1: the higher top stays, the valley beyond stays.
void join(std::vector<Peak>& peaks, std::size_t i, const Density& d) {
  if (d.height[peaks[i + 1].top] > d.height[peaks[i].top]) peaks[i].top = peaks[i + 1].top;
  peaks[i].valley = peaks[i + 1].valley;
  peaks.erase(peaks.begin() + static_cast<std::ptrdiff_t>(i) + 1);
}

// Shallowest valley first, so that the outcome does not depend on the direction of the scan.
void join_shallow(std::vector<Peak>& peaks, const Density& d) {
  while (peaks.size() > 1) {
    std::size_t weakest = 0;
    double weakest_depth = 2;
    for (std::size_t i = 0; i + 1 < peaks.size(); ++i) {
      const double lower = std::min(d.height[peaks[i].top], d.height[peaks[i + 1].top]);
      const bool close = d.at(peaks[i + 1].top) - d.at(peaks[i].top) < kMinDistance;
      const double depth = close ? -1 : 1 - d.height[peaks[i].valley] / lower;
      if (depth < weakest_depth) {
        weakest = i;
        weakest_depth = depth;
      }
    }
    if (weakest_depth >= kMinValleyDepth) return;
    join(peaks, weakest, d);
  }
}

// Runs test of the largest mode against the rest: far fewer changes than chance would give means stretches.
ModePattern pattern_of(const std::vector<bool>& in_largest) {
  const double n = static_cast<double>(in_largest.size());
  const double a = static_cast<double>(std::count(in_largest.begin(), in_largest.end(), true));
  double changes = 0;
  for (std::size_t i = 1; i < in_largest.size(); ++i) changes += in_largest[i] != in_largest[i - 1];
  const double pairs = 2 * a * (n - a);
  const double expected = pairs / n;
  const double variance = pairs * (pairs - n) / (n * n * (n - 1));
  return changes < expected - 3 * std::sqrt(std::max(variance, 0.0)) ? ModePattern::switching
                                                                     : ModePattern::alternating;
}

struct Range {
  double low, high;
  double share;
};

}  // namespace

std::string_view to_string(ModePattern pattern) {
  switch (pattern) {
    case ModePattern::single:
      return "single";
    case ModePattern::switching:
      return "switching";
    case ModePattern::alternating:
      return "alternating";
  }
  return "single";
}

Modes find_modes(std::span<const double> values) {
  const std::vector<double> in_time = logs(values);
  if (in_time.empty()) return {};
  const std::vector<double> ascending = sorted(in_time);
  Modes one{.modes = {{.location = std::exp(sorted_quantile(ascending, 0.5)), .share = 1}}};
  if (ascending.front() == ascending.back()) return one;
  const Density density = estimate_density(ascending, bandwidth(ascending));
  std::vector<Peak> peaks = find_peaks(density);
  join_shallow(peaks, density);

  Modes out;
  std::vector<Range> ranges;
  auto first = ascending.begin();
  for (std::size_t i = 0; i < peaks.size(); ++i) {
    const auto last = i + 1 == peaks.size()
                          ? ascending.end()
                          : std::lower_bound(first, ascending.end(), density.at(peaks[i].valley));
    const double share = static_cast<double>(last - first) / static_cast<double>(ascending.size());
    if (share >= kMinShare && last - first >= kMinSamples) {
      out.modes.push_back(
          {.location = std::exp(sorted_quantile(std::span(first, last), 0.5)), .share = share});
      ranges.push_back({*first, *(last - 1), share});
    }
    first = last;
  }
  if (out.modes.size() < 2) return one;
  const Range& largest = *std::max_element(ranges.begin(), ranges.end(),
                                           [](const Range& x, const Range& y) { return x.share < y.share; });
  std::vector<bool> in_largest(in_time.size());
  for (std::size_t i = 0; i < in_time.size(); ++i) {
    in_largest[i] = in_time[i] >= largest.low && in_time[i] <= largest.high;
  }
  out.pattern = pattern_of(in_largest);
  return out;
}

}  // namespace fulcrum::stats
