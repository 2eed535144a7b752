// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// See held_up.h.
#include "executor/held_up.h"

#include <algorithm>
#include <cmath>

#include "executor/closed_form.h"
#include "executor/widths.h"

namespace fulcrum::executor {
namespace {

// Times what a call should take on threads: beyond that it is in doubt. Threads that would be faster than all others by
// next to nothing, or are by more than a quarter already, change no decision.
constexpr double kFarAbove = 1.35, kWouldWin = 0.97, kWins = 0.75;

}  // namespace

double shared_out(const Candidate& candidate, const Features& f, const Costs& costs, double one_thread) {
  const Runner runner(candidate, Caches{});
  const double parts = runner.parts(f);
  if (parts <= 1) return 0;
  const double share =
      runner.split ? std::max(1 / parts, std::ceil(f.pieces / parts) * f.largest) : 1 / parts;
  return std::min(1.0, share) * one_thread + f.phases * costs.fork_of(static_cast<int>(parts));
}

Mask held_up(std::span<const Candidate> candidates, const Features& f, const Costs& costs,
             const Point& point) {
  const std::vector<int> singles = singles_of(candidates);
  Mask mask = 0;
  for (std::size_t c = 0; c < std::min(candidates.size(), point.samples.size()); ++c) {
    const double own = point.samples[c].seconds;
    if (singles[c] < 0 || own <= 0) continue;
    const double one_thread = point.samples[static_cast<std::size_t>(singles[c])].seconds;
    const double should = one_thread > 0 ? shared_out(candidates[c], f, costs, one_thread) : 0;
    double others = INFINITY;
    for (std::size_t other = 0; other < point.samples.size(); ++other) {
      const bool counts =
          other != c && point.samples[other].seconds > 0 && candidates[other].place == Place::host;
      if (counts) others = std::min(others, point.samples[other].seconds);
    }
    if (should > 0 && own > kFarAbove * should && should < kWouldWin * others && own > kWins * others)
      mask |= Mask{1} << c;
  }
  return mask;
}

}  // namespace fulcrum::executor
