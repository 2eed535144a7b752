// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// After each pass of a calibration: threads that seem to have been held up get another look, some time after the last one.
// Their share of the work says what they should take, and so do calls like it.
#include <algorithm>
#include <cmath>

#include "executor/calibrate_op.h"
#include "executor/held_up.h"

namespace fulcrum::executor {
namespace {

// A turn goes over all ops, so that looks at one point are some time apart: what holds threads up may last for a while.
constexpr int kLooksATurn = 4;
// Times what the other points say; ways that take longer than so many times the fastest are not chosen near there either.
constexpr double kFarAbove = 1.35, kMayBeChosen = 2.5;

}  // namespace

// Threads of a host that is shared take up to twice as long for seconds, all widths alike. Such a point tells nothing by
// itself, since some calls do not share out; to its neighbours it does, and theirs are predicted from it.
Mask OpCalibration::out_of_line(std::size_t point, int most_looks) {
  if (map_.is_line() || points_.points.size() < kLeastPoints) return 0;
  if (left_out_for_ != most_looks) {
    left_out_for_ = most_looks;
    left_out_seconds_.clear();
    for (std::size_t c = 0; c < candidates_.size(); ++c)
      left_out_seconds_.push_back(predictor().left_out_seconds(c));
  }
  const Point& at = points_.points[point];
  const int best = fastest_of(at, ~Mask{0});
  Mask mask = 0;
  for (std::size_t c = 0; best >= 0 && c < candidates_.size(); ++c) {
    if (candidates_[c].threads <= 1 || point >= left_out_seconds_[c].size()) continue;
    const double seconds = at.samples[c].seconds, others = left_out_seconds_[c][point];
    const bool may_be_chosen = seconds < kMayBeChosen * at.samples[static_cast<std::size_t>(best)].seconds;
    if (may_be_chosen && others > 0 && seconds > kFarAbove * others) mask |= Mask{1} << c;
  }
  return mask;
}

int OpCalibration::look_at_held_up(double end, int most_looks) {
  struct Doubt {
    int looks;
    double longest;
    std::size_t point;
    Mask among;
  };
  if (!tools_->costs) return 0;
  std::vector<Doubt> doubts;
  looked_again_.resize(points_.points.size());
  for (std::size_t i = 0; i < points_.points.size(); ++i) {
    if (looked_again_[i] >= most_looks) continue;
    const Mask among =
        held_up(candidates_, map_.of(points_.points[i].args), *tools_->costs, points_.points[i]) |
        out_of_line(i, most_looks);
    if (!among) continue;
    double longest = 0;
    for (std::size_t c = 0; c < candidates_.size(); ++c) {
      if (among >> c & 1) longest = std::max(longest, points_.points[i].samples[c].seconds);
    }
    doubts.push_back({looked_again_[i], longest, i, among});
  }
  // Those with the fewest looks first; of them the short ones, which are many for the time of one that is long.
  std::sort(doubts.begin(), doubts.end(), [](const Doubt& a, const Doubt& b) {
    return a.looks != b.looks ? a.looks < b.looks : a.longest < b.longest;
  });
  end_ = end;
  int looked = 0;
  for (const Doubt& doubt : doubts) {
    if (looked == kLooksATurn || out_of_time()) break;
    ++looked_again_[doubt.point];
    look_at(doubt.point, doubt.among);
    ++looked;
  }
  if (looked > 0) predictor_.reset();
  return looked;
}

void look_at_held_up(std::deque<OpCalibration>& calibrations, const measure::Clock& clock, double end,
                     int most_looks) {
  for (bool looked = true; looked;) {
    looked = false;
    for (OpCalibration& calibration : calibrations) {
      if (clock.now() > end) return;
      looked = calibration.look_at_held_up(end, most_looks) > 0 || looked;
    }
  }
}

}  // namespace fulcrum::executor
