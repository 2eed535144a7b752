// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Pass B of the ledger, and the first call of a process: the two measurements that a process makes only once.
#include <fmt/format.h>
#include <time.h>

#include <algorithm>

#include "measure/bound.h"
#include "measure/ledger.h"

namespace fulcrum::measure {
namespace {

constexpr std::size_t kLeastTraced = 32, kMostTraced = 256;
constexpr std::size_t kTracedBlock = 8;  // calls between two readings of the activities

// The clock of the activities; tests pass one that the fake device shares.
double monotonic_seconds(const Config& config) {
  if (config.clock) return config.clock->now();
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

struct Window {
  double begin = 0, end = 0;
};

Result<Window> traced_call(const Subject& subject, const Config& config) {
  Window window;
  FULCRUM_CHECK(guarded(subject.name, [&]() -> Status {
    if (subject.reset) FULCRUM_CHECK(subject.reset());
    window.begin = monotonic_seconds(config);
    Status done = subject.run(subject.least_calls);
    window.end = monotonic_seconds(config);
    return done;
  }));
  return window;
}

Status trace_block(const backends::Backend& backend, const Subject& subject, const Config& config,
                   std::vector<Ledger>& calls) {
  std::vector<Window> windows;
  for (std::size_t i = 0; i < kTracedBlock; ++i) {
    FULCRUM_TRY(const Window window, traced_call(subject, config));
    windows.push_back(window);
  }
  FULCRUM_TRY(const std::vector<fulcrum_activity> activities, backends::activity_take(backend));
  for (const Window& window : windows) {
    std::vector<fulcrum_activity> inside;
    for (const fulcrum_activity& activity : activities) {
      if (activity.end_seconds > window.begin && activity.begin_seconds < window.end)
        inside.push_back(activity);
    }
    calls.push_back(attribute(inside, window.begin, window.end));
  }
  return {};
}

Ledger per_call(Ledger ledger, std::int64_t calls_per_window) {
  const double share = 1.0 / static_cast<double>(calls_per_window);
  for (const Phase& phase : phases()) ledger.*phase.seconds *= share;
  for (auto& [name, seconds] : ledger.busy) seconds *= share;
  ledger.end_to_end_instrumented *= share;
  return ledger;
}

/// Stops the tracing of a backend however the pass ends.
class Tracing {
 public:
  explicit Tracing(const backends::Backend& backend) : backend_(backend) {}
  Tracing(const Tracing&) = delete;
  Tracing& operator=(const Tracing&) = delete;
  ~Tracing() { backends::activity_stop(backend_); }

 private:
  const backends::Backend& backend_;
};

Timing timing_of(const std::vector<Ledger>& calls) {
  Timing timing{.stop_reason = StopReason::budget, .stop_detail = "instrumented"};
  std::vector<double> seconds;
  for (const Ledger& call : calls) {
    seconds.push_back(call.end_to_end_instrumented);
    timing.raw.push_back({.seconds = seconds.back(), .phase = 2});
  }
  summarize_into(timing, seconds, stats::kTotalAlpha, 0);
  return timing;
}

}  // namespace

Result<Measurement> run_instrumented(const backends::Kernel& kernel, ops::Problem& problem,
                                     const Config& config) {
  if (!backends::has_memory(kernel.backend())) {
    return Error{Code::unsupported,
                 fmt::format("{} runs on the host: its call has no phases to tell apart", kernel.name()),
                 "A ledger is for GPU kernels."};
  }
  FULCRUM_CHECK(backends::activity_start(kernel.backend()));
  const Tracing tracing(kernel.backend());
  Measurement m = described(kernel, problem, config);
  Session session(m.row(), config);
  FULCRUM_TRY(const std::unique_ptr<Bound> bound, Bound::make(kernel, problem, config));
  const Subject subject = bound->subject();
  std::vector<Sample> discarded;
  const Preparation preparation{.warmup_seconds = config.warmup_seconds,
                                .warmup_cap_seconds = 3 * config.warmup_seconds,
                                .single_calls = true};
  if (auto warm = warm_up(session, subject, preparation, 0, discarded); !warm.ok())
    return std::move(warm).take_error();
  if (auto before = backends::activity_take(kernel.backend()); !before.ok())
    return std::move(before).take_error();

  std::vector<Ledger> calls;
  while (calls.size() < kMostTraced) {
    if (session.interrupted()) return interrupted_error(m.row());
    if (calls.size() >= kTracedBlock && session.left_seconds() <= 0) break;
    if (calls.size() >= kLeastTraced && session.left_seconds() <= 0.5 * config.budget_seconds) break;
    session.report("ledger", static_cast<std::int64_t>(calls.size()), 0);
    FULCRUM_CHECK(trace_block(kernel.backend(), subject, config, calls));
  }
  bool bits_vary = false;
  FULCRUM_CHECK(bound->check_again(bits_vary));
  const std::int64_t calls_per_window = config.regime == Regime::reuse ? config.reuse : subject.least_calls;
  take(m, timing_of(calls), calls_per_window);
  m.oracle = bound->oracle();
  m.detail = bound->detail();
  m.ledger = per_call(typical(std::move(calls)), calls_per_window);
  return m;
}

Result<Measurement> first_call(std::string_view backend, std::string_view variant, ops::Problem& problem,
                               const Config& config) {
  problem.reset();
  const Clock& clock = config.clock ? *config.clock : steady_clock();
  const double begin = clock.now();
  FULCRUM_TRY(const backends::Kernel kernel, backends::kernel(problem.op().name, backend, variant));
  FULCRUM_TRY(backends::Trip trip, backends::Trip::make(kernel, problem.args(), config.path));
  FULCRUM_CHECK(guarded(kernel.name(), [&] { return trip.run(1); }));
  const double seconds = clock.now() - begin;

  Config own = config;
  own.regime = Regime::first_call;
  Measurement m = described(kernel, problem, own);
  m.oracle = problem.check(kernel.precision());
  if (!m.oracle.passed) return wrong_result(kernel.name(), problem, m.oracle, "");
  Timing timing{.stop_reason = StopReason::precision};
  timing.raw.push_back({.seconds = seconds, .phase = 2});
  summarize_into(timing, std::span(&seconds, 1), stats::kTotalAlpha, 0);
  take(m, std::move(timing), 1);
  m.detail = trip.detail();
  return m;
}

}  // namespace fulcrum::measure
