// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// What calls whose data moves take longer than calls whose data is there. Copies timed by themselves say how that grows
// with size; calls say how much it is: a copy overlaps with a launch, a kernel finds what came home in no cache and in
// other pages, and a machine is not always as it was in the tenth of a second in which copies were timed.
#pragma once

#include "executor/points.h"
#include "executor/workbench.h"

namespace fulcrum::executor {

/// One call that was timed both ways.
struct MovedCall {
  Traffic traffic;           // either home, or in and out
  double extra_seconds = 0;  // that it took longer
};

/// Times calls of ops at random shapes of their own, home from the device to a CPU kernel, and to the device and back.
class MovedCalls {
 public:
  MovedCalls(const backends::Backend& device, const measure::Clock& clock);
  /// Some calls of one op more; those that cannot be timed, or in which moving is lost in the rest, do not count.
  void look(const ops::Op& op, std::span<const Candidate> candidates, const Costs& costs, Workbench& plain);
  std::span<const MovedCall> calls() const { return calls_; }

 private:
  void look_home(const ops::Op& op, const Candidate& candidate, const Args& args, const Costs& costs,
                 Workbench& plain);
  void look_away(const ops::Op& op, const Candidate& candidate, const Args& args, const Costs& costs,
                 Workbench& bench, bool pinned);
  void keep(const Traffic& traffic, double there, double moved, double said);

  const backends::Backend* device_;
  const measure::Clock* clock_;
  Workbench pinned_;
  std::uint64_t looks_ = 0;
  std::vector<MovedCall> calls_;
};

/// `costs` as copies alone say, times what calls took over that, by size.
Costs as_calls_say(Costs costs, std::span<const MovedCall> calls);

}  // namespace fulcrum::executor
