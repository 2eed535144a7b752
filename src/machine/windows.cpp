// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Order statistics of windows.
#include "machine/windows.h"

#include <fmt/format.h>
#include <fulcrum/stats.h>

#include <algorithm>
#include <cmath>
#include <limits>

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

double disagreement(std::span<const double> costs, std::span<const std::size_t> turns, std::size_t group) {
  constexpr std::size_t kFewestGroups = 4;
  if (turns.size() < kFewestGroups * group) return std::numeric_limits<double>::infinity();
  std::vector<double> halves[2];
  for (std::size_t turn = 0; turn < turns.size(); ++turn) {
    const std::size_t end = turn + 1 < turns.size() ? turns[turn + 1] : costs.size();
    std::vector<double>& half = halves[turn / group % 2];
    half.insert(half.end(), costs.begin() + std::ptrdiff_t(turns[turn]), costs.begin() + std::ptrdiff_t(end));
  }
  return std::abs(std::log(best_cost(std::move(halves[0])).value / best_cost(std::move(halves[1])).value));
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
