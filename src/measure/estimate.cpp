// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// From counted samples to what a row says about them: estimate, quality, modes, flags.
#include <algorithm>
#include <cmath>

#include "measure/runner.h"

namespace fulcrum::measure {

void add_flag(std::vector<std::string>& flags, std::string_view flag) {
  if (std::find(flags.begin(), flags.end(), flag) == flags.end()) flags.emplace_back(flag);
}

// [min, max] of m values misses the median only if all lie on one side of it.
double reported_level(bool exact, double n_eff) {
  if (exact) return 1 - stats::kTotalAlpha;
  return std::max(0.0, 1 - std::exp2(1 - std::floor(n_eff)));
}

void summarize_into(Timing& timing, std::span<const double> call_seconds, double alpha, double tagged_share) {
  const stats::Summary s = stats::summarize(call_seconds, alpha);
  timing.seconds = Estimate{.median = s.median,
                            .ci_low = s.ci_low,
                            .ci_high = s.ci_high,
                            .level = reported_level(s.exact, s.n_eff),
                            .mean = s.mean,
                            .stddev = s.stddev,
                            .mad = s.mad,
                            .cv = s.cv,
                            .cv_robust = s.cv_robust,
                            .min = s.min,
                            .max = s.max,
                            .p90 = s.p90,
                            .p99 = s.p99};
  timing.samples = s.n;
  timing.effective_samples = s.n_eff;
  const stats::Modes modes = stats::find_modes(call_seconds);
  timing.modes.clear();
  if (modes.modes.size() > 1) {
    for (const stats::Mode& mode : modes.modes) timing.modes.push_back(mode.location);
  }
  const stats::QualityLabel label =
      stats::quality_of(s, static_cast<std::int64_t>(modes.modes.size()), tagged_share);
  timing.quality = static_cast<Quality>(label.quality);
  if (!s.exact) add_flag(timing.flags, "too_few_samples");
  if (label.correlated) add_flag(timing.flags, "correlated");
  if (label.heavy_tail) add_flag(timing.flags, "heavy_tail");
  if (!timing.modes.empty()) add_flag(timing.flags, "multimodal");
  if (timing.calls_per_sample > 1) add_flag(timing.flags, "batch_percentiles");
}

static_assert(static_cast<int>(Quality::invalid) == static_cast<int>(stats::Quality::invalid));

}  // namespace fulcrum::measure
