// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Sums of windows become parts of the whole as soon as the window behind them has ended: only then is it known how many
// launches there were in between, and how much the other has seen.
#include "trace/inject/totals.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace fulcrum::trace::inject {
namespace {

constexpr std::int64_t kLeastCompared = 200;  // launches
constexpr double kMostApart = 0.02, kLeastDense = 0.5, kMostOff = 4, kMostMissing = 0.1;
// Fewer calls of other kinds in a window say nothing about how many launches go with one.
constexpr double kLeastOthers = 20;

}  // namespace

void Totals::add(const Kernel& kernel) {
  // Records come late, and those of a window may come when the next has begun.
  auto window = windows_.rbegin();
  while (window->begin_ns > kernel.begin_ns && window + 1 != windows_.rend()) ++window;
  if (window->begin_ns == 0) window->begin_ns = kernel.begin_ns;
  const std::uint64_t key = (std::uint64_t{kernel.shape} << 32 | kernel.stream) << 1;
  Sum& sum = window->sums
                 .try_emplace(key | (kernel.is_of_graph ? 1 : 0),
                              Sum{kernel.shape, kernel.stream, kernel.is_of_graph, 0, 0, INT64_MAX, 0, {}})
                 .first->second;
  ++sum.count;
  sum.sum_ns += kernel.duration_ns;
  sum.min_ns = std::min(sum.min_ns, kernel.duration_ns);
  sum.max_ns = std::max(sum.max_ns, kernel.duration_ns);
  ++sum.histogram[std::min(39, int(std::bit_width(std::uint64_t(kernel.duration_ns))))];
  if (kernel.is_of_graph) return;
  ++window->kernels_seen;
  Grids& grids = window->grids[kernel.context];
  grids.first = std::min(grids.first, kernel.grid);
  grids.last = std::max(grids.last, kernel.grid);
  ++grids.count;
}

void Totals::begin_window(std::int64_t begin_ns) {
  // The one before may still have to speak for what comes now, the ones before that do not.
  while (windows_.size() > 1) settle_first();
  windows_.emplace_back().begin_ns = begin_ns;
}

void Totals::end_window(std::int64_t end_ns, const Launches& within, const Gap& before) {
  Window& window = windows_.back();
  window.end_ns = end_ns;
  window.kernels.within = double(within.kernels);
  window.graphs.within = double(within.graphs);
  window.others = double(within.others);
  window.announced = within.kernels;
  window.before = before;
}

/// Kernels are numbered by context. Memsets may have numbers too, and nodes of graphs: as many as in the windows.
double Totals::by_numbers(const Window& before, const Window& after) {
  double sum = -1;
  for (const auto& [context, next] : after.grids) {
    const auto found = before.grids.find(context);
    if (found == before.grids.end()) continue;
    const Grids& last = found->second;
    const double between = double(next.first) - double(last.last) - 1;
    if (between < 0) return -1;
    const double dense = double(last.count + next.count) / (last.span() + next.span());
    sum = std::max(sum, 0.0) + between * std::min(dense, 1.0);
  }
  return sum;
}

double Totals::kernels_between(const Window& before, Window& after) {
  const double numbered = by_numbers(before, after);
  // Calls are announced a little later than records are made, and no longer a little earlier.
  if (!after.before.is_counted) after.kernels.within = double(after.kernels_seen);
  const double passed_ns = double(std::max<std::int64_t>(after.begin_ns - before.end_ns, 1));
  double launches = double(after.before.launches.kernels);
  if (!after.before.is_counted) {
    // Far from what else is known, the numbers do not mean what they did within windows. Not all other calls were seen.
    const double guessed = by_other_calls(before, after.before, passed_ns);
    const double most = std::max(guessed, rate_within(before) * passed_ns);
    const bool is_likely = numbered * kMostOff >= guessed && numbered <= most * kMostOff;
    launches = numbered >= 0 && is_likely ? numbered : guessed;
  }
  gap_rate_ = launches / passed_ns;
  return launches;
}

/// Where no window came behind it, or none with kernels in it: as many with each other call as before.
double Totals::by_other_calls(const Window& before, const Gap& gap, double passed_ns) const {
  if (gap.launches.others >= 0 && before.others >= kLeastOthers)
    return before.kernels.within / before.others * double(gap.launches.others);
  return (gap_rate_ > 0 ? gap_rate_ : rate_within(before)) * passed_ns;
}

bool Totals::numbers_fit() const {
  std::int64_t seen = 0;
  double span = 0;
  for (const Window& window : windows_)
    for (const auto& [context, grids] : window.grids) {
      seen += grids.count;
      span += grids.span();
    }
  return seen >= kLeastCompared && double(seen) <= (1 + kMostApart) * span &&
         double(seen) >= kLeastDense * span;
}

double Totals::kernels_behind(std::int64_t end_ns, const Gap& gap) const {
  if (gap.is_counted) return std::max(0.0, double(gap.launches.kernels));
  const Window& last = windows_.back();
  return by_other_calls(last, gap, double(std::max<std::int64_t>(end_ns - last.end_ns, 0)));
}

double Totals::rate_within(const Window& window) {
  return window.end_ns > window.begin_ns ? window.kernels.within / double(window.end_ns - window.begin_ns)
                                         : 0;
}

void Totals::count_lost(const Window& window) {
  const std::int64_t missing = window.announced - window.kernels_seen;
  if (window.announced >= kLeastCompared && double(missing) > kMostMissing * double(window.announced))
    lost_ += missing;
}

void Totals::settle_first() {
  Window& first = windows_[0];
  if (windows_.size() > 1) {
    Window& next = windows_[1];
    share_gap(first.kernels, next.kernels, kernels_between(first, next));
    share_gap(first.graphs, next.graphs, double(next.before.launches.graphs));
  }
  count_lost(first);
  for (const auto& [key, sum] : first.sums) {
    add_to(wholes_[key >> 1], sum, first);
    changed_.insert(key >> 1);
  }
  windows_.pop_front();
}

void Totals::add_to(Whole& whole, const Sum& sum, const Window& window) const {
  const double weight = (sum.is_of_graph ? window.graphs : window.kernels).weight();
  whole.count += double(sum.count) * weight;
  whole.sum_ns += double(sum.sum_ns) * weight;
  whole.min_ns = std::min(whole.min_ns, sum.min_ns);
  whole.max_ns = std::max(whole.max_ns, sum.max_ns);
  for (int i = 0; i < 40; ++i) whole.histogram[i] += float(sum.histogram[i] * weight);
}

file::Total Totals::total_of(std::uint64_t key, const Whole& whole) const {
  file::Total out{};
  out.shape = std::uint32_t(key >> 32);
  out.stream = std::uint32_t(key);
  out.count = std::llround(whole.count);
  out.sum_ns = std::llround(whole.sum_ns);
  out.min_ns = whole.min_ns;
  out.max_ns = whole.max_ns;
  for (int i = 0; i < 40; ++i) out.histogram[i] = std::uint32_t(std::lround(whole.histogram[i]));
  return out;
}

std::vector<file::Total> Totals::now() {
  std::unordered_map<std::uint64_t, Whole, Hash> standing;
  for (const std::uint64_t key : changed_) standing.emplace(key, wholes_[key]);
  for (const Window& window : windows_)
    for (const auto& [key, sum] : window.sums)
      add_to(standing.try_emplace(key >> 1, wholes_[key >> 1]).first->second, sum, window);
  changed_.clear();
  std::vector<file::Total> out;
  out.reserve(standing.size());
  for (const auto& [key, whole] : standing) out.push_back(total_of(key, whole));
  return out;
}

std::vector<file::Total> Totals::end(std::int64_t end_ns, const Gap& behind) {
  while (windows_.size() > 2) settle_first();
  Window *const last = &windows_.back(), *const before = windows_.size() > 1 ? &windows_.front() : nullptr;
  if (before != nullptr) {
    share_gap(before->kernels, last->kernels, kernels_between(*before, *last));
    share_gap(before->graphs, last->graphs, double(last->before.launches.graphs));
  }
  const double kernels = kernels_behind(end_ns, behind);
  share_rest(before != nullptr ? &before->kernels : nullptr, last->kernels, kernels);
  share_rest(before != nullptr ? &before->graphs : nullptr, last->graphs, double(behind.launches.graphs));
  for (const Window& window : windows_) count_lost(window);
  for (const Window& window : windows_)
    for (const auto& [key, sum] : window.sums) {
      add_to(wholes_[key >> 1], sum, window);
      changed_.insert(key >> 1);
    }
  windows_.clear();
  windows_.emplace_back();
  return now();
}

}  // namespace fulcrum::trace::inject
