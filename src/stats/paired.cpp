// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Paired, interleaved comparison: the median log ratio with the interval of the sign test.
// Why ln(t_b / t_a): symmetric (swapping a and b flips its sign) and drift shared by a round cancels.
// Rejected on simulated drift of 1 %: Welch's t and Mann-Whitney on separate runs call identical code changed
// in 87-89 % of trials, the sign test in 4 %; the signed-rank test assumes symmetric differences.
#include <fulcrum/stats.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>
#include <vector>

#include "stats/sorted.h"

namespace fulcrum::stats {
namespace {

double log_ratio(double a, double b) {
  if (a == b) return 0;  // also two readings of 0 from a coarse clock
  return std::log(b / a);
}

}  // namespace

bool excludes_one(Interval speedup) { return speedup.low > 1 || speedup.high < 1; }

Verdict verdict_of(Interval speedup) {
  if (speedup.low >= 1 / kEquivalence && speedup.high <= kEquivalence) return Verdict::same;
  if (speedup.low > 1) return Verdict::faster;
  if (speedup.high < 1) return Verdict::slower;
  return Verdict::unresolved;
}

Paired compare_paired(std::span<const double> seconds_a, std::span<const double> seconds_b, double alpha) {
  const std::size_t rounds = std::min(seconds_a.size(), seconds_b.size());
  Paired out{.rounds = static_cast<std::int64_t>(rounds), .level = 1 - alpha};
  if (rounds == 0) return out;
  std::vector<double> ratios(rounds), saved(rounds);
  std::int64_t a_faster = 0;
  for (std::size_t i = 0; i < rounds; ++i) {
    ratios[i] = log_ratio(seconds_a[i], seconds_b[i]);
    saved[i] = seconds_b[i] - seconds_a[i];
    a_faster += ratios[i] > 0;
    out.ties += ratios[i] == 0;
  }
  std::sort(ratios.begin(), ratios.end());
  const MedianInterval interval = sorted_median_interval(ratios, static_cast<double>(rounds), alpha);
  out.speedup = std::exp(sorted_quantile(ratios, 0.5));
  out.ci_low = std::exp(interval.low);
  out.ci_high = std::exp(interval.high);
  out.exact = interval.exact;
  out.seconds_saved = median(saved);
  out.share_a_faster = static_cast<double>(a_faster) / static_cast<double>(rounds);
  out.p_value = sign_test(a_faster, out.rounds - out.ties - a_faster);
  if (out.exact) {
    out.excludes_one = stats::excludes_one({out.ci_low, out.ci_high});
    out.verdict = verdict_of({out.ci_low, out.ci_high});
  }
  return out;
}

double cliffs_delta(std::span<const double> seconds_a, std::span<const double> seconds_b) {
  if (seconds_a.empty() || seconds_b.empty()) return kUndefined;
  const std::vector<double> b = sorted(seconds_b);
  double above = 0, below = 0;
  for (const double a : seconds_a) {
    below += static_cast<double>(std::lower_bound(b.begin(), b.end(), a) - b.begin());
    above += static_cast<double>(b.end() - std::upper_bound(b.begin(), b.end(), a));
  }
  return (above - below) / (static_cast<double>(seconds_a.size()) * static_cast<double>(b.size()));
}

// Why Holm: rejects whatever Bonferroni does and more, under any dependence between rows.
std::vector<double> holm(std::span<const double> p_values) {
  std::vector<std::size_t> order(p_values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(),
            [&](std::size_t i, std::size_t j) { return p_values[i] < p_values[j]; });
  std::vector<double> adjusted(p_values.size());
  double running = 0;
  for (std::size_t step = 0; step < order.size(); ++step) {
    const double scaled = p_values[order[step]] * static_cast<double>(order.size() - step);
    running = std::max(running, std::min(1.0, scaled));
    adjusted[order[step]] = running;
  }
  return adjusted;
}

// Only tested effects are answers: interpolating between 2 % and 5 % would claim what nobody measured. Larger
// effects must be found too, so that one lucky point does not pass for resolution.
std::optional<double> minimum_detectable_effect(std::span<const Detection> curve, double power) {
  std::vector<Detection> descending(curve.begin(), curve.end());
  std::sort(descending.begin(), descending.end(),
            [](const Detection& x, const Detection& y) { return x.effect > y.effect; });
  std::optional<double> smallest;
  for (const Detection& d : descending) {
    if (d.trials <= 0 || static_cast<double>(d.found) < power * static_cast<double>(d.trials)) break;
    smallest = d.effect;
  }
  return smallest;
}

}  // namespace fulcrum::stats
