// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Sums of windows become parts of the whole as soon as the window behind them has ended: only then is it known how many
// launches there were in between, and how much the other has seen.
#include "trace/inject/totals.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <unordered_set>

#include "trace/inject/turns.h"

namespace fulcrum::trace::inject {
namespace {

constexpr std::int64_t kLeastCompared = 200;  // launches
constexpr double kMostApart = 0.02, kLeastDense = 0.5, kMostOff = 4, kMostMissing = 0.1;
// Fewer calls of other kinds in a window say nothing about how many launches go with one.
constexpr double kLeastOthers = 20;
constexpr std::size_t kMostLookedAt =
    16'384;  // launches of a window; of more, what its edges cut off is little
constexpr std::int64_t kLeastBefore = 4, kFarAbove = 20;  // of a kernel that is doubtful
constexpr std::size_t kMostDoubtful = 4096;

}  // namespace

void Totals::Sum::add(std::int64_t duration_ns) {
  ++count;
  sum_ns += duration_ns;
  min_ns = std::min(min_ns, duration_ns);
  max_ns = std::max(max_ns, duration_ns);
  ++histogram[std::min(39, int(std::bit_width(std::uint64_t(duration_ns))))];
}

bool Totals::Sum::is_doubtful(std::int64_t duration_ns) const {
  return is_of_graph && count >= kLeastBefore && duration_ns / kFarAbove > sum_ns / count &&
         doubtful.size() < kMostDoubtful;
}

void Totals::add(const Kernel& kernel) {
  // Records come late, and those of a window may come when the next has begun.
  auto window = windows_.rbegin();
  while (window->begin_ns > kernel.begin_ns && window + 1 != windows_.rend()) ++window;
  if (window->begin_ns == 0) window->begin_ns = kernel.begin_ns;
  const std::uint64_t key =
      (std::uint64_t{kernel.shape} << 32 | kernel.stream) << 1 | (kernel.is_of_graph ? 1 : 0);
  Sum& sum =
      window->sums
          .try_emplace(key, Sum{kernel.shape, kernel.stream, kernel.is_of_graph, 0, 0, INT64_MAX, 0, {}})
          .first->second;
  if (sum.is_doubtful(kernel.duration_ns)) {
    sum.doubtful.push_back({kernel.begin_ns + kernel.duration_ns, kernel.duration_ns});
    return;
  }
  if (window->stay == 0) usual_[key].add(kernel.duration_ns);
  sum.add(kernel.duration_ns);
  if (kernel.is_of_graph) return;
  ++window->kernels_seen;
  if (window->order.size() <= kMostLookedAt) window->order.push_back({kernel.grid, kernel.duration_ns, key});
  Grids& grids = window->grids[kernel.context];
  grids.first = std::min(grids.first, kernel.grid);
  grids.last = std::max(grids.last, kernel.grid);
  ++grids.count;
}

void Totals::begin_window(std::int64_t begin_ns, int stay) {
  // The one before may still have to speak for what comes now, the ones before that do not.
  while (windows_.size() > 1) settle_first();
  windows_.emplace_back().begin_ns = begin_ns;
  windows_.back().stay = stay;
}

void Totals::end_window(std::int64_t end_ns, const Launches& within, const Gap& before, const Late& late) {
  Window& window = windows_.back();
  window.end_ns = end_ns;
  window.kernels.within = double(within.kernels);
  window.graphs.within = double(within.graphs);
  window.others = double(within.others);
  window.announced = within.kernels;
  window.before = before;
  window.late = late;
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
  const bool is_late = before.late.ns > 0;
  const double others = is_late ? double(before.late.launches.others) : before.others;
  const double kernels = is_late ? double(before.late.launches.kernels) : before.kernels.within;
  if (gap.launches.others >= 0 && others >= kLeastOthers)
    return kernels / others * double(gap.launches.others);
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
  if (window.late.ns > 0) return double(window.late.launches.kernels) / double(window.late.ns);
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
  keep_whole_turns(first);
  add_all(first);
  windows_.pop_front();
}

/// What a window has of a turn at its begin is left out; the rest speaks for it. Not in the first window, which has the
/// program's start.
void Totals::keep_whole_turns(Window& window) {
  std::vector<Launched> order = std::move(window.order);
  window.order.clear();
  if (window.kernels.is_first || window.grids.size() != 1 || order.size() > kMostLookedAt) return;
  std::sort(order.begin(), order.end(), [](const Launched& a, const Launched& b) { return a.grid < b.grid; });
  std::vector<std::uint64_t> keys;
  keys.reserve(order.size());
  for (const Launched& launch : order) keys.push_back(launch.key);
  const std::size_t turn = launches_a_turn(keys);
  if (turn == 0) return;
  const std::size_t left_out = order.size() % turn;
  // What ran in that part alone is no part of the loop, and stays.
  std::unordered_set<std::uint64_t> begun;
  for (std::size_t i = left_out; i < order.size(); ++i) {
    Sum& sum = window.sums.at(order[i].key);
    if (begun.insert(order[i].key).second) sum = {sum.shape, sum.stream, false, 0, 0, INT64_MAX, 0, {}};
    sum.add(order[i].duration_ns);
  }
  window.whole = double(order.size()) / double(order.size() - left_out);
}

/// One that ended behind the window took what the others did, as far as anybody knows.
void Totals::judge_doubtful(Window& window) {
  for (auto& [key, sum] : window.sums) {
    const std::int64_t mean_ns = sum.count > 0 ? sum.sum_ns / sum.count : 0;
    for (const Doubtful& one : sum.doubtful) {
      const bool is_behind = window.end_ns > 0 && one.end_ns > window.end_ns;
      sum.add(is_behind ? mean_ns : one.duration_ns);
    }
    sum.doubtful.clear();
  }
}

void Totals::add_all(Window& window) {
  judge_doubtful(window);
  const bool calm = is_calm(window);
  for (const auto& [key, sum] : window.sums) add_to(wholes_[key >> 1], sum, window, calm);
}

/// Whether most launches of a window of a later stay take what they took in the first.
bool Totals::is_calm(const Window& window) const {
  if (window.stay == 0) return false;
  Calm calm;
  for (const auto& [key, sum] : window.sums)
    if (const auto usual = usual_.find(key); usual != usual_.end())
      calm.add(usual->second, sum.count, sum.sum_ns);
  return calm.is_calm();
}

void Totals::add_to(Whole& whole, const Sum& sum, const Window& window, bool is_calm) const {
  const double weight = sum.is_of_graph ? window.graphs.weight() : window.kernels.weight() * window.whole;
  double sum_ns = double(sum.sum_ns);
  if (is_calm) {
    const std::uint64_t key = (std::uint64_t{sum.shape} << 32 | sum.stream) << 1;
    if (const auto usual = usual_.find(key | (sum.is_of_graph ? 1 : 0)); usual != usual_.end())
      sum_ns = usual->second.instead_of(sum.count, sum_ns);
  }
  whole.count += double(sum.count) * weight;
  whole.sum_ns += sum_ns * weight;
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
  for (Window& window : windows_) keep_whole_turns(window);
  for (Window& window : windows_) add_all(window);
  windows_.clear();
  windows_.emplace_back();
  std::vector<file::Total> out;
  out.reserve(wholes_.size());
  for (const auto& [key, whole] : wholes_) out.push_back(total_of(key, whole));
  return out;
}

std::vector<file::Total> Totals::standing(std::int64_t now_ns, const Open* open, const Gap& behind) const {
  Totals ended = *this;
  if (open != nullptr) ended.end_window(now_ns, open->within, open->before);
  return ended.end(now_ns, behind);
}

}  // namespace fulcrum::trace::inject
