// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Time on the device alone. Events around one short call measure the host that enqueues it, so a batch is recorded
// once and replayed: the device's clock around many calls that follow each other without the host.
#include <algorithm>
#include <cmath>

#include "measure/bound.h"
#include "measure/plan.h"

namespace fulcrum::measure {
namespace {

constexpr int kLeastCalls = 20;
constexpr int kMostCalls = 4000;
constexpr double kBatchSeconds = 100e-6;  // the device's clock steps by about half a microsecond
constexpr double kFloorSeconds = 20e-6;
constexpr std::int64_t kLeastReplays = 30;
constexpr double kWarmShare = 0.25;  // of the time there is
constexpr int kMostWarm = 20'000;
constexpr double kLeastLeft = 0.25;  // of the budget

int rounded_up(int calls, int sets) { return (calls + sets - 1) / sets * sets; }

// Calls of a batch: long enough for the clock, few enough that the replays fit into the time there is.
int calls_for(double call_seconds, int sets, double seconds) {
  double calls = std::ceil(kBatchSeconds / std::max(call_seconds, 1e-9));
  calls = std::clamp<double>(calls, kLeastCalls, kMostCalls);
  const double affordable = seconds / (static_cast<double>(kLeastReplays + 3) * std::max(call_seconds, 1e-9));
  calls = std::min(calls, std::max(1.0, std::floor(affordable)));
  return rounded_up(static_cast<int>(calls), sets);
}

class Replayer {
 public:
  Replayer(Session& session, const Config& config, double seconds)
      : session_(session), config_(config), deadline_(session.now() + seconds), seconds_(seconds) {}

  Result<Timing> run(backends::DeviceCall& call) {
    FULCRUM_TRY(backends::Replay pilot, call.record(rounded_up(1, call.sets())));
    FULCRUM_TRY(const double call_seconds, warm_up(pilot));
    FULCRUM_TRY(backends::Replay batch, call.record(calls_for(call_seconds, call.sets(), seconds_)));
    if (batch.calls() < kMostCalls && static_cast<double>(batch.calls()) * call_seconds < kBatchSeconds) {
      FULCRUM_TRY(batch, longer(call, std::move(batch)));
    }
    return replay(batch);
  }

 private:
  // An idle device runs at a fraction of its clock: it works for a while before anything is sized or counted. The
  // shortest run counts: one that was held up would make batches of a call or two, too short for the clock.
  Result<double> warm_up(backends::Replay& pilot) {
    const double until = session_.now() + std::min(config_.warmup_seconds, kWarmShare * seconds_);
    double least = INFINITY;
    for (int i = 0; i < 2 || (i < kMostWarm && session_.now() < until); ++i) {  // the first uploads the batch
      FULCRUM_TRY(const double seconds, pilot.run());
      least = std::min(least, seconds);
    }
    return least / pilot.calls();
  }

  // A batch of one is longer a call than a batch of many: measured once more when the first guess fell short.
  Result<backends::Replay> longer(backends::DeviceCall& call, backends::Replay batch) {
    double seconds = INFINITY;
    for (int i = 0; i < 3; ++i) {
      FULCRUM_TRY(const double once, batch.run());
      seconds = std::min(seconds, once);
    }
    if (seconds >= kBatchSeconds) return batch;
    return call.record(calls_for(seconds / batch.calls(), call.sets(), seconds_));
  }

  Result<Timing> replay(backends::Replay& batch) {
    Timing timing{.calls_per_sample = batch.calls()};
    for (int i = 0; i < 3; ++i) {
      FULCRUM_TRY(last_seconds_, batch.run());
    }
    const double begin = session_.now();
    FULCRUM_TRY(last_seconds_, batch.run());
    const double cost = std::max(session_.now() - begin, last_seconds_);
    const SamplePlan plan = plan_samples(cost, deadline_ - session_.now(), kLeastReplays);
    std::vector<double> call_seconds;
    double alpha = stats::kTotalAlpha;
    for (const stats::Look& look : plan.looks) {
      while (static_cast<std::int64_t>(call_seconds.size()) < look.n) {
        if (session_.interrupted()) return interrupted_error("device time");
        const bool enough = static_cast<std::int64_t>(call_seconds.size()) >= kLeastReplays;
        if (enough && session_.now() >= deadline_)
          return summary(timing, call_seconds, stats::kTotalAlpha / 2);
        session_.report("device time", static_cast<std::int64_t>(call_seconds.size()), 0);
        FULCRUM_TRY(last_seconds_, batch.run());
        call_seconds.push_back(last_seconds_ / batch.calls());
      }
      alpha = look.alpha;
      const stats::MedianInterval interval = stats::median_interval(call_seconds, alpha);
      if (interval.exact && stats::log_half_width({interval.low, interval.high}) <= config_.precision) break;
    }
    return summary(timing, call_seconds, alpha);
  }

  Result<Timing> summary(Timing& timing, const std::vector<double>& call_seconds, double alpha) {
    if (!(stats::median(call_seconds) * static_cast<double>(timing.calls_per_sample) >= kFloorSeconds)) {
      add_flag(timing.flags, "short_replay");
    }
    summarize_into(timing, call_seconds, alpha, 0);
    return std::move(timing);
  }

  Session& session_;
  const Config& config_;
  double deadline_, seconds_;
  double last_seconds_ = 0;
};

}  // namespace

Status add_device_time(Measurement& m, Session& session, backends::DeviceCall& call, const Config& config,
                       double share) {
  // What came before may have been held up until next to nothing is left: too little for a batch would be no time at all.
  const double left = std::max(session.left_seconds(), kLeastLeft * config.budget_seconds);
  Result<Timing> timing = Replayer(session, config, share * left).run(call);
  if (!timing.ok() && timing.error().code == Code::unsupported)
    return {};  // a backend without recorded batches
  if (!timing.ok()) return std::move(timing).take_error();
  const auto& flags = timing->flags;
  if (std::find(flags.begin(), flags.end(), "short_replay") != flags.end()) {
    add_flag(m.flags, "short_replay");
    return {};  // below the floor the clock's steps are the result
  }
  m.device_seconds = timing->seconds;
  m.device_calls = timing->calls_per_sample;
  m.device_sets = call.sets();
  return {};
}

}  // namespace fulcrum::measure
