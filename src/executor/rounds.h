// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Several subjects timed in turns: one time of each a round, so that what disturbs the machine disturbs all of them.
#pragma once

#include <cmath>
#include <span>

#include "executor/points.h"
#include "executor/subjects.h"

namespace fulcrum::executor {

struct RoundsConfig {
  int rounds = 7;
  double window_seconds = 20e-6;  // calls that are shorter are repeated to fill it
  double enough_seconds = 0;  // of one subject: with these behind it three times are enough; 0: all rounds
  /// Of calls of each subject before the rounds, which say how fast it is when nothing holds it up.
  double look_seconds = 0;
  double hopeless = 3;  // times the fastest of its group: one look is enough; 0: all take part in every round
  double end = INFINITY;        // of the clock: no round but the first begins later
  double give_up_seconds = 0;   // subjects whose first calls take longer are not called again; 0: never
  std::span<const int> groups;  // 0 or 1 by subject; empty: one group
  const measure::Clock* clock = nullptr;
};

/// Seconds of a call by subject, then by round. Subjects that failed have none, hopeless ones a single one.
std::vector<std::vector<double>> time_rounds(std::span<Subject* const> subjects, const RoundsConfig& config);

/// Several looks at one call, at least one.
double together(std::span<const double> looks);
bool is_restless(const std::vector<std::vector<double>>& times);

/// Median, and one sigma of its logarithm. No times: seconds 0.
Sample sample_of(std::span<const double> seconds);

}  // namespace fulcrum::executor
