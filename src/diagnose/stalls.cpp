// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Stall ratios of a kernel: smsp__average_warps_issue_stalled_<reason>_per_issue_active.ratio.
#include "diagnose/stalls.h"

#include <algorithm>

#include "diagnose/counters.h"

namespace fulcrum::diagnose {
namespace {

constexpr std::string_view kPrefix = "smsp__average_warps_issue_stalled_";
constexpr std::string_view kSuffix = "_per_issue_active.ratio";

}  // namespace

std::optional<Stall> worst_stall(const Facts& facts, const Timeline::Kernel& kernel) {
  Stall worst;
  double sum = 0, largest = 0;
  for (const GpuTrace::KernelCounters& counters : facts.trace.kernel_counters) {
    if (counters.shape != kernel.shape) continue;
    for (const auto& [name, value] : counters.metrics) {
      if (!name.starts_with(kPrefix) || !name.ends_with(kSuffix)) continue;
      const std::string reason = name.substr(kPrefix.size(), name.size() - kPrefix.size() - kSuffix.size());
      sum += value;
      if (reason == "selected" || value <= largest) continue;  // selected: it issued
      largest = value;
      worst.reason = reason;
    }
    break;
  }
  if (sum <= 0 || largest <= 0) return std::nullopt;
  worst.share = largest / sum;
  return worst;
}

double issue_gain(const Facts& facts, const Timeline::Kernel& kernel) {
  const double issue = issue_rate(facts, kernel);
  if (issue < 0) return 0;
  return std::max(0.0, std::min(1 - issue, 1 - std::max(0.0, speed_of_light(facts, kernel).larger())));
}

}  // namespace fulcrum::diagnose
