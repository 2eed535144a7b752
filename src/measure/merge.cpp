// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// One row over several processes. Layout, page colours and address randomisation are drawn once per process,
// so the process is the sampling unit: the median of process medians with its order-statistic interval.
#include <fmt/format.h>

#include <algorithm>

#include "measure/runner.h"

namespace fulcrum::measure {
namespace {

// The least number of values whose [min, max] covers the median with 95 %.
constexpr std::size_t kEnoughProcesses = 6;

std::vector<double> counted(const Measurement& process) {
  std::vector<double> call_seconds;
  for (const Sample& sample : process.raw) {
    if (sample.phase == 2)
      call_seconds.push_back(sample.seconds / static_cast<double>(process.calls_per_sample));
  }
  return call_seconds;
}

// The worst reason describes the row: it is finished only if all processes finished.
StopReason worst(StopReason x, StopReason y) {
  constexpr StopReason kWorstFirst[] = {StopReason::invalid, StopReason::interrupted, StopReason::budget,
                                        StopReason::decision, StopReason::precision};
  for (const StopReason reason : kWorstFirst) {
    if (x == reason || y == reason) return reason;
  }
  return x;
}

void add(Environment& sum, const Environment& part) {
  sum.context_switches += part.context_switches;
  sum.migrations += part.migrations;
  sum.page_faults += part.page_faults;
  sum.cpu_seconds += part.cpu_seconds;
  sum.wall_seconds += part.wall_seconds;
  sum.steal_seconds += part.steal_seconds;
  sum.clock_hz_after = part.clock_hz_after;
  if (!part.gpu || !sum.gpu) return;
  const std::uint64_t reasons = sum.gpu->throttle_reasons | part.gpu->throttle_reasons;
  const std::int64_t others = std::max(sum.gpu->other_processes, part.gpu->other_processes);
  const double before_hz = sum.gpu->sm_hz_before;
  sum.gpu = part.gpu;
  sum.gpu->sm_hz_before = before_hz;
  sum.gpu->throttle_reasons = reasons;
  sum.gpu->other_processes = others;
}

// Joins what is summed, united or the worst of all.
void join(Measurement& row, const Measurement& process) {
  row.processes += process.processes;
  row.samples += process.samples;
  row.effective_samples += process.effective_samples;
  row.cache_verified = row.cache_verified && process.cache_verified;
  row.quality = std::max(row.quality, process.quality);
  const StopReason reason = worst(row.stop_reason, process.stop_reason);
  if (reason != row.stop_reason) row.stop_detail = process.stop_detail;
  row.stop_reason = reason;
  for (const std::string& flag : process.flags) add_flag(row.flags, flag);
  if (process.oracle.max_error_share > row.oracle.max_error_share || !process.oracle.passed) {
    row.oracle = process.oracle;
  }
  add(row.environment, process.environment);
  // A batch of another size is told in batches of the row's size.
  const double scale =
      static_cast<double>(row.calls_per_sample) / static_cast<double>(process.calls_per_sample);
  for (Sample sample : process.raw) {
    sample.seconds *= scale;
    row.raw.push_back(sample);
  }
}

// Replays of one process resemble each other more than processes do: the process in the middle speaks for all.
void take_device_time(Measurement& row, const std::vector<Measurement>& processes) {
  std::vector<const Measurement*> timed;
  for (const Measurement& process : processes) {
    if (process.device_seconds) timed.push_back(&process);
  }
  if (timed.empty()) return;
  const auto middle = timed.begin() + static_cast<std::ptrdiff_t>((timed.size() - 1) / 2);
  std::nth_element(timed.begin(), middle, timed.end(), [](const Measurement* a, const Measurement* b) {
    return a->device_seconds->median < b->device_seconds->median;
  });
  row.device_seconds = (*middle)->device_seconds;
  row.device_calls = (*middle)->device_calls;
  row.device_sets = (*middle)->device_sets;
}

std::string describe(const stats::VarianceSplit& split) {
  const double epoch = split.epoch.value_or(0), process = split.process.value_or(0);
  const double total = split.sample + epoch + process;
  if (!(total > 0)) return "variance: none";
  return fmt::format("variance: sample {:.0f} %, epoch {:.0f} %, process {:.0f} %",
                     100 * split.sample / total, 100 * epoch / total, 100 * process / total);
}

void set_interval(Estimate& estimate, const stats::MedianInterval& interval) {
  estimate.ci_low = interval.low;
  estimate.ci_high = interval.high;
  estimate.level = reported_level(interval.exact, interval.n_eff);
}

}  // namespace

Result<Measurement> merge(const std::vector<Measurement>& processes) {
  if (processes.empty()) return Error{Code::usage, "there is no process to merge", ""};
  for (const Measurement& process : processes) {
    if (process.row() != processes.front().row()) {
      return Error{Code::usage,
                   fmt::format("{} and {} are different rows", processes.front().row(), process.row()),
                   "Only processes that measured the same row can be merged."};
    }
  }
  if (processes.size() == 1) return processes.front();

  Measurement row = processes.front();
  for (std::size_t i = 1; i < processes.size(); ++i) join(row, processes[i]);
  stats::Clusters clusters;
  std::vector<double> medians, pooled;
  for (const Measurement& process : processes) {
    medians.push_back(process.seconds.median);
    const std::vector<double> call_seconds = counted(process);
    pooled.insert(pooled.end(), call_seconds.begin(), call_seconds.end());
    if (!call_seconds.empty()) clusters.push_back(stats::in_blocks(call_seconds).front());
  }

  const std::vector<double>& values = pooled.empty() ? medians : pooled;
  Timing timing{.calls_per_sample = row.calls_per_sample, .flags = row.flags};
  if (pooled.size() == processes.size()) std::erase(timing.flags, "too_few_samples");
  summarize_into(timing, values, stats::kTotalAlpha, 0);
  row.seconds = timing.seconds;
  row.modes = timing.modes;
  if (!pooled.empty()) row.flags = timing.flags;
  // Processes of a single sample each have no quality of their own.
  const bool single_samples = row.samples == row.processes && !pooled.empty();
  if (single_samples) row.quality = timing.quality;
  if (row.quality != Quality::invalid) row.quality = std::max(row.quality, timing.quality);
  take_device_time(row, processes);
  if (processes.size() >= kEnoughProcesses || pooled.empty()) {
    row.seconds.median = stats::median(medians);
    set_interval(row.seconds, stats::median_interval_independent(medians, stats::kTotalAlpha));
  }
  if (processes.size() < kEnoughProcesses) add_flag(row.flags, "few_processes");
  if (!clusters.empty() && !single_samples) add_flag(row.flags, describe(stats::split_variance(clusters)));
  return row;
}

}  // namespace fulcrum::measure
