// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Which of several ways to do the same thing is the fastest here: a few interleaved rounds, the smallest median. The
// caller owns the clock, so that the rule is tested without one.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace fulcrum::backends::cuda::trips {

struct RaceRules {
  int warm_ups = 2;
  int rounds = 20;
  double seconds_each = 0.03;  // a candidate that has used this much is not run again
  double hopeless = 2.0;       // out after the warm-ups when slower than the best by this factor
  double endless_seconds = 0.02;
};

/// Runs `seconds_of(i)` for candidates [0, count) and returns the winner. A negative time means that the candidate
/// failed and is out; -1: all did.
template <class SecondsOf>
int race(int count, const RaceRules& rules, SecondsOf&& seconds_of) {
  struct Runner {
    std::vector<double> seconds;
    double last = 0, least = 0, spent = 0;
    bool out = false;
  };
  std::vector<Runner> runners(static_cast<std::size_t>(std::max(count, 0)));
  const auto run = [&](int i) {
    Runner& runner = runners[static_cast<std::size_t>(i)];
    runner.last = seconds_of(i);
    runner.least = runner.spent > 0 ? std::min(runner.least, runner.last) : runner.last;
    runner.spent += std::max(runner.last, 0.0);
    runner.out = runner.last < 0;
  };
  for (int k = 0; k < rules.warm_ups; ++k) {
    double best = -1;
    for (int i = 0; i < count; ++i) {
      Runner& runner = runners[static_cast<std::size_t>(i)];
      if (runner.out) continue;
      run(i);
      if (!runner.out && (best < 0 || runner.least < best)) best = runner.least;
    }
    // A first run may pay for what later ones find done, so that until the last warm-up only the endless are sent off.
    const bool last = k + 1 == rules.warm_ups;
    for (Runner& runner : runners) {
      if (runner.least > rules.hopeless * best && (last || runner.least > rules.endless_seconds))
        runner.out = true;
    }
  }
  for (int round = 0; round < rules.rounds; ++round) {
    for (int i = 0; i < count; ++i) {
      Runner& runner = runners[static_cast<std::size_t>(i)];
      if (runner.out || (!runner.seconds.empty() && runner.spent > rules.seconds_each)) continue;
      run(i);
      if (!runner.out) runner.seconds.push_back(runner.last);
    }
  }
  int winner = -1;
  double smallest = 0;
  for (int i = 0; i < count; ++i) {
    std::vector<double>& seconds = runners[static_cast<std::size_t>(i)].seconds;
    if (runners[static_cast<std::size_t>(i)].out || seconds.empty()) continue;
    const auto middle = seconds.begin() + static_cast<std::ptrdiff_t>(seconds.size() / 2);
    std::nth_element(seconds.begin(), middle, seconds.end());
    if (winner < 0 || *middle < smallest) {
      winner = i;
      smallest = *middle;
    }
  }
  return winner;
}

}  // namespace fulcrum::backends::cuda::trips
