// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Order statistics of windows.
#include "machine/windows.h"

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

}  // namespace fulcrum::machine
