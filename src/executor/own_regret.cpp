// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// See own_regret.h.
#include "executor/own_regret.h"

#include <algorithm>

namespace fulcrum::executor {

void OwnRegret::add(double taken_seconds, double other_seconds) {
  if (!(taken_seconds > 0 && other_seconds > 0)) return;
  const double point = taken_seconds / std::min(taken_seconds, other_seconds);
  const std::lock_guard lock(mutex_);
  if (points_.size() < kMost) {
    points_.push_back(point);
    return;
  }
  points_[next_] = point;
  next_ = (next_ + 1) % kMost;
}

Regret OwnRegret::summary() const {
  std::vector<double> points;
  {
    const std::lock_guard lock(mutex_);
    points = points_;
  }
  Regret regret{.points = static_cast<std::int64_t>(points.size())};
  if (points.empty()) return regret;
  std::sort(points.begin(), points.end());
  double sum = 0, squares = 0;
  for (const double point : points) sum += point, squares += point * point;
  const auto count = static_cast<double>(points.size());
  regret.mean = sum / count;
  const double spread = std::sqrt(std::max(0.0, squares / count - regret.mean * regret.mean) / count);
  regret.low = std::max(1.0, regret.mean - 1.96 * spread);
  regret.high = regret.mean + 1.96 * spread;
  regret.p95 = points[static_cast<std::size_t>(0.95 * (count - 1))];
  regret.max = points.back();
  return regret;
}

}  // namespace fulcrum::executor
