// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// See explore.h.
#include "executor/explore.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "executor/candidates.h"

namespace fulcrum::executor {
namespace {

constexpr double kAlwaysTimedSeconds = 20e-6;  // shorter CPU calls are timed now and then
constexpr int kTimedEvery = 64;
// Of calls that are timed now and then, every timed one could be a trial where that costs nothing. Until the way that is
// taken has so many samples the other is tried no more often: the first may be slower than predicted, and the other just
// what was said of it.
constexpr std::int64_t kOwnSamples = 9;
// What a timed call says about those that were not: no more than this many times what was expected of it.
constexpr double kMostSaid = 2;
// A call that a kernel could not do counts as one that took so many times what was predicted, and as long as no other way
// takes. It is tried again when the credit allows a call of that length.
constexpr double kRefused = 100, kRefusedSeconds = 10e-3;

/// True for one call in 64 of this thread.
bool now_and_then() {
  static thread_local int count = 0;
  return ++count % kTimedEvery == 0;
}

/// The runner-up, or now and then the best of the other place: where several kernels of the CPU are next to each other,
/// a device that was slow would never be tried again.
Choice alternative(const Asked& asked, const Choice& choice, const Tracker& tracker) {
  static thread_local unsigned turn = 0;
  const auto candidates = asked.table.candidates();
  const Mask device = mask_of(candidates, Place::device);
  const bool here = candidates[choice.candidate].place == Place::host;
  const Mask there = asked.allowed & (here ? device : ~device);
  Choice other = choice;
  std::swap(other.candidate, other.runner_up);
  std::swap(other.seconds, other.runner_seconds);
  if (++turn % 2 == 0 || there == 0 || choice.tier == Tier::pinned) return other;
  const Choice best = asked.table.choose(asked.args, asked.traffic, there, tracker);
  if (best.candidate == 255) return other;
  other.candidate = best.candidate;
  other.seconds = best.seconds;
  return other;
}

/// Two looks at the clock are nothing beside a call to the device, and a device that got slower must be seen at once.
bool is_timed_now_and_then(const OpTable& table, const Choice& choice) {
  return table.candidates()[choice.candidate].place == Place::host &&
         static_cast<double>(choice.seconds) < kAlwaysTimedSeconds;
}

}  // namespace

int stands_for(const OpTable& table, const Choice& choice) {
  if (choice.tier == Tier::model || !is_timed_now_and_then(table, choice)) return 1;
  return now_and_then() ? kTimedEvery : 0;
}

std::optional<Trial> explored(const Asked& asked, const Choice& choice, Tracker& tracker) {
  if (choice.seconds <= 0) return {};
  const Choice other = alternative(asked, choice, tracker);
  if (other.candidate == choice.candidate) return {};
  const Candidate& candidate = asked.table.candidates()[other.candidate];
  const Tracker::Cell cell{asked.op, other.candidate, asked.traffic.residency(), other.size_class,
                           candidate.place};
  if (is_timed_now_and_then(asked.table, choice)) {
    const Tracker::Cell own{asked.op, choice.candidate, asked.traffic.residency(), choice.size_class,
                            Place::host};
    const std::int64_t own_samples = tracker.known(own).samples;
    if (own_samples < kOwnSamples && own_samples <= tracker.known(cell).samples) return {};
  }
  const double seconds = static_cast<double>(choice.seconds);
  const double at_most =
      static_cast<double>(other.seconds) * std::exp(static_cast<double>(tracker.doubt(cell)));
  const double extra = std::max(0.0, at_most - seconds);
  const bool supported = candidate.kernel.supports(asked.args);
  if (!supported || !tracker.explore(cell, extra, static_cast<double>(other.seconds) / seconds)) return {};
  return Trial{.choice = other, .taken_seconds = extra, .usual_seconds = seconds};
}

void learn(const Asked& asked, const Choice& choice, double seconds, int calls, Tracker& tracker) {
  const double usual = std::min(seconds, kMostSaid * static_cast<double>(choice.seconds));
  tracker.spend(seconds + (calls - 1) * std::max(0.0, usual));
  if (choice.seconds <= 0) return;
  const Place place = asked.table.candidates()[choice.candidate].place;
  const Tracker::Cell cell{asked.op, choice.candidate, asked.traffic.residency(), choice.size_class, place};
  const double predicted = asked.table.seconds(asked.args, asked.traffic, choice.candidate);
  if (tracker.record(cell, predicted, seconds)) asked.table.renew();
}

void learn_refusal(const Asked& asked, const Choice& choice, Tracker& tracker) {
  const Place place = asked.table.candidates()[choice.candidate].place;
  const Tracker::Cell cell{asked.op, choice.candidate, asked.traffic.residency(), choice.size_class, place};
  const double predicted = asked.table.seconds(asked.args, asked.traffic, choice.candidate);
  if (tracker.record_at_least(cell, predicted, std::max(kRefused * predicted, kRefusedSeconds)))
    asked.table.renew();
}

Learned after_calls(const Asked& asked, std::span<const std::vector<double>> rounds, int calls,
                    Tracker& tracker, std::size_t rounds_a_visit) {
  const auto has_times = [&](std::uint8_t way) { return way < rounds.size() && !rounds[way].empty(); };
  // One visit after the other: what lasts for seconds does not come and go with every few calls.
  const auto taken = [&](std::uint8_t way, int call) {
    const std::size_t count = rounds[way].size(),
                      in_visit = std::clamp<std::size_t>(rounds_a_visit, 1, count);
    const std::size_t visit =
        count / in_visit * static_cast<std::size_t>(call) / static_cast<std::size_t>(calls);
    return rounds[way][visit * in_visit + static_cast<std::size_t>(call) % in_visit];
  };
  Learned learned;
  asked.table.renew();
  for (int call = 0; call < calls; ++call) {
    learned.choice = asked.table.choose(asked.args, asked.traffic, asked.allowed, tracker);
    if (!has_times(learned.choice.candidate)) return learned;
    const int behind = stands_for(asked.table, learned.choice);
    if (behind == 0) continue;
    Choice choice = learned.choice;
    const double usual = taken(choice.candidate, call);
    if (const auto trial = explored(asked, choice, tracker)) {
      if (has_times(trial->choice.candidate)) choice = trial->choice;
      const double seconds = taken(choice.candidate, call);
      tracker.settle(trial->taken_seconds, seconds - trial->usual_seconds);
      learned.explored_seconds += (seconds - usual) / calls;
    }
    learn(asked, choice, taken(choice.candidate, call), behind, tracker);
  }
  learned.choice = asked.table.choose(asked.args, asked.traffic, asked.allowed, tracker);
  return learned;
}

}  // namespace fulcrum::executor
