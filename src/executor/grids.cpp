// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Grids and guard of an op, from calls spread over everything it may be asked.
#include <algorithm>
#include <cmath>

#include "executor/candidates.h"
#include "executor/facts.h"
#include "executor/op_table.h"
#include "executor/shapes.h"

namespace fulcrum::executor {
namespace {

constexpr double kShortestOnGrid = 1e-8, kLongestOnGrid = 0.2;  // nominal seconds
constexpr int kLineTrials = 512, kTrials = 800;
constexpr int kLeastOfLine = 2, kLeast = 5;
// The guard's kernel may be slower than the best by so much, in ln: a decision would cost more than that.
constexpr float kGuardLoss = 0.03F;
constexpr double kDecisionSeconds = 30e-9;
// No guard reaches calls that take longer than this: a decision is no burden to them.
constexpr double kGuardSeconds = 20e-6;

}  // namespace

Traffic traffic_of(const ops::Op& op, const Args& args, Case which) {
  const OpFacts facts = facts_of(op);
  const DType dtype = op.dtypes.empty() ? DType::f32 : op.dtypes.front();
  const bool on_host = which == Case::pageable || which == Case::pinned;
  const bool resident = which == Case::resident || which == Case::resident_home;
  Traffic traffic;
  for (int slot = 0; slot < facts.pointers; ++slot) {
    const SlotFacts& role = facts.slots[static_cast<std::size_t>(slot)];
    if (role.optional) continue;
    const auto bytes = static_cast<double>(facts.bytes(args, slot, dtype));
    if (role.reads && on_host) traffic.add_in(bytes);
    if (role.reads && resident) traffic.add_home(bytes);
    if (role.writes && (on_host || which == Case::resident_home)) traffic.add_out(bytes);
  }
  traffic.pinned = which != Case::pageable;
  traffic.kept = which == Case::pageable || which == Case::cpu_only ? 0 : 0xff;
  return traffic;
}

void MeasuredOpTable::build_grids() {
  if (op_->needs_prepared || !default_) return;
  ShapeSource source(*op_, 7);
  std::array<std::vector<Grid::Trial>, kCases> trials;
  std::vector<std::pair<double, Grid::Trial>> host_trials;
  const int count = map_.is_line() ? kLineTrials : kTrials;
  for (int i = 0; i < count; ++i) {
    const std::optional<Args> args = source.draw(kShortestOnGrid, kLongestOnGrid);
    if (!args) continue;
    const Features f = map_.of(*args);
    const Mask possible = supported(*args, default_);
    for (int k = 0; k < (device_ ? kCases : 1); ++k) {
      const auto which = static_cast<Case>(k);
      Grid::Trial trial{.flops = f.flops, .bytes = f.bytes, .costs = {}, .possible = possible};
      if (which == Case::cpu_only) trial.possible &= host_;
      if (!trial.possible) continue;
      price(f, traffic_of(*op_, *args, which), trial.possible, trial.costs);
      trials[static_cast<std::size_t>(k)].push_back(trial);
      if (which != (device_ ? Case::pinned : Case::cpu_only)) continue;
      trial.possible &= ~on_one_part(f, trial.possible);
      host_trials.emplace_back(f.elements(), trial);
    }
  }
  for (std::size_t k = 0; k < kCases; ++k)
    grids_[k] = Grid(trials[k], preference_, map_.is_line() ? kLeastOfLine : kLeast);
  find_guard(host_trials);
}

void MeasuredOpTable::find_guard(std::span<const std::pair<double, Grid::Trial>> host_trials) {
  int plain = -1;
  for (std::size_t c = 0; c < candidates_.size() && plain < 0; ++c) {
    const Candidate& candidate = candidates_[c];
    if (candidate.place == Place::host && candidate.threads == 1 && !candidate.kernel.entry().plan &&
        !candidate.kernel.entry().supports && (default_ >> c & 1))
      plain = static_cast<int>(c);
  }
  if (plain < 0 || host_trials.empty()) return;
  double lost_at = INFINITY;
  std::vector<double> won_at;
  for (const auto& [elements, trial] : host_trials) {
    const float own = trial.costs.log_seconds[static_cast<std::size_t>(plain)];
    bool wins = own < static_cast<float>(std::log(kGuardSeconds));
    for (Mask left = trial.possible & ~(Mask{1} << plain); left && wins; left &= left - 1) {
      const auto c = static_cast<std::size_t>(std::countr_zero(left));
      // A library with many threads does small calls on one.
      const bool like =
          candidates_[c].place == Place::host && candidates_[c].kernel.backend().name() != "threads";
      const double lost =
          std::exp(static_cast<double>(own)) - std::exp(static_cast<double>(trial.costs.log_seconds[c]));
      // Another single thread may be as good, or better by less than asking costs; forks and the device must be slower
      // beyond their doubt.
      wins = like ? lost <= kDecisionSeconds || trial.costs.log_seconds[c] - own >= -kGuardLoss
                  : trial.costs.log_seconds[c] - own >= trial.costs.sigma[c];
    }
    if (wins) {
      won_at.push_back(elements);
    } else {
      lost_at = std::min(lost_at, elements);
    }
  }
  // Up to the last size at which it was tried and won: of those before the first at which it lost nobody knows.
  double last = 0;
  for (const double elements : won_at) {
    if (elements < lost_at) last = std::max(last, elements);
  }
  if (std::isinf(lost_at) || last <= 0) return;
  guard_ = Guard{static_cast<std::int64_t>(last) + 1,
                 &candidates_[static_cast<std::size_t>(plain)].kernel.entry()};
}

}  // namespace fulcrum::executor
