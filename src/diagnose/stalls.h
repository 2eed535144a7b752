// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Why warps did not issue, from the counters of `ncu --csv`: what rules issue_slots and warp_stall share.
#pragma once

#include <fulcrum/diagnose.h>

namespace fulcrum::diagnose {

struct Stall {
  std::string reason;  // as NVIDIA names it: "long_scoreboard"
  double share = 0;    // of all cycles that warps spent between two instructions
};
/// The largest; none: no such counters, or no stalls.
std::optional<Stall> worst_stall(const Facts&, const Timeline::Kernel&);

/// A share that makes the reason worth naming.
inline constexpr double kLeastStall = 0.3;

/// What better issue would save of the kernel's time: min(1 - issue, 1 - busiest unit); 0 without the counter.
double issue_gain(const Facts&, const Timeline::Kernel&);

}  // namespace fulcrum::diagnose
