// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// See choose.h.
#include "executor/choose.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>

namespace fulcrum::executor {
namespace {

// A tie is at most this, however large the doubt. What the program ships is doubted by so much that only a plain advantage
// should send a call away from the CPU; among threads of one CPU the likelier one is taken.
constexpr float kMeasuredTie = 0.01F, kAssumedTie = 0.25F;

}  // namespace

Picked pick(const Estimates& costs, Mask possible, Mask on_device, std::span<const int> order) {
  int cheapest = -1;
  for (Mask left = possible; left; left &= left - 1) {
    const int c = std::countr_zero(left);
    if (cheapest < 0 || costs.log_seconds[static_cast<std::size_t>(c)] <
                            costs.log_seconds[static_cast<std::size_t>(cheapest)])
      cheapest = c;
  }
  if (cheapest < 0) return {};
  const auto base = static_cast<std::size_t>(cheapest);
  int best = cheapest;
  for (Mask left = possible; left; left &= left - 1) {
    const auto c = static_cast<std::size_t>(std::countr_zero(left));
    const bool elsewhere = ((on_device >> c ^ on_device >> base) & 1) != 0;
    const float tie = std::min(costs.assumed && elsewhere ? kAssumedTie : kMeasuredTie,
                               std::hypot(costs.sigma[c], costs.sigma[base]));
    const auto so_far = static_cast<std::size_t>(best);
    const bool preferred = order[c] != order[so_far] ? order[c] < order[so_far]
                                                     : costs.log_seconds[c] < costs.log_seconds[so_far];
    if (costs.log_seconds[c] - costs.log_seconds[base] <= tie && preferred) best = static_cast<int>(c);
  }
  int runner_up = -1;
  for (Mask left = possible & ~(Mask{1} << best); left; left &= left - 1) {
    const int c = std::countr_zero(left);
    if (runner_up < 0 || costs.log_seconds[static_cast<std::size_t>(c)] <
                             costs.log_seconds[static_cast<std::size_t>(runner_up)])
      runner_up = c;
  }
  return {best, runner_up};
}

std::vector<int> order_of(std::span<const Candidate> candidates) {
  std::vector<int> by_preference(candidates.size()), order(candidates.size());
  std::iota(by_preference.begin(), by_preference.end(), 0);
  std::stable_sort(by_preference.begin(), by_preference.end(), [&](int a, int b) {
    const Candidate &x = candidates[static_cast<std::size_t>(a)],
                    &y = candidates[static_cast<std::size_t>(b)];
    return x.place != y.place ? x.place == Place::host : x.threads < y.threads;
  });
  // Those that nothing tells apart share a place: among them the cheapest is taken, however little that is.
  for (std::size_t i = 0, rank = 0; i < order.size(); ++i) {
    const auto own = static_cast<std::size_t>(by_preference[i]);
    if (i > 0) {
      const auto before = static_cast<std::size_t>(by_preference[i - 1]);
      rank += candidates[own].place != candidates[before].place ||
              candidates[own].threads != candidates[before].threads;
    }
    order[own] = static_cast<int>(rank);
  }
  return order;
}

}  // namespace fulcrum::executor
