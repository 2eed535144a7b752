// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Paired comparison: rounds of short interleaved slices (ABBA or BAAB), so that drift and what the neighbours
// do hit both sides alike. The median of a side's slices is its epoch; d = ln(t_b / t_a) of the epochs is one
// round of the sign test.
// Why the median of slices: on a 2-core VM with ten busy neighbours the sum of the same slices (ten of 0.1
// ms) found a 2 % effect in 54-64 % of comparisons, their median in all.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "measure/plan.h"
#include "measure/runner.h"

namespace fulcrum::measure {
namespace {

constexpr int kPilotRounds = 2;
// Threads that have nothing to do spin for a while, so that the next call finds them at hand: libgomp's as it is set up
// here some 100 us, ours 100 to 300. They do so on the cores that the other side's threads want. In slices that began at
// once `relu` of 100K on two of our threads had 0.59 of oneDNN's speed (a Zen 5), in windows of their own 1.14.
constexpr double kSettleSeconds = 500e-6;
constexpr int kMostSettling = 5000;  // calls

class Comparer {
 public:
  Comparer(Session& session, const Subject& a, const Subject& b, const Config& config,
           const Preparation& preparation)
      : session_(session), a_(a), b_(b), config_(config), preparation_(preparation) {
    comparison_.a = a.name;
    comparison_.b = b.name;
  }

  Result<Comparison> run() {
    FULCRUM_CHECK(prepare());
    FULCRUM_CHECK(rounds());
    return finish();
  }

 private:
  struct Round {
    double seconds_a = 0, seconds_b = 0;  // per call
    double cost_seconds = 0;
  };

  Status prepare() {
    const bool has_reset = a_.reset || b_.reset || preparation_.single_calls;
    std::vector<Sample> discarded;
    WarmUp warm_a, warm_b;
    if (preparation_.warmup_calls > 0 || preparation_.warmup_seconds > 0) {
      Preparation half = preparation_;
      half.warmup_seconds /= 2;
      half.warmup_cap_seconds /= 2;
      FULCRUM_TRY(warm_a, warm_up(session_, a_, half, config_.min_batch_seconds, discarded));
      FULCRUM_TRY(warm_b, warm_up(session_, b_, half, config_.min_batch_seconds, discarded));
    }
    const auto plan_for = [&](double call_a, double call_b) {
      RoundPlan plan = plan_round(call_a, call_b, session_.clock(), config_.min_batch_seconds, has_reset,
                                  std::max(a_.least_calls, b_.least_calls));
      plan.settle = !has_reset && std::max(a_.threads, b_.threads) > 1;
      return plan;
    };
    plan_ = plan_for(warm_a.call_seconds, warm_b.call_seconds);
    double cost_seconds = (warm_a.sample_cost_seconds + warm_b.sample_cost_seconds) *
                          static_cast<double>(plan_.calls) * plan_.slices;
    const bool affordable = kPilotRounds * cost_seconds < 0.25 * session_.left_seconds();
    for (int round = 0; affordable && round < kPilotRounds; ++round) {
      session_.report("pilot", round, 0);
      FULCRUM_TRY(const Round pilot, take_round(round));
      plan_ = plan_for(pilot.seconds_a, pilot.seconds_b);
      cost_seconds = pilot.cost_seconds;
    }
    schedule_ = plan_rounds(cost_seconds, session_.left_seconds());
    return {};
  }

  /// Untimed calls until the other side's threads are asleep.
  Status settle(const Subject& subject) {
    const double end = session_.now() + kSettleSeconds;
    for (int call = 0; call < kMostSettling && session_.now() < end; ++call)
      FULCRUM_CHECK(guarded(subject.name, [&] { return subject.run(1); }));
    return {};
  }

  Result<Round> take_round(std::int64_t index) {
    std::vector<double> slices_a, slices_b;
    const double begin = session_.now();
    for (const bool is_a : order_of_round(index, plan_.slices)) {
      const Subject& subject = is_a ? a_ : b_;
      if (session_.interrupted()) return interrupted_error(comparison_.a + " against " + comparison_.b);
      const bool was_other = std::exchange(before_, &subject) != &subject;
      if (plan_.settle && was_other) {
        FULCRUM_CHECK(settle(subject));
      } else if (plan_.prime) {
        FULCRUM_CHECK(guarded(subject.name, [&] { return subject.run(1); }));
      }
      FULCRUM_TRY(const Batch batch, timed_batch(session_, subject, plan_.calls));
      (is_a ? slices_a : slices_b).push_back(batch.seconds / static_cast<double>(plan_.calls));
    }
    return Round{stats::median(slices_a), stats::median(slices_b), session_.now() - begin};
  }

  Status rounds() {
    for (const stats::Look& look : schedule_.looks) {
      while (done() < look.n) {
        if (done() > 0 && session_.left_seconds() <= 0) return stop(StopReason::budget, "off_schedule");
        session_.report("rounds", done(), half_width_);
        auto round = take_round(done());
        if (!round.ok() && round.error().code == Code::interrupted && done() > 0) {
          return stop(StopReason::interrupted, "");
        }
        if (!round.ok()) return std::move(round).take_error();
        if (!(round->seconds_a > 0 && round->seconds_b > 0)) {
          return Error{Code::environment, "the clock did not advance during a slice of " + comparison_.a,
                       "Raise min_batch_seconds."};
        }
        comparison_.seconds_a.push_back(round->seconds_a);
        comparison_.seconds_b.push_back(round->seconds_b);
      }
      alpha_ = look.alpha;
      const stats::Paired paired =
          stats::compare_paired(comparison_.seconds_a, comparison_.seconds_b, alpha_);
      const stats::Interval interval{paired.ci_low, paired.ci_high};
      half_width_ = stats::log_half_width(interval);
      if (paired.exact && stats::clears(interval, config_.horizons))
        return stop_at_look(StopReason::decision, "");
      if (paired.exact && half_width_ <= config_.precision) return stop_at_look(StopReason::precision, "");
    }
    return stop_at_look(StopReason::budget, schedule_.capped_by_time ? "case_time" : "planned_looks");
  }

  std::int64_t done() const { return static_cast<std::int64_t>(comparison_.seconds_a.size()); }

  Status stop_at_look(StopReason reason, std::string_view detail) {
    comparison_.stop_reason = reason;
    comparison_.stop_detail = detail;
    return {};
  }
  Status stop(StopReason reason, std::string_view detail) {
    alpha_ = schedule_.looks.back().alpha;
    return stop_at_look(reason, detail);
  }

  Result<Comparison> finish() {
    const stats::Paired paired = stats::compare_paired(comparison_.seconds_a, comparison_.seconds_b, alpha_);
    comparison_.speedup = paired.speedup;
    comparison_.ci_low = paired.ci_low;
    comparison_.ci_high = paired.ci_high;
    comparison_.level = reported_level(paired.exact, static_cast<double>(paired.rounds));
    comparison_.seconds_saved = paired.seconds_saved;
    comparison_.share_a_faster = paired.share_a_faster;
    comparison_.rounds = paired.rounds;
    comparison_.ties = paired.ties;
    comparison_.verdict = static_cast<Verdict>(paired.verdict);
    if (!paired.exact) comparison_.reason = fmt::format("{} rounds are too few for 95 %", paired.rounds);
    return std::move(comparison_);
  }

  Session& session_;
  const Subject& a_;
  const Subject& b_;
  const Config& config_;
  const Preparation& preparation_;
  const Subject* before_ = nullptr;  // whose slice was the last one
  RoundPlan plan_;
  RoundsPlan schedule_;
  double alpha_ = stats::kTotalAlpha;
  double half_width_ = 0;
  Comparison comparison_;
};

static_assert(static_cast<int>(Verdict::not_run) == static_cast<int>(stats::Verdict::not_run));

}  // namespace

Result<Comparison> compare_in(Session& session, const Subject& a, const Subject& b, const Config& config,
                              const Preparation& preparation) {
  for (const Subject* subject : {&a, &b}) {
    if (!subject->run) return Error{Code::usage, subject->name + " has nothing to run", "Set Subject::run."};
  }
  return Comparer(session, a, b, config, preparation).run();
}

Result<Comparison> compare(const Subject& a, const Subject& b, const Config& config) {
  Session session(a.name + " vs " + b.name, config);
  return compare_in(session, a, b, config, Preparation{.warmup_seconds = config.warmup_seconds});
}

}  // namespace fulcrum::measure
