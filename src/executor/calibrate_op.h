// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// One op at few shapes: first spread over its sizes, then where the answer is in doubt.
#pragma once

#include <fulcrum/measure.h>

#include "executor/predictor.h"
#include "executor/workbench.h"

namespace fulcrum::executor {

struct CalibrationTools {
  const backends::Backend* device = nullptr;
  Workbench* bench = nullptr;
  const measure::Clock* clock = nullptr;
  const Machine* machine = nullptr;  // roofs; null: not known
  Caches caches;
  std::function<bool()> interrupted;
};

class OpCalibration {
 public:
  OpCalibration(const ops::Op& op, std::span<const Candidate> candidates, const CalibrationTools& tools);
  /// Measures until about `seconds` are over; at least a handful of shapes.
  OpPoints run(double seconds);
  /// The same shapes once more, those whose answer is closest first, and new ones where there is room, for about
  /// `seconds`. Looks that nearly agree count alike; else the shorter one is kept: what disturbs a machine only adds time.
  OpPoints look_again(OpPoints points, double seconds);
  /// Every candidate once, untimed: libraries that load at their first call must not use up the time of an op.
  void touch();

  /// Every candidate that can do it at one shape, interleaved; none when no candidate could be timed.
  std::optional<Point> measure(const Args& args, DType dtype);

 private:
  bool out_of_time() const;
  void add(const Args& args, DType dtype);
  void run_line();
  void run_surface();
  /// New shapes, every second one where the answer is in doubt, until time or room runs out.
  void grow(class ShapeSource& source, std::size_t most);
  void run_other_types(double end);
  void measure_again();
  /// Of some drawn calls the one whose answer is least certain.
  std::optional<Args> doubtful(class ShapeSource& source);
  /// Candidates that took `hopeless` times the fastest at all near points.
  Mask hopeless(const Args& args, DType dtype) const;
  /// Candidates whose plans have used up their share of the time.
  Mask overdrawn() const;
  void drop_impossible(const Args& args, Point& point) const;

  const ops::Op* op_;
  std::span<const Candidate> candidates_;
  const CalibrationTools* tools_;
  FeatureMap map_;
  OpPoints points_;
  double end_ = 0;
  int measured_ = 0;
  Mask costly_ = 0;                                     // plans that took long
  std::array<double, kMostCandidates> plan_seconds_{};  // spent on them
  double share_seconds_ = 0;                            // given to this op so far
  std::optional<Predictor> predictor_;                  // of the first `predicted_` points
  std::size_t predicted_ = 0;
};

}  // namespace fulcrum::executor
