// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Which candidates are one kernel on more or fewer threads, and what that says about times that were disturbed.
#pragma once

#include <functional>

#include "executor/points.h"

namespace fulcrum::executor {

/// Candidates that are one kernel in several widths share a family; 0: alone. Streaming stores are another kernel. All that
/// a library has on so many threads are the same threads.
struct Width {
  int family = 0, threads = 0;
  int group = 0;
};

std::vector<Width> widths_of(std::span<const Candidate> candidates);

/// The same kernel on one thread, by candidate on several; -1: none.
std::vector<int> singles_of(std::span<const Candidate> candidates);

/// What makes the plan of each candidate: that of our threads is made by the kernel that they run in pieces, on as many of
/// them.
struct PlanMaker {
  decltype(fulcrum_kernel::plan) plan = nullptr;
  int threads = 1;
  bool operator==(const PlanMaker&) const = default;
  bool operator<(const PlanMaker& other) const {
    return threads != other.threads ? threads < other.threads : std::less<>()(plan, other.plan);
  }
};
std::vector<PlanMaker> plan_makers_of(std::span<const Candidate> candidates);

/// Takes spikes out of the points and says what a call has to fear from them, in ln(seconds) by candidate: threads that
/// meet them often, as those of a library that has to wake them one by one, are dear however fast they are in between; at
/// most shapes, and they are no spikes but what these threads cost. A single one says nothing about a way.
std::vector<double> drop_spikes(std::span<const Candidate> candidates, OpPoints& points);

}  // namespace fulcrum::executor
