// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Seconds that a change saves, as a range: what the simulation, calibration and tracing leave in doubt.
#include <algorithm>

#include "diagnose/idle.h"

namespace fulcrum::diagnose {
namespace {

// Beside the model's error and the spread: what costs that were measured elsewhere are off by.
constexpr double kCalibrationShare = 0.05, kCalibrationPoints = 0.01;
constexpr double kMostSpread = 0.15;  // of an iteration's time: beyond, it is noise of the machine
constexpr double kMostError = 0.03;
constexpr double kLeastLeft = 0.6;  // of the time that is simulated to stay
// What the host computes beside copies and after waits takes longer than the same right behind itself: its caches are
// cold, and others use its memory.
constexpr double kWarmHost = 0.8;

// What a change saves more where the host gets faster by it. It counts where the host's own work is what a step takes
// after the change and was not before; what a faster host saves anyway is no merit of the change.
double saved_by_warm_host(const Facts& facts, const Change& change) {
  if (!facts.what_if) return 0;
  Change warm;
  warm.host_scale = kWarmHost;
  const double anyway = facts.what_if(warm).seconds;
  const double both = facts.what_if(merged(std::move(warm), change)).seconds;
  return std::max(0.0, both - anyway - facts.what_if(change).seconds);
}

}  // namespace

double saved_seconds(const Facts& facts, const Change& change) {
  return facts.what_if ? std::max(0.0, facts.what_if(change).seconds) : 0;
}

Gain range(const Facts& facts, double low_seconds, double high_seconds, double traced_calls, Change change) {
  const Timeline& timeline = facts.timeline;
  const double all = timeline.seconds;
  Gain gain{.change = std::move(change), .simulated = true};
  if (all <= 0) return gain;
  const Timeline::Iterations& steps = timeline.iterations;
  const double spread =
      steps.median_seconds > 0
          ? std::min(kMostSpread, (steps.high_seconds - steps.low_seconds) / 2 / steps.median_seconds)
          : 0;
  high_seconds += saved_by_warm_host(facts, gain.change);
  const double error = std::min(kMostError, timeline.model_error);
  // What tracing adds is taken off by the simulation already; the low end allows for half more of it.
  const double traced = std::min(0.5 * all, 0.5 * timeline.tracing_per_launch.seconds * traced_calls);
  const double low = std::max(0.0, low_seconds * (1 - spread - kCalibrationShare) - traced) / (all - traced);
  // What stays is not much less than it was simulated to be, however much goes.
  const double high = std::min(high_seconds * (1 + spread + kCalibrationShare) / all,
                               1 - (1 - high_seconds / all) * kLeastLeft);
  gain.high = std::clamp(high + error + kCalibrationPoints, 0.0, 0.99);
  gain.low = std::clamp(low - error - kCalibrationPoints, 0.0, gain.high);
  return gain;
}

std::string verify_by_difference() { return "fulcrum trace --diff before.ftrace after.ftrace"; }

}  // namespace fulcrum::diagnose
