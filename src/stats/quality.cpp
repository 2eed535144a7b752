// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Quality tiers: a label for the reader, never a rule to stop by.
// Why the robust CV decides: one page fault in a hundred calls does not make the median unsure. The classic
// CV still speaks up, as heavy_tail, when it tells a different story.
#include <fulcrum/stats.h>

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace fulcrum::stats {
namespace {

constexpr double kTierLimits[] = {0.05, 0.10, 0.20};  // stable, fair, noisy; above is unstable
constexpr double kMaxTaggedShare = 0.10;
// The least number of samples whose range covers the median with 95 %: below, a small spread is luck.
constexpr std::int64_t kLeastForStable = 6;

int tier_of(double cv) {
  int tier = 0;
  for (const double limit : kTierLimits) tier += cv <= limit ? 0 : 1;
  return tier;
}

}  // namespace

QualityLabel quality_of(double cv_robust, double cv, std::int64_t modes, double tagged_share) {
  if (!std::isfinite(cv_robust)) return {};
  const int tier = tier_of(cv_robust);
  QualityLabel out{.quality = static_cast<Quality>(tier)};
  out.heavy_tail = std::isfinite(cv) && tier_of(cv) >= tier + 2;
  if (modes > 1 || tagged_share > kMaxTaggedShare) out.quality = Quality::unstable;
  return out;
}

// Few samples are not correlated samples: below 2 * kMinEffective, half of n is the limit.
QualityLabel quality_of(const Summary& summary, std::int64_t modes, double tagged_share) {
  QualityLabel out = quality_of(summary.cv_robust, summary.cv, modes, tagged_share);
  if (summary.n < kLeastForStable && out.quality == Quality::stable) out.quality = Quality::fair;
  if (summary.n < 2 && out.quality != Quality::invalid) out.quality = Quality::unstable;  // no spread at all
  out.correlated = summary.n_eff < std::min(kMinEffective, 0.5 * static_cast<double>(summary.n));
  return out;
}

}  // namespace fulcrum::stats
