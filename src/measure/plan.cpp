// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// See plan.h; the numbers are explained in docs/measuring.md.
#include "measure/plan.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace fulcrum::measure {
namespace {

struct Tier {
  double sample_cost_seconds;
  std::int64_t n_min;
};
constexpr Tier kTiers[] = {{0.025, 100}, {0.25, 30}, {std::numeric_limits<double>::infinity(), 10}};
constexpr std::int64_t kLowN = 10;
// The pilot's cost is an estimate: plan for a little less, so that the hard cap seldom fires off schedule.
constexpr double kBudgetShare = 0.9;
constexpr std::int64_t kMaxCalls = std::int64_t{1} << 40;

// A slice is a tenth of the batch that min_batch_seconds asks for, because a round holds ten of each side. At
// 0.1 ms nine of ten slices fall between two timer ticks (12 us each at 1 kHz on a KVM guest) and between two
// time slices of the scheduler, and the median of ten ignores the rest. Measured on a busy 2-core VM, share
// of comparisons in which a 2 % effect was found: slices of 3 ms about half, of 0.25 ms (in step with the
// ticks) 35 %, of 0.1 ms all.
constexpr double kSliceShare = 0.1;
// A faster side that is still too short for the clock then must bear it.
constexpr double kLongestSliceSeconds = 0.02;
struct SliceTier {
  double slice_seconds;
  int slices;
};
constexpr SliceTier kSlices[] = {
    {0.5e-3, 10}, {2e-3, 6}, {50e-3, 2}, {std::numeric_limits<double>::infinity(), 1}};
// A sample in ten slices: a timer tick or a neighbour's turn falls into one or two of them.
constexpr int kSampleSlices = 10;
constexpr int kFewestSampleSlices = 3;       // fewer have no middle
constexpr double kLongestSlice = 1.2;        // of the one in the middle: about what a tick adds to 0.1 ms
constexpr double kPrimeBelowSeconds = 5e-3;  // refilling a cache is lost in a longer call
constexpr std::int64_t kPrimeBelowCalls = 10;

std::int64_t ceil_ratio(double target_seconds, double call_seconds) {
  if (!(call_seconds > 0)) return 1;
  constexpr double kRounding = 1 - 1e-9;  // 1e-3 / 1e-6 is 1000, not 1001
  const double calls = std::ceil(kRounding * target_seconds / call_seconds);
  return static_cast<std::int64_t>(std::clamp(calls, 1.0, static_cast<double>(kMaxCalls)));
}

std::int64_t affordable(double left_seconds, double cost_seconds) {
  if (!(cost_seconds > 0)) return std::numeric_limits<std::int32_t>::max();
  const double count = std::floor(kBudgetShare * left_seconds / cost_seconds);
  return static_cast<std::int64_t>(std::clamp(count, 1.0, 2e9));
}

}  // namespace

std::int64_t calls_per_sample(double call_seconds, const Clock& clock, double min_batch_seconds) {
  if (call_seconds >= kClockFactor * clock.read_seconds) return 1;
  return ceil_ratio(std::max(kClockFactor * clock.resolution_seconds, min_batch_seconds), call_seconds);
}

Slices slices_of_batch(std::int64_t calls, double call_seconds, const Clock& clock) {
  const double parts = static_cast<double>(calls) * call_seconds / (kClockFactor * clock.resolution_seconds);
  const auto slices = static_cast<std::int64_t>(std::clamp(parts, 1.0, static_cast<double>(kSampleSlices)));
  if (slices < kFewestSampleSlices || calls < slices) return {.slices = 1, .calls = calls};
  const std::int64_t each = (calls + slices - 1) / slices;
  return {.slices = static_cast<int>((calls + each - 1) / each), .calls = each};
}

double bounded_seconds(std::span<const double> slices) {
  const double most = kLongestSlice * stats::median(slices);
  double sum = 0;
  for (const double seconds : slices) sum += std::min(seconds, most);
  return sum;
}

SamplePlan plan_samples(double sample_cost_seconds, double left_seconds, std::int64_t min_samples) {
  SamplePlan plan;
  for (const Tier& tier : kTiers) {
    plan.n_min = tier.n_min;
    if (sample_cost_seconds <= tier.sample_cost_seconds) break;
  }
  if (min_samples > 0) plan.n_min = min_samples;
  plan.low_n = plan.n_min <= kLowN;
  const std::int64_t n_cap = affordable(left_seconds, sample_cost_seconds);
  plan.looks = stats::plan_looks(plan.n_min, n_cap);
  plan.capped_by_time = plan.looks.back().n == n_cap;
  return plan;
}

RoundPlan plan_round(double call_seconds_a, double call_seconds_b, const Clock& clock,
                     double min_batch_seconds, bool has_reset, std::int64_t least_calls) {
  RoundPlan plan;
  const double slower = std::max(call_seconds_a, call_seconds_b);
  const double faster = std::min(call_seconds_a, call_seconds_b);
  if (!has_reset) {
    const double clock_seconds = kClockFactor * clock.resolution_seconds;
    const std::int64_t enough = ceil_ratio(std::max(kSliceShare * min_batch_seconds, clock_seconds), slower);
    const std::int64_t fine = ceil_ratio(clock_seconds, faster);
    const std::int64_t most = ceil_ratio(kLongestSliceSeconds, slower);
    plan.calls = std::max(enough, std::min(fine, most));
  }
  plan.calls = std::max(plan.calls, least_calls);
  const double calls = static_cast<double>(plan.calls);
  for (const SliceTier& tier : kSlices) {
    plan.slices = tier.slices;
    if (calls * slower <= tier.slice_seconds) break;
  }
  plan.prime = !has_reset && plan.calls < kPrimeBelowCalls && slower < kPrimeBelowSeconds;
  return plan;
}

std::vector<bool> order_of_round(std::int64_t round, int slices) {
  if (slices == 1) return {round % 2 == 0, round % 2 != 0};
  stats::Random random(static_cast<std::uint64_t>(round));  // the same order in every run: repeatable
  std::vector<bool> sides;
  for (int pair = 0; pair < slices; pair += 2) {
    const bool a_first = random.next() >> 63 != 0;
    for (const bool outer : {true, false, false, true}) sides.push_back(outer == a_first);
  }
  return sides;
}

RoundsPlan plan_rounds(double round_cost_seconds, double left_seconds) {
  const std::int64_t affordable_rounds = affordable(left_seconds, round_cost_seconds);
  const std::int64_t cap = std::min(affordable_rounds, stats::kPairedCap);
  RoundsPlan plan{.looks = stats::plan_paired_looks(std::min(stats::kPairedFirst, cap), cap)};
  plan.capped_by_time = plan.looks.back().n == affordable_rounds;
  return plan;
}

}  // namespace fulcrum::measure
