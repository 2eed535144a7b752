// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// How many launches one turn of a program's loop has. A window begins and ends somewhere within a turn, and not at any
// place alike: it is opened and closed at the end of a call. Whole turns alone have all kernels by their share. Pure.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace fulcrum::trace::inject {

/// The share of launches that are like those so many before.
inline double share_alike(const std::vector<std::uint64_t>& launches, std::size_t apart) {
  std::size_t alike = 0;
  for (std::size_t i = apart; i < launches.size(); ++i) alike += launches[i] == launches[i - apart];
  return double(alike) / double(launches.size() - apart);
}

/// Whether that share can be large: false as soon as too many of some that lie evenly spread are unlike.
inline bool may_be_alike(const std::vector<std::uint64_t>& launches, std::size_t apart) {
  constexpr std::size_t kLookedAt = 64;
  constexpr int kMostUnlike = 10;
  const std::size_t count = launches.size() - apart, step = std::max<std::size_t>(count / kLookedAt, 1);
  int unlike = 0;
  for (std::size_t i = 0; i < count; i += step)
    if (launches[i] != launches[i + apart] && ++unlike > kMostUnlike) return false;
  return true;
}

/// Launches a turn, by what was launched in which order; 0: nothing repeats. A turn fits at least twice.
inline std::size_t launches_a_turn(const std::vector<std::uint64_t>& launches) {
  constexpr std::size_t kMost = 4096;
  constexpr double kSame = 0.995, kLike = 0.9;
  std::size_t best = 0;
  double best_share = kLike;
  for (std::size_t apart = 1; apart <= std::min(launches.size() / 2, kMost); ++apart) {
    if (!may_be_alike(launches, apart)) continue;
    const double share = share_alike(launches, apart);
    if (share >= kSame) return apart;
    if (share > best_share) best = apart, best_share = share;
  }
  return best;
}

}  // namespace fulcrum::trace::inject
