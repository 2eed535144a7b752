// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// See forks.h.
#include "executor/forks.h"

#include <fulcrum/backends.h>
#include <fulcrum/backends/workers.h>
#include <fulcrum/stats.h>

#include <algorithm>
#include <map>

namespace fulcrum::executor {
namespace {

constexpr int kForks = 32;
// What two looks at the same machine differ by, and more.
constexpr double kSame = 1.25;
// Of a watch: looks are so far apart and take so long, since idle threads of a library that ran before spin for a while.
constexpr double kWatchEvery = 25e-3, kWatchSeconds = 0.4e-3;
constexpr double kWatchApart = 20;  // times what a look took: many threads that are all busy take their time
constexpr int kWatchRounds = 5, kUsualRounds = 24, kMostOfAWatch = 40;
// Looks of a watch that have to agree. On 16 virtual cores one in eight met a thread that was held up for tens of
// microseconds, at that width alone; times of calls of that moment were then levelled to a third of what they were.
constexpr std::size_t kAgree = 3;
// Of a call's time, at least, is left when the forks that took longer are taken off.
constexpr double kLeastLeft = 0.3;

/// Seconds of one fork as calls fork, which go on without a thread that does not come. All have come before: one that
/// begins only now would be missing from all of a round. Less than 0: another job was under way, and the caller did all
/// of it.
double time_round(int threads, const measure::Clock& clock) {
  struct Job {
    int threads, forked = kForks;
  } job{threads};
  const auto piece = [](void* context, std::int64_t first, std::int64_t last) {
    auto& own = *static_cast<Job*>(context);
    if (last - first == own.threads) --own.forked;  // the caller does all of it: nobody else writes here
  };
  backends::on_each_thread(threads, piece, &job);
  job.forked = kForks;
  const double begin = clock.now();
  for (int i = 0; i < kForks; ++i) backends::parallel(threads, threads, piece, &job);
  // Where the only other thread did not come to a fork those after it are none until it is back.
  return job.forked > 0 ? (clock.now() - begin) / job.forked : -1;
}

/// By number of threads, of those that any look has.
ForkTimes least_of(std::span<const ForkTimes> looks) {
  std::map<int, double> least;
  for (const ForkTimes& look : looks) {
    for (const auto& [threads, seconds] : look) {
      double& so_far = least.emplace(threads, seconds).first->second;
      so_far = std::min(so_far, seconds);
    }
  }
  return {least.begin(), least.end()};
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

double fork_change(const ForkTimes& then, const ForkTimes& now, int threads) {
  // Numbers that were left out because other jobs kept the threads busy are not those next to them.
  if (!covers(then, threads) || !covers(now, threads)) return 0;
  const double before = fork_seconds(then, threads), seconds = fork_seconds(now, threads);
  return seconds > kSame * before || kSame * seconds < before ? seconds - before : 0;
}

ForkTimes least_changed(const ForkTimes& usual, std::span<const ForkTimes> looks) {
  if (looks.empty()) return {};
  ForkTimes calm = looks.back();
  for (auto& [threads, seconds] : calm) {
    const double before = fork_seconds(usual, threads);
    if (!covers(usual, threads) || before <= 0) continue;
    const auto change = [before](double now) { return std::abs(std::log(now / before)); };
    for (const ForkTimes& look : looks) {
      const double other = covers(look, threads) ? fork_seconds(look, threads) : 0;
      if (other > 0 && change(other) < change(seconds)) seconds = other;
    }
  }
  return calm;
}

ForkWatch::ForkWatch(const measure::Clock& clock, ForkTimes usual, Look look)
    : clock_(&clock),
      measure_(look ? std::move(look) : [&clock](int rounds) { return measure_forks(clock, rounds); }),
      usual_(std::move(usual)) {
  if (!usual_.empty()) return;
  // All times of a calibration are levelled to these, so that one look that met a thread that was held up must not be it.
  for (std::size_t i = 0; i < kAgree; ++i) last_.push_back(measure_(kUsualRounds));
  usual_ = now_ = least_of(last_);
  last_.assign(kAgree, usual_);
  next_ = clock_->now() + kWatchEvery;
}

void ForkWatch::look() {
  const double begin = clock_->now();
  if (begin < next_) return;
  double end = begin;
  do {
    const double from = end;
    ForkTimes look;
    for (int i = 0; i < kMostOfAWatch && end - from < kWatchSeconds; ++i) {
      look = measure_(kWatchRounds);
      end = clock_->now();
    }
    last_.push_back(std::move(look));
  } while (last_.size() < kAgree);
  if (last_.size() > kAgree) last_.erase(last_.begin());
  now_ = least_changed(usual_, last_);
  next_ = end + std::max(kWatchEvery, kWatchApart * (end - begin));
}

double ForkWatch::as_usual(double seconds, double forks, int threads) const {
  return std::max(kLeastLeft * seconds, seconds - forks * fork_change(usual_, now_, threads));
}

}  // namespace fulcrum::executor
