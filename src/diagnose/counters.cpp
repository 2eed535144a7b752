// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Names of NVIDIA's counters and how they become shares.
#include "diagnose/counters.h"

#include <fmt/format.h>

#include <algorithm>

#include "diagnose/gain.h"

namespace fulcrum::diagnose {
namespace {

double percent_of(const Facts& facts, const Timeline::Kernel& kernel,
                  std::initializer_list<std::string_view> names) {
  for (const std::string_view name : names) {
    if (const auto value = metric(facts, kernel, name)) return std::clamp(*value / 100, 0.0, 1.0);
  }
  return -1;
}

}  // namespace

SpeedOfLight speed_of_light(const Facts& facts, const Timeline::Kernel& kernel) {
  SpeedOfLight out{kernel.dram_share, kernel.sm_share, kernel.dram_share >= 0};
  if (out.memory < 0) {
    out.memory = percent_of(facts, kernel,
                            {"gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed",
                             "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed",
                             "dram__throughput.avg.pct_of_peak_sustained_elapsed"});
  }
  if (out.compute < 0) {
    out.compute = percent_of(facts, kernel, {"sm__throughput.avg.pct_of_peak_sustained_elapsed"});
  }
  return out;
}

double achieved_occupancy(const Facts& facts, const Timeline::Kernel& kernel) {
  return percent_of(facts, kernel, {kActiveWarps});
}

double issue_rate(const Facts& facts, const Timeline::Kernel& kernel) {
  const auto value = metric(facts, kernel, "smsp__issue_active.avg.per_cycle_active");
  return value ? std::clamp(*value, 0.0, 1.0) : -1;
}

std::optional<NotChecked> needs_counters(const Facts& facts, std::string_view rule) {
  if (auto missing = needs_kernels(facts, rule)) return missing;
  const auto& kernels = facts.timeline.kernels;
  const bool sampled =
      std::any_of(kernels.begin(), kernels.end(), [](const auto& k) { return k.counter_samples > 0; });
  if (sampled || !facts.trace.kernel_counters.empty()) {
    const bool known = std::any_of(kernels.begin(), kernels.end(),
                                   [&](const auto& kernel) { return speed_of_light(facts, kernel).known(); });
    if (known) return std::nullopt;
    return not_checked(rule, "how busy memory and SMs were is not among the counters",
                       "trace with --counters, or run ncu with --section SpeedOfLight");
  }
  if (!facts.trace.counters_refused.empty()) {
    return not_checked(rule, "counters were refused: " + facts.trace.counters_refused,
                       "`fulcrum doctor` says what allows them");
  }
  if (!facts.trace.counter_samples.empty()) {
    return not_checked(rule, "no kernel ran long enough to be sampled", "give the file of `ncu --csv`");
  }
  return not_checked(rule, "counters were not asked for", "trace with --counters");
}

std::optional<NotChecked> needs_metrics(const Facts& facts, std::string_view rule,
                                        std::initializer_list<std::string_view> names) {
  if (auto missing = needs_kernels(facts, rule)) return missing;
  for (const GpuTrace::KernelCounters& counters : facts.trace.kernel_counters) {
    const bool all = std::all_of(names.begin(), names.end(), [&](std::string_view name) {
      return counters.metrics.count(std::string(name)) > 0;
    });
    if (all) return std::nullopt;
  }
  std::string list;
  for (const std::string_view name : names) list += fmt::format("{}{}", list.empty() ? "" : ",", name);
  if (facts.trace.kernel_counters.empty()) {
    return not_checked(rule, "it needs counters of single kernels",
                       "give the file of `ncu --csv --page raw` with --metrics " + list);
  }
  return not_checked(rule, "the file of ncu lacks metrics that it needs", "run ncu with --metrics " + list);
}

}  // namespace fulcrum::diagnose
