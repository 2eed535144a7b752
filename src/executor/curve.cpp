// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// See curve.h.
#include "executor/curve.h"

#include <algorithm>
#include <cmath>

namespace fulcrum::executor {
namespace {

// Below the smallest measured size a call still has to be entered: the line is not followed further down than this.
constexpr double kLeastShare = 0.2;

}  // namespace

Curve::Curve(std::vector<std::pair<double, double>> points) {
  std::sort(points.begin(), points.end());
  for (std::size_t i = 0; i < points.size();) {
    const double size = points[i].first;
    double sum = 0;
    int count = 0;
    for (; i < points.size() && points[i].first == size; ++i, ++count) sum += std::log(points[i].second);
    knots_.push_back({size, std::log2(size), std::exp(sum / count), sum / count});
  }
}

Curve::Value Curve::at(double size, double log2_size) const {
  if (knots_.size() == 1) {
    const Knot& only = knots_.front();
    const double ratio = std::max(size / only.size, kLeastShare);
    return {only.log_seconds + std::log(ratio), std::abs(log2_size - only.log2_size), 0};
  }
  const Knot &first = knots_.front(), &last = knots_.back();
  if (size < first.size) {
    const Knot& next = knots_[1];
    const double slope = std::max(0.0, (next.seconds - first.seconds) / (next.size - first.size));
    const double seconds = std::max(first.seconds - slope * (first.size - size), kLeastShare * first.seconds);
    return {std::log(seconds), first.log2_size - log2_size, 0};
  }
  if (size > last.size) {
    const Knot& before = knots_[knots_.size() - 2];
    // At least half the slope of the whole curve: two noisy neighbours must not make the rest of the line free.
    const double slope = std::max({0.0, (last.seconds - before.seconds) / (last.size - before.size),
                                   0.5 * (last.seconds - first.seconds) / (last.size - first.size)});
    return {std::log(last.seconds + slope * (size - last.size)), log2_size - last.log2_size, 0};
  }
  std::size_t right = 1;
  while (knots_[right].size < size) ++right;
  const Knot &a = knots_[right - 1], &b = knots_[right];
  const double gap = b.log2_size - a.log2_size;
  const double share = (log2_size - a.log2_size) / gap;
  return {a.log_seconds + share * (b.log_seconds - a.log_seconds), 0, gap};
}

double Curve::left_out_error() const {
  double sum = 0;
  for (std::size_t i = 1; i + 1 < knots_.size(); ++i) {
    const Knot &a = knots_[i - 1], &b = knots_[i + 1];
    const double share = (knots_[i].log2_size - a.log2_size) / (b.log2_size - a.log2_size);
    const double miss = knots_[i].log_seconds - (a.log_seconds + share * (b.log_seconds - a.log_seconds));
    sum += miss * miss;
  }
  return knots_.size() < 3 ? 0 : std::sqrt(sum / static_cast<double>(knots_.size() - 2));
}

}  // namespace fulcrum::executor
