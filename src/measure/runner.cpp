// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Timing one subject: warm-up, pilot, then counted samples up to the first look that satisfies a reason to
// stop.
#include <algorithm>
#include <cmath>

#include "measure/plan.h"
#include "measure/runner.h"

namespace fulcrum::measure {
namespace {

// A pilot that would eat this share of what is left is not worth it: the warm-up has told the cost.
constexpr double kPilotShare = 0.25;
// Of the time of all samples, what interruptions took: worth a flag from here on.
constexpr double kMuchInterrupted = 0.05;
constexpr double kInterruptedSample = 1.1;

class Runner {
 public:
  Runner(Session& session, const Subject& subject, const Config& config, const Preparation& preparation)
      : session_(session),
        subject_(subject),
        config_(config),
        preparation_(preparation),
        watch_(session.clock()) {}

  Result<Timing> run() {
    FULCRUM_CHECK(prepare());
    FULCRUM_CHECK(sample());
    return finish();
  }

 private:
  bool batched() const { return !subject_.reset && !preparation_.single_calls; }

  /// Calls that overlap or are queued on a device are one batch: cut into slices they would wait for each other.
  Slices slices_for(double call_seconds) const {
    if (!batched()) return {.calls = subject_.least_calls};
    const Clock& clock = session_.clock();
    const std::int64_t calls = calls_per_sample(call_seconds, clock, config_.min_batch_seconds);
    if (subject_.least_calls > 1 || config_.regime != Regime::host)
      return {.calls = std::max(subject_.least_calls, calls)};
    return slices_of_batch(calls, call_seconds, clock);
  }
  void set_slices(double call_seconds) {
    slices_ = slices_for(call_seconds);
    timing_.calls_per_sample = slices_.all_calls();
  }

  struct Piece {
    Batch batch;             // seconds: bounded
    double all_seconds = 0;  // of the slices as they were
  };
  Result<Piece> timed_slices() {
    Piece piece;
    std::vector<double> seconds;
    for (int i = 0; i < slices_.slices; ++i) {
      FULCRUM_TRY(const Batch slice, timed_batch(session_, subject_, slices_.calls));
      seconds.push_back(slice.seconds);
      piece.all_seconds += slice.seconds;
      piece.batch.cost_seconds += slice.cost_seconds;
    }
    piece.batch.seconds = bounded_seconds(seconds);
    return piece;
  }

  Status prepare() {
    const double batch_seconds =
        std::max(config_.min_batch_seconds, kClockFactor * session_.clock().resolution_seconds);
    WarmUp warm;
    if (preparation_.warmup_calls > 0 || preparation_.warmup_seconds > 0) {
      FULCRUM_TRY(warm, warm_up(session_, subject_, preparation_, batch_seconds, timing_.raw));
    }
    if (!warm.settled) add_flag(timing_.flags, "warmup_unsettled");
    set_slices(warm.call_seconds);
    cost_seconds_ = warm.sample_cost_seconds * static_cast<double>(timing_.calls_per_sample);
    if (static_cast<double>(preparation_.pilot_min) * cost_seconds_ < kPilotShare * session_.left_seconds()) {
      FULCRUM_CHECK(pilot());
    }
    plan_ = plan_samples(cost_seconds_, session_.left_seconds(), config_.min_samples);
    if (plan_.low_n) add_flag(timing_.flags, "low_n");
    return {};
  }

  Status pilot() {
    std::vector<double> seconds, costs;
    const double begin = session_.now();
    while (static_cast<std::int64_t>(seconds.size()) < preparation_.pilot_max) {
      const bool enough = static_cast<std::int64_t>(seconds.size()) >= preparation_.pilot_min;
      if (enough && session_.now() - begin >= preparation_.pilot_seconds) break;
      if (!seconds.empty() && session_.left_seconds() <= 0) break;
      if (session_.interrupted()) return interrupted_error(subject_.name);
      session_.report("pilot", static_cast<std::int64_t>(seconds.size()), 0);
      FULCRUM_TRY(const Piece piece, timed_slices());
      timing_.raw.push_back({.seconds = piece.batch.seconds, .phase = 1});
      seconds.push_back(piece.batch.seconds);
      costs.push_back(piece.batch.cost_seconds);
    }
    const double calls = static_cast<double>(timing_.calls_per_sample);
    const double call_seconds = stats::median(seconds) / calls;
    set_slices(call_seconds);
    // The mean: planning is about totals, and rare slow samples are part of them.
    cost_seconds_ = stats::mean(costs) * static_cast<double>(timing_.calls_per_sample) / calls;
    return {};
  }

  Status sample() {
    if (preparation_.counting_starts) preparation_.counting_starts();
    for (const stats::Look& look : plan_.looks) {
      while (static_cast<std::int64_t>(call_seconds_.size()) < look.n) {
        if (session_.interrupted()) return stop(StopReason::interrupted, "");
        if (!call_seconds_.empty() && session_.left_seconds() <= 0) {
          return stop(StopReason::budget, "off_schedule");
        }
        FULCRUM_CHECK(take_sample());
      }
      alpha_ = look.alpha;
      if (precise()) return stop_at_look(StopReason::precision, "");
    }
    return stop_at_look(StopReason::budget, plan_.capped_by_time ? "case_time" : "planned_looks");
  }

  Status take_sample() {
    session_.report("sampling", static_cast<std::int64_t>(call_seconds_.size()), half_width_);
    watch_.before_sample();
    FULCRUM_TRY(const Piece piece, timed_slices());
    const double seconds = piece.batch.seconds;
    std::uint8_t tags = watch_.after_sample(seconds);
    if (piece.all_seconds > kInterruptedSample * seconds) tags |= kInterrupted;
    if (!(seconds > 0)) {
      return Error{Code::environment, "the clock did not advance during a sample of " + subject_.name,
                   "Raise min_batch_seconds."};
    }
    timing_.raw.push_back({.seconds = seconds, .phase = 2, .tags = tags});
    migrated_ += (tags & kMigration) != 0;
    counted_seconds_ += seconds;
    all_seconds_ += piece.all_seconds;
    call_seconds_.push_back(seconds / static_cast<double>(timing_.calls_per_sample));
    return {};
  }

  // Neighbours that resemble each other make the interval look surer than it is: keep sampling then.
  bool precise() {
    const stats::MedianInterval interval = stats::median_interval(call_seconds_, alpha_);
    half_width_ = stats::log_half_width({interval.low, interval.high});
    const double n = static_cast<double>(call_seconds_.size());
    const bool correlated = interval.n_eff < std::min(stats::kMinEffective, 0.5 * n);
    return interval.exact && !correlated && half_width_ <= config_.precision;
  }

  Status stop_at_look(StopReason reason, std::string_view detail) {
    timing_.stop_reason = reason;
    timing_.stop_detail = detail;
    return {};
  }

  // Between two looks: what the last one would have spent is still unspent.
  Status stop(StopReason reason, std::string_view detail) {
    if (call_seconds_.empty()) return interrupted_error(subject_.name);
    alpha_ = plan_.looks.back().alpha;
    return stop_at_look(reason, detail);
  }

  Result<Timing> finish() {
    const double tagged = static_cast<double>(migrated_) / static_cast<double>(call_seconds_.size());
    summarize_into(timing_, call_seconds_, alpha_, tagged);
    if (all_seconds_ - counted_seconds_ > kMuchInterrupted * all_seconds_)
      add_flag(timing_.flags, "interrupted");
    timing_.environment = watch_.finish();
    if (!config_.keep_raw) timing_.raw.clear();
    return std::move(timing_);
  }

  Session& session_;
  const Subject& subject_;
  const Config& config_;
  const Preparation& preparation_;
  EnvironmentWatch watch_;
  Timing timing_;
  SamplePlan plan_;
  Slices slices_;
  double cost_seconds_ = 0;
  double counted_seconds_ = 0, all_seconds_ = 0;
  double alpha_ = stats::kTotalAlpha;
  double half_width_ = 0;
  std::int64_t migrated_ = 0;
  std::vector<double> call_seconds_;
};

}  // namespace

Result<Timing> time_in(Session& session, const Subject& subject, const Config& config,
                       const Preparation& preparation) {
  if (!subject.run) return Error{Code::usage, subject.name + " has nothing to run", "Set Subject::run."};
  return Runner(session, subject, config, preparation).run();
}

Result<Timing> time(const Subject& subject, const Config& config) {
  Session session(subject.name, config);
  return time_in(session, subject, config, Preparation{.warmup_seconds = config.warmup_seconds});
}

}  // namespace fulcrum::measure
