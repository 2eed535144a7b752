// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// The later passes of a calibration: the same shapes once more, the closest decisions first, and others.
#include <algorithm>
#include <bit>
#include <cmath>
#include <span>

#include "executor/calibrate_op.h"
#include "executor/candidates.h"
#include "executor/rounds.h"
#include "executor/shapes.h"

namespace fulcrum::executor {
namespace {

constexpr std::size_t kFewPoints = 32;
constexpr int kMostSweeps = 3;
constexpr std::uint64_t kLaterShapes = 3;  // seed of the second pass
constexpr double kClose = 1.5;             // of two ways: worth another look
constexpr double kLongLook = 200e-6;
constexpr double kFarBehind = 2;    // of the fastest in the same place: no further look
constexpr double kLookShare = 0.5;  // of a pass, where there are not few points

}  // namespace

void OpCalibration::Looks::add(const Sample& look) {
  if (look.seconds > 0) seconds.push_back(look.seconds);
  if (look.plan_seconds > 0) plans.push_back(look.plan_seconds);
}

OpPoints OpCalibration::look_again(double seconds) {
  const double begin = tools_->clock->now();
  share_seconds_ += seconds;
  predictor_.reset();
  const bool few = points_.points.size() < kFewPoints;
  // Shapes that no pass before has drawn: the same ones again would tell what another look tells.
  ShapeSource source(*op_, kLaterShapes + static_cast<std::uint64_t>(passes_++));
  if (!map_.is_line() && few && !source.empty()) {
    end_ = begin + seconds * (1 - kLookShare);
    grow(source, kFewPoints);
  }
  if (map_.is_line()) {
    end_ = begin + seconds * kLookShare;
    seek_on_line();
  }
  end_ = begin + seconds * (few || map_.is_line() ? 1 : kLookShare);
  measure_again();
  end_ = begin + seconds;
  if (!map_.is_line() && !source.empty()) grow(source, kMostPoints);
  predictor_.reset();
  return points_;
}

void OpCalibration::measure_again() {
  std::vector<std::pair<double, std::size_t>> order, at_last;
  const Mask usual = default_mask(*op_, candidates_) ? default_mask(*op_, candidates_) : ~Mask{0};
  for (std::size_t i = 0; i < points_.points.size(); ++i) {
    const Point& point = points_.points[i];
    const int best = fastest_of(point, usual);
    const int next = best < 0 ? -1 : fastest_of(point, usual & ~(Mask{1} << best));
    if (next < 0) continue;
    const Sample &fastest = point.samples[static_cast<std::size_t>(best)],
                 &second = point.samples[static_cast<std::size_t>(next)];
    (fastest.seconds > kLongLook ? at_last : order).emplace_back(log_ratio(second, fastest), i);
  }
  std::sort(order.begin(), order.end());
  std::sort(at_last.begin(), at_last.end());
  const auto look = [&](std::span<const std::pair<double, std::size_t>> at, double widest) {
    for (const auto& [margin, i] : at) {
      if (margin > widest || out_of_time()) return;
      look_at(i, worth_looking_at(points_.points[i]));
    }
  };
  // All once, then those again whose answer is close. One long call takes as much time as many short ones, and is as well
  // known after one look.
  look(order, INFINITY);
  for (int sweep = 1; sweep < kMostSweeps; ++sweep) look(order, std::log(kClose));
  look(at_last, INFINITY);
}

// Threads may have been held up; of the vectorised kernel on one thread all of them are predicted.
Mask OpCalibration::worth_looking_at(const Point& point) const {
  const Mask on_device = mask_of(candidates_, Place::device);
  Mask worth = 0;
  for (std::size_t c = 0; c < candidates_.size(); ++c) {
    const int best = fastest_of(point, on_device >> c & 1 ? on_device : ~on_device);
    const bool steady = (on_device >> c & 1) ||
                        (candidates_[c].threads == 1 && candidates_[c].kernel.backend().name() != "simd");
    const bool behind = best >= 0 && point.samples[c].seconds >
                                         kFarBehind * point.samples[static_cast<std::size_t>(best)].total();
    if (!steady || !behind) worth |= Mask{1} << c;
  }
  return worth;
}

void OpCalibration::look_at(std::size_t number, Mask among) {
  Point& point = points_.points[number];
  if (tools_->forks) tools_->forks->look();
  auto again = measure(point.args, point.dtype, among & ~costly_);
  if (again) level_forks(*again, point);
  for (std::size_t c = 0; again && c < point.samples.size(); ++c) {
    const Sample& look = again->samples[c];
    if (look.seconds <= 0) continue;
    Sample& sample = point.samples[c];
    Looks& looks = looks_[number][c];
    looks.add(look);
    if (sample.seconds <= 0 || look.seconds < sample.seconds) sample = look;
    sample.seconds = together(looks.seconds);
    sample.looks = static_cast<int>(looks.seconds.size());
    // A plan is timed twice a look: one look says less about it than about a call.
    if (!looks.plans.empty()) sample.plan_seconds = together(looks.plans);
  }
}

}  // namespace fulcrum::executor
