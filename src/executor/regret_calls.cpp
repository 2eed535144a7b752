// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// See regret_calls.h.
#include "executor/regret_calls.h"

#include "executor/candidates.h"
#include "executor/workbench.h"

namespace fulcrum::executor {
namespace {

constexpr double kShortestScored = 5e-7, kLongestScored = 5e-3;  // nominal seconds
constexpr int kDrawsForBand = 24;

/// Whether the best of another class is predicted within a factor of two.
bool in_band(const OpTable& table, const std::vector<Price>& prices, Mask possible) {
  int best = -1;
  for (std::size_t c = 0; c < prices.size(); ++c) {
    if (!(possible >> c & 1)) continue;
    if (best < 0 || prices[c].seconds < prices[static_cast<std::size_t>(best)].seconds)
      best = static_cast<int>(c);
  }
  if (best < 0) return false;
  const auto candidates = table.candidates();
  for (std::size_t c = 0; c < prices.size(); ++c) {
    if ((possible >> c & 1) &&
        class_of(candidates[c]) != class_of(candidates[static_cast<std::size_t>(best)]) &&
        prices[c].seconds <= 2 * prices[static_cast<std::size_t>(best)].seconds)
      return true;
  }
  return false;
}

}  // namespace

std::string_view class_of(const Candidate& candidate) {
  if (candidate.place == Place::device) return "device";
  return candidate.threads > 1 ? "threads" : "one thread";
}

Mask possible_of(const OpTable& table, const Args& args) {
  Mask possible = 0;
  const auto candidates = table.candidates();
  const Mask allowed = default_mask(table.op(), candidates);
  for (std::size_t c = 0; c < candidates.size(); ++c) {
    if ((allowed >> c & 1) && candidates[c].kernel.supports(args)) possible |= Mask{1} << c;
  }
  return possible;
}

std::optional<RegretCall> draw_call(const OpTable& table, ShapeSource& source, Case which, bool wants_band) {
  std::optional<RegretCall> found;
  const ops::Op& op = table.op();
  const DType dtype = op.dtypes.empty() ? DType::f32 : op.dtypes.front();
  for (int i = 0; i < kDrawsForBand; ++i) {
    const auto args = source.draw(kShortestScored, kLongestScored);
    if (!args || Workbench::bytes_of_call(op, *args, dtype) > kScoreBytes) continue;
    if (op.list_lengths && op.list_lengths(*args) >= 0) continue;
    const Mask possible = possible_of(table, *args);
    if (!possible) continue;
    const auto prices = table.prices(*args, traffic_of(op, *args, which));
    found = RegretCall{*args, which, in_band(table, prices, possible)};
    if (found->in_band == wants_band) break;
  }
  return found;
}

}  // namespace fulcrum::executor
