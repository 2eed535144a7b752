// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// See grid.h. Corners of cells are no calls (an element-wise op lives on a diagonal), so margins are those of calls that
// exist, and the least of them stands for the cell.
#include "executor/grid.h"

#include <algorithm>
#include <cmath>

namespace fulcrum::executor {
namespace {

// ln of ratios. Candidates that never differ by more than kEqual are the same to a caller; one that is slower by less
// than kClear beyond the doubt is for the model to judge.
constexpr float kEqual = 0.04F, kClear = 0.09F;
constexpr float kNever = 1e30F;

std::int16_t fixed(double log2_value) {
  return static_cast<std::int16_t>(std::clamp(std::floor(256 * log2_value), -32768.0, 32767.0));
}

float cost(const Grid::Trial& trial, std::size_t c) {
  return trial.possible >> c & 1 ? trial.costs.log_seconds[c] : kNever;
}

float cheapest(const Grid::Trial& trial, std::size_t candidates) {
  float least = kNever;
  for (std::size_t c = 0; c < candidates; ++c) least = std::min(least, cost(trial, c));
  return least;
}

}  // namespace

Grid::Grid(std::span<const Trial> trials, const Preference& preference, int least) {
  if (trials.empty()) return;
  float flops_high = -kNever, bytes_high = -kNever;
  flops_low_ = bytes_low_ = kNever;
  for (const Trial& trial : trials) {
    flops_low_ = std::min(flops_low_, quick_log2(trial.flops));
    flops_high = std::max(flops_high, quick_log2(trial.flops));
    bytes_low_ = std::min(bytes_low_, quick_log2(trial.bytes));
    bytes_high = std::max(bytes_high, quick_log2(trial.bytes));
  }
  flops_scale_ = kSide / std::max(1.0F, 1.0001F * (flops_high - flops_low_));
  bytes_scale_ = kSide / std::max(1.0F, 1.0001F * (bytes_high - bytes_low_));
  std::vector<std::vector<const Trial*>> by_cell(cells_.size());
  for (const Trial& trial : trials) {
    const int at = index_of(trial.flops, trial.bytes);
    if (at >= 0) by_cell[static_cast<std::size_t>(at)].push_back(&trial);
  }
  for (std::size_t i = 0; i < cells_.size(); ++i) {
    if (by_cell[i].size() >= static_cast<std::size_t>(least)) settle(cells_[i], by_cell[i], preference);
  }
}

void Grid::settle(Cell& cell, std::span<const Trial* const> trials, const Preference& preference) {
  const std::size_t count = preference.candidates();
  const std::vector<int>& order = preference.at(cheapest(*trials.front(), count));
  std::size_t best = count;
  float best_loss = kNever;
  for (std::size_t c = 0; c < count; ++c) {
    float loss = 0;
    for (const Trial* trial : trials) loss = std::max(loss, cost(*trial, c) - cheapest(*trial, count));
    const bool preferred = best < count && std::abs(loss - best_loss) <= kEqual / 2 && order[c] < order[best];
    if (loss < best_loss - kEqual / 2 || (loss <= kEqual && preferred)) {
      best = c;
      best_loss = loss;
    }
  }
  if (best == count || best_loss > kEqual) return;
  float margin = kNever;
  std::size_t runner_up = best;
  for (std::size_t c = 0; c < count; ++c) {
    if (c == best) continue;
    float least = kNever, most_apart = 0;
    for (const Trial* trial : trials) {
      const float apart = cost(*trial, c) - cost(*trial, best);
      const float doubt = std::hypot(trial->costs.sigma[c], trial->costs.sigma[best]);
      most_apart = std::max(most_apart, std::abs(apart));
      least = std::min(least, apart - doubt);
    }
    if (most_apart <= kEqual) continue;
    if (least < kClear) return;
    if (least < margin) {
      margin = least;
      runner_up = c;
    }
  }
  double sum = 0, runner_sum = 0;
  for (const Trial* trial : trials) {
    sum += cost(*trial, best);
    runner_sum += std::min(cost(*trial, runner_up), 60.0F);
  }
  const auto mean = [&](double total) {
    return static_cast<float>(std::exp(total / static_cast<double>(trials.size())));
  };
  cell = Cell{static_cast<std::uint8_t>(best), static_cast<std::uint8_t>(runner_up),
              fixed(margin / std::log(2.0F)), mean(sum), mean(runner_sum)};
}

int Grid::clear_cells() const {
  return static_cast<int>(
      std::count_if(cells_.begin(), cells_.end(), [](const Cell& cell) { return cell.margin >= 0; }));
}

}  // namespace fulcrum::executor
