// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// See regret_calls.h.
#include "executor/regret_calls.h"

#include <algorithm>

#include "executor/candidates.h"
#include "executor/workbench.h"

namespace fulcrum::executor {
namespace {

constexpr double kShortestScored = 5e-7, kLongestScored = 5e-3;  // nominal seconds
constexpr int kDrawsForBand = 24;

bool are_near(double a, double b) { return std::max(a, b) <= 2 * std::min(a, b); }

Band predicted_band(std::span<const Candidate> candidates, std::span<const Price> prices, Mask possible) {
  double single = kNoWay, threads = kNoWay, device = kNoWay;
  for (std::size_t c = 0; c < prices.size(); ++c) {
    if (!(possible >> c & 1)) continue;
    double& best = candidates[c].place == Place::device ? device
                   : candidates[c].threads > 1          ? threads
                                                        : single;
    best = std::min(best, prices[c].seconds);
  }
  return band_of(single, threads, device);
}

}  // namespace

Band band_of(double single, double threads, double device) {
  const double host = std::min(threads, single);
  if (device < kNoWay && are_near(device, host)) return Band::device;
  return host < device && threads < kNoWay && are_near(threads, single) ? Band::threads : Band::none;
}

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
    const RegretCall call{*args, which, predicted_band(table.candidates(), prices, possible)};
    if (!found || (wants_band ? call.band > found->band : call.band < found->band)) found = call;
    const Band wanted = !wants_band ? Band::none : which == Case::cpu_only ? Band::threads : Band::device;
    if (found->band == wanted) break;
  }
  return found;
}

}  // namespace fulcrum::executor
