// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// What a kernel takes as long as CUPTI has never been away. To attach it again changes some short kernels: on an H200 two
// of fifteen in a training step, by 0.08 us of 1.09 and by 0.13 us of 2.80, from one stay to the next and back again, and
// never within a stay. That is the tracer's doing, so such a kernel counts with its usual time. It is told from what the
// program does by its size, and by most other kernels staying as they were. Pure.
#pragma once

#include <cmath>
#include <cstdint>

namespace fulcrum::trace::inject {

class Usual {
 public:
  void add(std::int64_t duration_ns) {
    if (++seen_ <= kCold) return;
    sum_ns_ += double(duration_ns);
  }
  bool is_known() const { return seen_ >= kCold + kLeast; }
  double mean_ns() const { return sum_ns_ / double(seen_ - kCold); }

  /// The sum of `count` launches in a later stay, without what attaching CUPTI again may have done to them.
  double instead_of(std::int64_t count, double sum_ns) const {
    if (!is_known() || std::abs(sum_ns / double(count) - mean_ns()) > kMostNs) return sum_ns;
    return mean_ns() * double(count);
  }

 private:
  static constexpr std::int64_t kCold = 8, kLeast = 12;  // launches
  static constexpr double kMostNs = 160;
  std::int64_t seen_ = 0;
  double sum_ns_ = 0;
};

/// Of the launches in a window of a later stay.
class Calm {
 public:
  void add(const Usual& usual, std::int64_t count, std::int64_t sum_ns) {
    if (!usual.is_known()) return;
    compared_ += count;
    const double mean_ns = usual.mean_ns();
    if (std::abs(double(sum_ns) / double(count) - mean_ns) <= kSame * mean_ns) same_ += count;
  }
  bool is_calm() const { return compared_ > 0 && double(same_) >= kMost * double(compared_); }

 private:
  static constexpr double kSame = 0.015, kMost = 2. / 3;
  std::int64_t compared_ = 0, same_ = 0;
};

}  // namespace fulcrum::trace::inject
