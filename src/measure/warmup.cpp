// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Warm-up: pages touched, caches and predictors trained, clocks ramped, pools awake. Kept as samples of phase
// 0.
#include <algorithm>
#include <cmath>

#include "measure/runner.h"

namespace fulcrum::measure {
namespace {

constexpr std::size_t kBlock = 5;
constexpr double kSettled = 0.05;
constexpr std::size_t kStandstill = 1000;  // batches without a step of the clock: it will never come
constexpr double kMostWarmups = 1e12;

bool settled(std::span<const double> call_seconds) {
  if (call_seconds.size() < 2 * kBlock) return false;
  const auto last = call_seconds.last(2 * kBlock);
  const double before = stats::median(last.first(kBlock)), now = stats::median(last.last(kBlock));
  return std::abs(now - before) <= kSettled * before;
}

// At least doubles, so that it ends; at most tenfold, because the first calls of a process are slow.
std::int64_t grown(std::int64_t calls, double seconds, double batch_seconds) {
  const double wanted = seconds > 0 ? batch_seconds / seconds : 10;
  const double next = std::ceil(static_cast<double>(calls) * std::clamp(wanted, 2.0, 10.0));
  return static_cast<std::int64_t>(std::min(next, kMostWarmups));
}

}  // namespace

Result<WarmUp> warm_up(Session& session, const Subject& subject, const Preparation& preparation,
                       double batch_seconds, std::vector<Sample>& raw) {
  WarmUp out;
  const double begin = session.now();
  const double deadline = begin + std::min(preparation.warmup_cap_seconds, session.left_seconds());
  std::vector<double> call_seconds, costs;
  std::int64_t calls = subject.least_calls, done = 0;
  while (true) {
    const bool enough =
        done >= preparation.warmup_calls && session.now() - begin >= preparation.warmup_seconds;
    out.settled = !preparation.settle || settled(call_seconds);
    if (enough && out.settled) break;
    if (done > 0 && session.now() >= deadline) break;
    if (session.interrupted()) return interrupted_error(subject.name);
    session.report("warm-up", done, 0);
    FULCRUM_TRY(const Batch batch, timed_batch(session, subject, calls));
    raw.push_back({.seconds = batch.seconds, .phase = 0});
    if (raw.size() >= kStandstill && session.now() <= begin) {
      return Error{Code::environment, "the clock does not advance", "Pass a clock that counts seconds."};
    }
    done += calls;
    call_seconds.push_back(batch.seconds / static_cast<double>(calls));
    costs.push_back(batch.cost_seconds / static_cast<double>(calls));
    if (!subject.reset && !preparation.single_calls && batch.seconds < batch_seconds) {
      calls = grown(calls, batch.seconds, batch_seconds);
      call_seconds.erase(call_seconds.begin(), call_seconds.end() - 1);
    }
  }
  const auto last = std::min(kBlock, call_seconds.size());
  out.call_seconds = stats::median(std::span(call_seconds).last(last));
  out.sample_cost_seconds = stats::median(std::span(costs).last(std::min(kBlock, costs.size())));
  return out;
}

}  // namespace fulcrum::measure
