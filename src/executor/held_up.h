// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Which times of a calibration are threads that did not get a core each: for a moment two threads can take as long as one.
// What the same kernel takes on one thread says what they should take, and that they are worth another look.
#pragma once

#include "executor/features.h"
#include "executor/points.h"

namespace fulcrum::executor {

/// What a call should take on the threads of a candidate when each has a core; 0: they have nothing to share.
double shared_out(const Candidate& candidate, const Features& f, const Costs& costs, double one_thread);

/// Candidates on threads that took far longer than their share of the work and a fork, and that would be the fastest had
/// they not.
Mask held_up(std::span<const Candidate> candidates, const Features& f, const Costs& costs,
             const Point& point);

}  // namespace fulcrum::executor
