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
namespace {

constexpr std::size_t kMostBeaten = 4;

}  // namespace

Quantity best_cost(std::vector<double> costs) {
  if (costs.empty())
    return Quantity{stats::kUndefined, stats::kUndefined, stats::kUndefined, Source::measured};
  std::sort(costs.begin(), costs.end());
  const std::size_t n = costs.size();
  const std::size_t rank = std::min(n - 1, std::clamp<std::size_t>(n / 100, 1, kMostBeaten));
  return Quantity{costs[rank], costs.front(), costs[std::max(rank, (n - 1) / 4)], Source::measured};
}

Quantity as_rate(const Quantity& cost) {
  return Quantity{1 / cost.value, 1 / cost.high, 1 / cost.low, Source::measured};
}

Quantity best_rate(const std::vector<double>& costs) { return as_rate(best_cost(costs)); }

namespace {

constexpr std::size_t kFewestGroups = 4;
constexpr double kNearBest = 0.03;

/// The windows of each group of turns, fastest first; a last group that is not whole is left out.
std::vector<std::vector<double>> groups_of(const Turns& turns) {
  std::vector<std::vector<double>> groups;
  for (std::size_t turn = 0; turn + turns.group <= turns.begins.size(); turn += turns.group) {
    const std::size_t next = turn + turns.group;
    const std::size_t end = next < turns.begins.size() ? turns.begins[next] : turns.costs.size();
    const auto windows = turns.costs.subspan(turns.begins[turn], end - turns.begins[turn]);
    if (windows.empty()) continue;
    std::ranges::sort(groups.emplace_back(windows.begin(), windows.end()));
  }
  return groups;
}

double near_best(const std::vector<double>& sorted) {
  const auto beaten = static_cast<std::size_t>(kNearBest * static_cast<double>(sorted.size()));
  return sorted[std::min(sorted.size() - 1, std::max<std::size_t>(1, beaten))];
}

double usual_of(std::vector<double> bests, Usual usual) {
  if (usual == Usual::eighth) return stats::quantile(bests, 0.125);
  if (usual == Usual::quartile) return stats::quantile(bests, 0.25);
  if (usual == Usual::middle) return stats::quantile(bests, 0.5);
  std::ranges::sort(bests);
  const std::size_t quarter = bests.size() / 4;
  return stats::mean(std::span(bests).subspan(quarter, bests.size() - 2 * quarter));
}

}  // namespace

Quantity usual_cost(const Turns& turns, Usual usual) {
  Quantity best = best_cost(std::vector<double>(turns.costs.begin(), turns.costs.end()));
  if (usual == Usual::best) return best;
  std::vector<double> bests;
  for (const std::vector<double>& group : groups_of(turns)) bests.push_back(near_best(group));
  if (bests.size() < kFewestGroups) return best;
  best.value = usual_of(bests, usual);
  best.high = std::max(best.high, best.value);
  return best;
}

double disagreement(const Turns& turns, Usual usual) {
  const std::vector<std::vector<double>> groups = groups_of(turns);
  if (groups.size() < kFewestGroups) return std::numeric_limits<double>::infinity();
  std::vector<double> halves[2];
  for (std::size_t i = 0; i < groups.size(); ++i) {
    std::vector<double>& half = halves[i % 2];
    if (usual != Usual::best) {
      half.push_back(near_best(groups[i]));
    } else {
      half.insert(half.end(), groups[i].begin(), groups[i].end());
    }
  }
  const auto value = [usual](const std::vector<double>& half) {
    return usual == Usual::best ? best_cost(half).value : usual_of(half, usual);
  };
  return std::abs(std::log(value(halves[0]) / value(halves[1])));
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
