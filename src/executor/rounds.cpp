// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// See rounds.h.
#include "executor/rounds.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

namespace fulcrum::executor {
namespace {

constexpr std::size_t kGroups = 2;
constexpr std::int64_t kMostCallsInRound = 2000;
// Before a short call is timed some run that are not, until one takes about as long as the fastest ever did: the
// others' data and a parked pool are not its own cost. Waking many threads takes longer than the first of them go on
// waiting for work, so that it can take several calls until all are awake at once. Idle threads of a library spin for a
// while too: behind a call of oneDNN's two threads, ours had a core for both for 10 to 20 calls of 7 us, which took 13.
constexpr double kShort = 1e-3, kSettled = 1.3, kSettledSlack = 3e-7, kSettleSeconds = 1e-3;
constexpr int kMostSettling = 40, kLeastRounds = 3, kMostLooks = 200;
constexpr double kLeastNoise = 0.005, kLookNoise = 0.15;
constexpr double kDisturbed = 1.3, kRestless = 1.25;
constexpr double kEndless = 5;
constexpr double kLongLook = 300e-6, kFarBehind = 2;

// Seconds of one call among `count`; 0: it failed.
double time_once(Subject& subject, std::int64_t count, const measure::Clock& clock) {
  const double begin = clock.now();
  if (!subject.run(count).ok()) return 0;
  return (clock.now() - begin) / static_cast<double>(count);
}

// False: it failed. `fastest` is what a call took at its best.
bool settle(Subject& subject, double& fastest, const measure::Clock& clock) {
  double spent = 0;
  for (int i = 0; i < kMostSettling && spent < kSettleSeconds; ++i) {
    const double took = time_once(subject, 1, clock);
    if (took <= 0) return false;
    const bool settled = took <= kSettled * fastest + kSettledSlack;
    fastest = std::min(fastest, took);
    if (settled) break;
    spent += took;
  }
  return true;
}

}  // namespace

std::vector<std::vector<double>> time_rounds(std::span<Subject* const> subjects, const RoundsConfig& config) {
  const measure::Clock& clock = config.clock ? *config.clock : measure::steady_clock();
  std::vector<std::vector<double>> seconds(subjects.size());
  std::vector<double> look(subjects.size(), 0);
  std::array<double, kGroups> fastest;
  fastest.fill(INFINITY);
  const auto group = [&](std::size_t s) {
    return config.groups.empty() ? 0 : static_cast<std::size_t>(config.groups[s]);
  };
  std::vector<double> firsts(subjects.size(), 0);
  for (std::size_t s = 0; s < subjects.size(); ++s) {
    const double first = subjects[s] ? time_once(*subjects[s], 1, clock) : 0;
    if (first <= 0) continue;  // pages, code and libraries come in
    firsts[s] = first;
    const bool is_long = config.give_up_seconds > 0 && first > config.give_up_seconds;
    // A disturbance is seldom that long.
    const bool is_endless = is_long && first > kEndless * config.give_up_seconds;
    const double second = is_endless ? first : time_once(*subjects[s], 1, clock);
    if (is_long && second > config.give_up_seconds) {
      seconds[s].push_back(second);
      continue;
    }
    look[s] = second;
    double looked = look[s];
    for (int call = 0; call < kMostLooks && look[s] > 0 && looked < config.look_seconds; ++call) {
      const double took = time_once(*subjects[s], 1, clock);
      if (took > 0) look[s] = std::min(look[s], took);
      looked += std::max(took, 1e-7);
    }
    if (look[s] < 2e-6 && look[s] > 0) look[s] = time_once(*subjects[s], 8, clock);
    double& least = fastest[group(s)];
    if (look[s] > 0) least = std::min(least, look[s] + subjects[s]->plan_seconds);
  }
  const auto is_hopeless = [&](std::size_t s) {
    return config.hopeless > 0 && look[s] > config.hopeless * fastest[group(s)] + 5e-6;
  };
  // One disturbed look must not rule anybody out; two long calls that were far behind do.
  const auto is_far_behind = [&](std::size_t s) {
    return std::min(firsts[s], look[s]) > kLongLook + kFarBehind * config.hopeless * fastest[group(s)];
  };
  for (std::size_t s = 0; s < subjects.size(); ++s) {
    for (int again = 0; again < 2 && look[s] > 0 && is_hopeless(s) && !is_far_behind(s); ++again) {
      const double took = time_once(*subjects[s], 1, clock);
      if (took > 0) look[s] = std::min(look[s], took);
    }
  }
  // Of a call that is long enough to be timed by itself the look was a round.
  for (std::size_t s = 0; s < subjects.size(); ++s) {
    if (look[s] > 0 && kLeastRounds * look[s] > config.enough_seconds && config.enough_seconds > 0 &&
        !is_hopeless(s))
      seconds[s].push_back(look[s]);
  }
  std::size_t before = kGroups;  // group of the subject that was timed last
  for (int round = 0; round < config.rounds && (round == 0 || clock.now() < config.end); ++round) {
    for (std::size_t i = 0; i < subjects.size(); ++i) {
      // Every second round runs backwards: nobody always comes after the same one.
      const std::size_t s = round % 2 == 0 ? i : subjects.size() - 1 - i;
      if (look[s] <= 0) continue;
      const auto times = static_cast<double>(seconds[s].size());
      if (config.enough_seconds > 0 && times >= kLeastRounds && times * look[s] > config.enough_seconds)
        continue;
      if (is_hopeless(s)) {
        if (round == 0) seconds[s].push_back(look[s]);
        continue;
      }
      // The first long call after those of the other group finds its data in the other's caches: it is not timed either.
      const bool after_others = std::exchange(before, group(s)) != group(s);
      const bool ready = look[s] < kShort ? settle(*subjects[s], look[s], clock)
                                          : !after_others || time_once(*subjects[s], 1, clock) > 0;
      if (!ready) continue;
      const double calls = std::ceil(config.window_seconds / look[s]);
      const auto count = std::clamp(static_cast<std::int64_t>(calls), std::int64_t{1}, kMostCallsInRound);
      const double took = time_once(*subjects[s], count, clock);
      if (took > 0) seconds[s].push_back(took);
    }
  }
  return seconds;
}

// Looks at one call, some seconds apart. Where they nearly agree all are the machine as it is, and calls to come will find
// any of them (a machine is a fifth slower for some seconds at a time); far above the
// shortest one was disturbed, which only adds time.
double together(std::span<const double> looks) {
  const double least = *std::min_element(looks.begin(), looks.end());
  double sum = 0, count = 0;
  for (const double seconds : looks) {
    if (seconds > kDisturbed * least) continue;
    sum += std::log(seconds);
    ++count;
  }
  return std::exp(sum / count);
}

// Whether a candidate that may win was disturbed: its quartiles are far apart.
bool is_restless(const std::vector<std::vector<double>>& times) {
  double best = INFINITY;
  for (const auto& rounds : times) {
    if (rounds.size() > 1) best = std::min(best, stats::median(rounds));
  }
  return std::any_of(times.begin(), times.end(), [&](const std::vector<double>& rounds) {
    return rounds.size() > 1 && stats::quantile(rounds, 0.25) < 1.5 * best &&
           stats::quantile(rounds, 0.75) > kRestless * stats::quantile(rounds, 0.25);
  });
}

Sample sample_of(std::span<const double> seconds) {
  if (seconds.empty()) return {};
  const double median = stats::median(seconds);
  if (seconds.size() < 3) return Sample{.seconds = median, .noise = kLookNoise};
  const double spread = 1.4826 * stats::mad(seconds) / median;
  const double noise = 1.25 * spread / std::sqrt(static_cast<double>(seconds.size()));
  return Sample{.seconds = median, .noise = std::max(kLeastNoise, noise)};
}

}  // namespace fulcrum::executor
