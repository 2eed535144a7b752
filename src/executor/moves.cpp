// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// See moves.h.
#include "executor/moves.h"

#include <fulcrum/stats.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "executor/calibrate_costs.h"
#include "executor/candidates.h"
#include "executor/op_table.h"
#include "executor/rounds.h"
#include "executor/shapes.h"
#include "executor/subjects.h"

namespace fulcrum::executor {
namespace {

constexpr std::int64_t kMovedBytes = std::int64_t{4} << 20;    // at most, of one call
constexpr double kShortestMoved = 5e-7, kLongestMoved = 3e-4;  // nominal seconds
constexpr std::uint64_t kShapesSeed = 900;
constexpr int kMovedShapes = 2, kMovedRounds = 5;
// A kernel that takes longer than so many times what it waits for says nothing about that.
constexpr double kMostKernel = 2;
// Calls of about the same size say what is so; at others, such as long copies, copies know better. Octaves; calls that
// copies count as.
constexpr double kAlikeOctaves = 1.5, kPriorCalls = 2;
constexpr double kMostMovedLn = 0.7;

double largest_of(const Traffic& traffic) {
  return std::max({traffic.home_largest, traffic.in_largest, traffic.out_largest, 1.0});
}

/// ln of a factor, by size.
class Factor {
 public:
  void add(double bytes, double ln) {
    at_.emplace_back(std::log2(bytes), std::clamp(ln, -kMostMovedLn, kMostMovedLn));
  }
  double of(double bytes) const {
    double near = 0, weights = 0;
    for (const auto& [octaves, ln] : at_) {
      const double away = (octaves - std::log2(bytes)) / kAlikeOctaves, weight = std::exp(-0.5 * away * away);
      near += weight * ln;
      weights += weight;
    }
    return std::exp(near / (weights + kPriorCalls));
  }

 private:
  std::vector<std::pair<double, double>> at_;  // log2(bytes), ln
};

void scale_curve(LinkCurve& curve, const Factor& factor) {
  if (curve.knots.empty()) return;
  for (auto& [bytes, seconds] : curve.knots) seconds *= factor.of(bytes);
  grow(curve);
}

/// Medians of calls with their data there and of those that moved it; 0: not timed.
std::pair<double, double> both_ways(Subject& there, Subject& moved, const measure::Clock& clock) {
  const std::array<Subject*, 2> subjects{&there, &moved};
  const auto times = time_rounds(
      subjects, RoundsConfig{.rounds = kMovedRounds, .hopeless = 0, .groups = {}, .clock = &clock});
  if (times[0].empty() || times[1].empty()) return {};
  return {stats::median(times[0]), stats::median(times[1])};
}

}  // namespace

MovedCalls::MovedCalls(const backends::Backend& device, const measure::Clock& clock)
    : device_(&device), clock_(&clock), pinned_(kMovedBytes, &device.table()) {}

void MovedCalls::keep(const Traffic& traffic, double there, double moved, double said) {
  if (there <= 0 || moved <= there || there > kMostKernel * said) return;
  calls_.push_back({traffic, moved - there});
}

void MovedCalls::look_home(const ops::Op& op, const Candidate& candidate, const Args& args,
                           const Costs& costs, Workbench& plain) {
  const DType dtype = op.dtypes.empty() ? DType::f32 : op.dtypes.front();
  const Traffic traffic = traffic_of(op, args, Case::resident);
  if (traffic.home_bytes <= 0) return;
  const auto here = plain.bind(op, args, dtype), away = pinned_.bind(op, args, dtype);
  if (!here.ok() || !away.ok()) return;
  const auto operands = DeviceOperands::make(*device_, op, *away, dtype);
  if (!operands.ok()) return;
  auto there = make_subject(candidate, *here, *operands, *clock_);
  auto moved = make_home_subject(candidate, *away, *operands, *clock_);
  if (!there.ok() || !moved.ok()) return;
  const auto [kernel, whole] = both_ways(**there, **moved, *clock_);
  keep(traffic, kernel, whole, costs.home_seconds(traffic));
}

void MovedCalls::look_away(const ops::Op& op, const Candidate& candidate, const Args& args,
                           const Costs& costs, Workbench& bench, bool pinned) {
  const DType dtype = op.dtypes.empty() ? DType::f32 : op.dtypes.front();
  const Traffic traffic = traffic_of(op, args, pinned ? Case::pinned : Case::pageable);
  const auto bound = bench.bind(op, args, dtype);
  if (!bound.ok()) return;
  const auto operands = DeviceOperands::make(*device_, op, *bound, dtype);
  if (!operands.ok()) return;
  auto there = make_subject(candidate, *bound, *operands, *clock_);
  auto moved = make_trip_subject(candidate, *operands);
  if (!there.ok() || !moved.ok()) return;
  const auto [kernel, whole] = both_ways(**there, **moved, *clock_);
  keep(traffic, kernel, whole, costs.in_seconds(traffic) + costs.out_seconds(traffic));
}

void MovedCalls::look(const ops::Op& op, std::span<const Candidate> candidates, const Costs& costs,
                      Workbench& plain) {
  const DType dtype = op.dtypes.empty() ? DType::f32 : op.dtypes.front();
  ShapeSource source(op, kShapesSeed + looks_++);
  const Mask usual = default_mask(op, candidates);
  for (int shape = 0; shape < kMovedShapes && !source.empty(); ++shape) {
    const auto args = source.draw(kShortestMoved, kLongestMoved);
    if (!args || Workbench::bytes_of_call(op, *args, dtype) > kMovedBytes) continue;
    const Candidate *home = nullptr, *away = nullptr;
    for (std::size_t c = candidates.size(); c-- > 0;) {
      const Candidate& candidate = candidates[c];
      if (!(usual >> c & 1) || !candidate.kernel.supports(*args)) continue;
      if (candidate.place == Place::device) away = &candidate;
      if (candidate.place == Place::host && candidate.threads == 1) home = &candidate;
    }
    if (home) look_home(op, *home, *args, costs, plain);
    if (away) look_away(op, *away, *args, costs, plain, false);
    if (away && shape == 0) look_away(op, *away, *args, costs, pinned_, true);
  }
}

Costs as_calls_say(Costs costs, std::span<const MovedCall> calls) {
  Factor home, pageable, pinned;
  for (const MovedCall& call : calls) {
    const Traffic& traffic = call.traffic;
    const bool comes_home = traffic.home_bytes > 0;
    const double said =
        comes_home ? costs.home_seconds(traffic) : costs.in_seconds(traffic) + costs.out_seconds(traffic);
    if (said <= 0 || call.extra_seconds <= 0) continue;
    Factor& factor = comes_home ? home : traffic.pinned ? pinned : pageable;
    factor.add(largest_of(traffic), std::log(call.extra_seconds / said));
  }
  scale_curve(costs.pinned_home, home);
  scale_curve(costs.pinned_more, home);
  scale_curve(costs.pageable_in, pageable);
  scale_curve(costs.pageable_out, pageable);
  scale_curve(costs.pinned_in, pinned);
  scale_curve(costs.pinned_out, pinned);
  return costs;
}

}  // namespace fulcrum::executor
