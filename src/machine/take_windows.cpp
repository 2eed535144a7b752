// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// One turn of one probe.
#include <algorithm>
#include <cmath>

#include "machine/probes.h"

namespace fulcrum::machine {
namespace {

constexpr int kFewestWindows = 3;

/// Runs one window; true when it was long enough to be kept. A short one sets the repeats of the next.
bool take_window(Probe& probe, const measure::Clock& clock) {
  if (probe.warm) probe.warm();
  const double begin = clock.now();
  probe.run(probe.repeats);
  const double seconds = std::max(clock.now() - begin, clock.resolution_seconds);
  const auto repeats = static_cast<double>(probe.repeats);
  if (seconds < probe.window_seconds / 2) {
    // Eightfold at most: the shortest windows are mostly overhead and say little about the next.
    probe.repeats = std::llround(std::ceil(repeats * std::clamp(probe.window_seconds / seconds, 1.0, 8.0)));
    return false;
  }
  probe.costs.push_back(seconds / (repeats * probe.work));
  return true;
}

}  // namespace

void take_windows(Probe& probe, const measure::Clock& clock, double until) {
  if (take_window(probe, clock)) probe.costs.pop_back();
  probe.turns.push_back(probe.costs.size());
  for (int taken = 0; taken < kFewestWindows || clock.now() < until;)
    taken += take_window(probe, clock) ? 1 : 0;
}

}  // namespace fulcrum::machine
