// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// What the pilot decides before any counted sample: calls per sample, how many samples at least and at most,
// and the looks in between. Pure, so that every rule is tested without a clock.
#pragma once

#include <fulcrum/measure.h>

#include <span>

namespace fulcrum::measure {

/// A clock read must be lost in what it times.
inline constexpr double kClockFactor = 1000;

/// 1 when single calls are long enough to be timed one by one, else a batch that is.
std::int64_t calls_per_sample(double call_seconds, const Clock& clock, double min_batch_seconds);

/// A batch in parts that are timed one by one: `slices` of `calls` each, together at least the batch.
struct Slices {
  int slices = 1;
  std::int64_t calls = 1;
  std::int64_t all_calls() const { return slices * calls; }
};
/// Ten where the clock is fine enough for a tenth of the batch, one where not even for a third of it.
Slices slices_of_batch(std::int64_t calls, double call_seconds, const Clock& clock);
/// Seconds of a batch by those of its slices: their sum, where a slice that was interrupted counts as a fifth longer
/// than the slice in the middle. Rejected: the plain sum, whose median over a second moves by 0.3-0.8 % from run to
/// run on a shared virtual machine (bounded 0.4 % in the same seconds, and one disturbed second in ten loses its
/// weight); a tenth, which counts half of a tick where a hypervisor's ticks take 20 us, so that rows came out 2 % below
/// a bare loop; the median of the slices (0.04 %), which leaves ticks out that every program pays, 2-3 % there.
double bounded_seconds(std::span<const double> slices);

struct SamplePlan {
  std::int64_t n_min = 0;
  std::vector<stats::Look> looks;
  bool low_n = false;           // n_min is below what a percentile needs
  bool capped_by_time = false;  // the budget, not the schedule, ends the looks
};
SamplePlan plan_samples(double sample_cost_seconds, double left_seconds, std::int64_t min_samples);

/// A round of a comparison: `slices` batches of each side, interleaved, `calls` calls in each batch.
struct RoundPlan {
  std::int64_t calls = 1;
  int slices = 1;
  bool prime = false;   // one untimed call before each slice: the other side has just used the caches
  bool settle = false;  // untimed calls where sides change: idle threads of the other one still spin
};
RoundPlan plan_round(double call_seconds_a, double call_seconds_b, const Clock& clock,
                     double min_batch_seconds, bool has_reset, std::int64_t least_calls = 1);

struct RoundsPlan {
  std::vector<stats::Look> looks;
  bool capped_by_time = false;
};
RoundsPlan plan_rounds(double round_cost_seconds, double left_seconds);

/// The sides of a round's slices, true: a. Groups of four are ABBA or BAAB at random, so that nothing
/// periodic stays in step with one side; rounds of one slice each alternate AB and BA.
std::vector<bool> order_of_round(std::int64_t round, int slices);

}  // namespace fulcrum::measure
