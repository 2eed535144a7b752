// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// One op at few shapes: first spread over its sizes, then where the answer is in doubt.
#pragma once

#include <fulcrum/measure.h>

#include <cmath>
#include <deque>

#include "executor/predictor.h"
#include "executor/workbench.h"

namespace fulcrum::executor {

inline constexpr int kLeastPoints = 6;  // of an op

struct CalibrationTools {
  const backends::Backend* device = nullptr;
  Workbench* bench = nullptr;
  const measure::Clock* clock = nullptr;
  const Machine* machine = nullptr;  // roofs; null: not known
  Caches caches;
  const Costs* costs = nullptr;  // of moving data; null: not known
  ForkWatch* forks = nullptr;    // null: nobody looks
  std::function<bool()> interrupted;
};

class OpCalibration {
 public:
  OpCalibration(const ops::Op& op, std::span<const Candidate> candidates, const CalibrationTools& tools);
  /// Measures until about `seconds` are over; at least a handful of shapes.
  OpPoints run(double seconds);
  /// The same shapes once more, those whose answer is closest first, and new ones where there is room, for about
  /// `seconds`. Looks that nearly agree count alike; those far above the shortest do not: what disturbs a machine only
  /// adds time.
  OpPoints look_again(double seconds);
  /// Another look at threads that seem to have been held up, at a few points that have had fewer than `most_looks` and not
  /// after `end`; at how many.
  int look_at_held_up(double end, int most_looks);
  const OpPoints& points() const { return points_; }
  /// ln of what a choice costs on average, each point's by what the others say of it; 0 for ops of one size.
  double expected_loss();
  /// Every candidate once, untimed: libraries that load at their first call must not use up the time of an op.
  void touch();

  /// Every candidate of `among` that can do it at one shape, interleaved; none when no candidate could be timed.
  std::optional<Point> measure(const Args& args, DType dtype, Mask among = ~Mask{0});

 private:
  bool out_of_time() const;
  const Predictor& predictor();  // of the points, or nearly all of them
  /// The best way and the next one, in ln(seconds): how far they are apart and how well that is known; sigma 0: there is
  /// one way. At home: among the CPU's, else with the data on the device among all.
  struct Rivals {
    float apart = 0, sigma = 0;
  };
  Rivals rivals(const Args& args, bool at_home);
  void add(const Args& args, DType dtype);
  void run_line();
  /// Sizes between those that were measured, as long as something happens between them.
  void seek_on_line();
  /// Nominal seconds of the next size worth a look; 0: none.
  double between_points() const;
  void run_surface();
  /// New shapes, every second one where the answer is in doubt, until time or room runs out.
  void grow(class ShapeSource& source, std::size_t most);
  void run_other_types(double end);
  void measure_again();
  /// Candidates of one point that another look could tell something about: not those that one thread or the device ran so
  /// much slower than another in the same place that no more looks change which of them is the fastest.
  Mask worth_looking_at(const Point& point) const;
  /// One point once more.
  void look_at(std::size_t number, Mask among = ~Mask{0});
  /// What CPU kernels pay when their inputs lie on the device.
  void charge_home(const Args& args, Mask on_host, Estimates& costs) const;
  /// Of some drawn calls the one whose answer is least certain: in turn among the CPU's ways, and with the data on the
  /// device among all.
  std::optional<Args> doubtful(class ShapeSource& source);
  /// Candidates that took `hopeless` times the fastest at all near points.
  Mask hopeless(const Args& args, DType dtype) const;
  /// Nominal seconds of the longest call to draw: less where long ones have used up their share of the time.
  double longest(bool may_be_long) const;
  /// Candidates whose plans have used up their share of the time.
  Mask overdrawn() const;
  void drop_impossible(const Args& args, Point& point) const;
  /// Candidates on threads whose time at a point lies far above what the others say of it, where they may be chosen. What
  /// the others say is worked out once for looks up to `most_looks`.
  Mask out_of_line(std::size_t point, int most_looks);
  /// Times on threads as they would be if forks took what they usually do. `known`: the same point with a time of one
  /// thread.
  void level_forks(Point& point, const Point& known) const;

  const ops::Op* op_;
  std::span<const Candidate> candidates_;
  const CalibrationTools* tools_;
  FeatureMap map_;
  OpPoints points_;
  double end_ = 0;
  int measured_ = 0, sought_ = 0, passes_ = 0;
  /// Seconds of each look at one candidate, and of its plan.
  struct Looks {
    std::vector<double> seconds, plans;
    void add(const Sample& look);
  };
  std::vector<std::vector<Looks>> looks_;              // by point and candidate
  std::vector<int> looked_again_;                      // at threads that seemed held up, by point
  std::vector<std::vector<double>> left_out_seconds_;  // by candidate and point, for looks up to
  int left_out_for_ = 0;
  Mask costly_ = 0;                                     // plans that took long
  std::array<double, kMostCandidates> plan_seconds_{};  // spent on them
  double share_seconds_ = 0;                            // given to this op so far
  double long_seconds_ = 0;                             // of them for points that took long,
  double least_long_ = INFINITY;                        // nominal seconds of the shortest of those
  std::optional<Predictor> predictor_;                  // of the first `predicted_` points
  std::size_t predicted_ = 0;
};

/// The fastest of `among` at a point, plans included; -1: none was timed.
int fastest_of(const Point& point, Mask among);
double log_ratio(const Sample& a, const Sample& b);

/// In turns over all ops, until nothing is in doubt, it has been looked at often enough or the time is over.
void look_at_held_up(std::deque<OpCalibration>& calibrations, const measure::Clock& clock, double end,
                     int most_looks);

}  // namespace fulcrum::executor
