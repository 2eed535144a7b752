// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Order statistics of windows.
#include "machine/windows.h"

#include <fmt/format.h>
#include <fulcrum/stats.h>

#include <algorithm>

namespace fulcrum::machine {

Quantity best_cost(std::vector<double> costs) {
  if (costs.empty())
    return Quantity{stats::kUndefined, stats::kUndefined, stats::kUndefined, Source::measured};
  std::sort(costs.begin(), costs.end());
  const std::size_t n = costs.size();
  const std::size_t rank = std::min(n - 1, std::max<std::size_t>(1, n / 100));
  return Quantity{costs[rank], costs.front(), costs[std::max(rank, (n - 1) / 4)], Source::measured};
}

Quantity best_rate(const std::vector<double>& costs) {
  const Quantity cost = best_cost(costs);
  return Quantity{1 / cost.value, 1 / cost.high, 1 / cost.low, Source::measured};
}

std::optional<Groups> two_groups(const std::vector<double>& costs) {
  constexpr double kApart = 1.1;
  constexpr double kLeastShare = 0.2;
  const std::vector<stats::Mode> modes = stats::find_modes(costs).modes;
  if (modes.size() < 2) return {};
  const stats::Mode& fast = modes.front();
  const stats::Mode& slow = modes.back();
  const Groups groups{.slower = slow.location / fast.location, .share_slow = slow.share};
  if (!(groups.slower > kApart) || fast.share < kLeastShare || slow.share < kLeastShare) return {};
  return groups;
}

std::string note_of(std::string_view what, const Groups& groups) {
  return fmt::format("{}: {:.0f} % of the windows are a group of their own that takes {:.2f} times as long",
                     what, 100 * groups.share_slow, groups.slower);
}

}  // namespace fulcrum::machine
