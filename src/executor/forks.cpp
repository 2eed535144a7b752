// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// See forks.h.
#include "executor/forks.h"

#include <fulcrum/backends/workers.h>
#include <fulcrum/stats.h>

#include <algorithm>
#include <map>

namespace fulcrum::executor {
namespace {

constexpr int kForks = 32;
// What two looks at the same machine differ by, and more.
constexpr double kSame = 1.25;

/// Seconds of one fork; less than 0: another job was under way, and the caller did all of it.
double time_round(int threads, const measure::Clock& clock) {
  bool alone = false;
  const double begin = clock.now();
  for (int i = 0; i < kForks; ++i) {
    backends::on_each_thread(
        threads,
        [](void* context, std::int64_t first, std::int64_t last) {
          if (last - first > 1) *static_cast<bool*>(context) = true;
        },
        &alone);
  }
  const double seconds = (clock.now() - begin) / kForks;
  return alone ? -1 : seconds;
}

template <class Choose>
ForkTimes together(const ForkTimes& a, const ForkTimes& b, Choose choose) {
  std::map<int, double> all(a.begin(), a.end());
  for (const auto& [threads, seconds] : b) {
    const auto [at, is_new] = all.emplace(threads, seconds);
    if (!is_new) at->second = choose(at->second, seconds);
  }
  return {all.begin(), all.end()};
}

/// Somebody looked at so many threads, or at fewer and at more.
bool covers(const ForkTimes& times, int threads) {
  return !times.empty() && times.front().first <= threads && threads <= times.back().first;
}

}  // namespace

ForkTimes measure_forks(const measure::Clock& clock, int rounds) {
  ForkTimes found;
  const int all = backends::usable_threads();
  for (int threads = 2; threads <= all; threads = threads < all ? std::min(2 * threads, all) : all + 1) {
    std::vector<double> times;
    for (int round = 0; round < rounds; ++round) {
      const double seconds = time_round(threads, clock);
      if (seconds >= 0) times.push_back(seconds);
    }
    // What the machine does when it is left alone.
    if (2 * times.size() >= static_cast<std::size_t>(rounds))
      found.emplace_back(threads, stats::quantile(times, 0.25));
  }
  return found;
}

double fork_seconds(const ForkTimes& times, int threads) {
  if (threads <= 1 || times.empty()) return 0;
  for (std::size_t i = 0; i < times.size(); ++i) {
    const auto [right, high] = times[i];
    if (threads > right) continue;
    if (i == 0 || threads == right) return high;
    const auto [left, low] = times[i - 1];
    return low + (high - low) * (threads - left) / (right - left);
  }
  return times.back().second;
}

ForkTimes least_of(const ForkTimes& a, const ForkTimes& b) {
  return together(a, b, [](double x, double y) { return std::min(x, y); });
}
ForkTimes most_of(const ForkTimes& a, const ForkTimes& b) {
  return together(a, b, [](double x, double y) { return std::max(x, y); });
}

double fork_change(const ForkTimes& least, const ForkTimes& most, const ForkTimes& now, int threads) {
  // Numbers that were left out because other jobs kept the threads busy are not those next to them.
  if (!covers(least, threads) || !covers(most, threads) || !covers(now, threads)) return 0;
  const double seconds = fork_seconds(now, threads);
  if (const double before = fork_seconds(most, threads); seconds > kSame * before) return seconds - before;
  if (const double before = fork_seconds(least, threads); kSame * seconds < before) return seconds - before;
  return 0;
}

}  // namespace fulcrum::executor
