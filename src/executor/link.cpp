// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// What moving data costs: see points.h.
#include <algorithm>

#include "executor/points.h"

namespace fulcrum::executor {
namespace {

// No copy is free, however much of its measured time was the wait for it.
constexpr double kLeastLinkSeconds = 1e-6;

/// One copy of `largest` bytes as `first` says, the others alike as `rest` says: a copy's price bends with its size, so
/// that weights and the little beside them are not so many middling ones.
double copies_seconds(const LinkCurve& first, const LinkCurve& rest, double bytes, double largest,
                      int copies) {
  if (bytes <= 0) return 0;
  const int others = std::max(1, copies) - 1;
  const double most = largest > 0 ? std::min(largest, bytes) : bytes / (others + 1);
  return first.seconds(most) + (others > 0 ? others * rest.seconds((bytes - most) / others) : 0);
}

}  // namespace

double LinkCurve::seconds(double bytes) const {
  if (bytes <= 0 || knots.empty()) return 0;
  if (bytes <= knots.front().first) return knots.front().second;
  for (std::size_t i = 1; i < knots.size(); ++i) {
    const auto [left, low] = knots[i - 1];
    const auto [right, high] = knots[i];
    if (bytes <= right) return low + (high - low) * (bytes - left) / (right - left);
  }
  return knots.back().second * bytes / knots.back().first;
}

double Costs::in_seconds(const Traffic& traffic) const {
  const LinkCurve& curve = traffic.pinned ? pinned_in : pageable_in;
  return copies_seconds(curve, curve, traffic.in_bytes, traffic.in_largest, traffic.in_copies);
}
double Costs::out_seconds(const Traffic& traffic) const {
  const LinkCurve& curve = traffic.pinned ? pinned_out : pageable_out;
  return copies_seconds(curve, curve, traffic.out_bytes, traffic.out_largest, traffic.out_copies);
}
// The first copy is waited for; the others lie behind it in the same stream.
double Costs::home_seconds(const Traffic& traffic) const {
  const LinkCurve& home = traffic.pinned ? pinned_home : pageable_home;
  const LinkCurve& out = traffic.pinned ? pinned_out : pageable_out;
  const LinkCurve& further = traffic.pinned ? pinned_more : pageable_more;
  const LinkCurve& first = home.knots.empty() ? out : home;
  const LinkCurve& more = further.knots.empty() ? out : further;
  const double wait = traffic.home_bytes > 0 && home.knots.empty() ? launch_sync_seconds / 2 : 0;
  return wait + copies_seconds(first, more, traffic.home_bytes, traffic.home_largest, traffic.home_copies);
}

double Costs::fork_of(int threads) const {
  if (threads <= 1) return 0;
  if (!forks.empty()) return executor::fork_seconds(forks, threads);
  // Of all threads alone: fewer are woken in less time.
  const int all = std::max(2, backends::usable_threads());
  return fork_seconds * std::min(1.0, (threads - 1.0) / (all - 1.0));
}

LinkCurve link_curve(std::span<const std::pair<std::int64_t, Quantity>> table, double wait_seconds) {
  LinkCurve curve;
  for (const auto& [bytes, quantity] : table) {
    curve.knots.emplace_back(static_cast<double>(bytes),
                             std::max(kLeastLinkSeconds, quantity.value - wait_seconds));
  }
  std::sort(curve.knots.begin(), curve.knots.end());
  return curve;
}

}  // namespace fulcrum::executor
