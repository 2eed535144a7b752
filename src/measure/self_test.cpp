// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// The harness measures itself: the same code against itself must seldom be called different, a known
// slow-down must be found, and the intervals must cover the truth. Limits are those of docs/measuring.md.
#include "measure/self_test.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <memory>

namespace fulcrum::measure {
namespace {

constexpr double kFlaggedLimit = 0.08;
constexpr double kNominalCoverage = 1 - stats::kTotalAlpha;
constexpr double kRequiredEffect = 0.02;
constexpr double kRequiredPower = 0.95;
// Half of the smallest effect tried by default, so that stopping early hides none of them.
constexpr double kPrecision = 0.005;
constexpr double kWarmupSeconds = 0.01;
// A noisy stretch may take several times its share; the total is still bounded.
constexpr double kShareFactor = 4;

// About 2 us of dependent arithmetic: no memory traffic, nothing for a compiler to shorten.
constexpr int kElements = 1024;
float fixed_kernel(const std::array<float, kElements>& x) {
  float sum = 1;
  for (const float value : x) sum = sum * 0.999f + value;
  return sum;
}

Subject fixed_subject() {
  auto data = std::make_shared<std::array<float, kElements>>();
  for (int i = 0; i < kElements; ++i) (*data)[static_cast<std::size_t>(i)] = 1e-3f * static_cast<float>(i);
  return Subject{.name = "self-test", .run = [data](std::int64_t count) -> Status {
                   volatile float sink = 0;
                   for (std::int64_t i = 0; i < count; ++i) {
                     asm volatile("" : : "r"(data->data()) : "memory");  // each call reads its input anew
                     sink = fixed_kernel(*data);
                   }
                   (void)sink;
                   return {};
                 }};
}

class SelfTester {
 public:
  SelfTester(const Subject& kernel, const SelfTestConfig& config)
      : kernel_(kernel),
        config_(config),
        clock_(config.clock ? *config.clock : steady_clock()),
        read_seconds_(read_cost(clock_)),
        started_seconds_(clock_.now()) {}

  Result<SelfTest> run() {
    planned_ =
        config_.comparisons + config_.comparisons_per_effect * static_cast<int>(config_.effects.size());
    out_.clock_resolution_seconds = clock_.resolution_seconds;
    out_.clock_read_seconds = clock_.read_seconds;
    FULCRUM_TRY(const SelfTest::Injected same, stage("A/A", 0, config_.comparisons));
    out_.comparisons = same.comparisons;
    out_.flagged = same.found;
    covered_ += same.covered;
    for (const double effect : config_.effects) {
      const std::string name = fmt::format("{:g} % slower", 100 * effect);
      FULCRUM_TRY(const SelfTest::Injected injected, stage(name, effect, config_.comparisons_per_effect));
      covered_ += injected.covered;
      out_.injected.push_back(injected);
    }
    judge();
    return std::move(out_);
  }

 private:
  double left_seconds() const { return config_.budget_seconds - (clock_.now() - started_seconds_); }

  // `found`: a difference in the right direction; of A/A, in any.
  Result<SelfTest::Injected> stage(std::string_view name, double effect, int comparisons) {
    SelfTest::Injected out{.effect = effect};
    Injection none{.read_seconds = read_seconds_}, injection{.read_seconds = read_seconds_};
    const Subject plain = slowed(kernel_, 0, clock_, &none);
    const Subject other = slowed(kernel_, effect, clock_, &injection);
    for (int i = 0; i < comparisons && left_seconds() > 0; ++i, ++done_) {
      if (config_.progress) config_.progress(name, i, comparisons);
      none.ratios.clear();
      injection.ratios.clear();
      const double share = left_seconds() / std::max(1, planned_ - done_);
      const Config compare_config{.precision = kPrecision,
                                  .budget_seconds = std::min(kShareFactor * share, left_seconds()),
                                  .horizons = {1.0},
                                  .warmup_seconds = kWarmupSeconds,
                                  .interrupted = config_.interrupted,
                                  .clock = &clock_};
      FULCRUM_TRY(const Comparison comparison, compare(plain, effect > 0 ? other : plain, compare_config));
      if (comparison.stop_reason == StopReason::interrupted) {
        return Error{Code::interrupted, "the self-test was interrupted",
                     "It has no partial result: run it again."};
      }
      ++out.comparisons;
      const stats::Interval interval{comparison.ci_low, comparison.ci_high};
      const double truth = effect > 0 ? stats::median(injection.ratios) : 1;
      out.found += stats::excludes_one(interval) && (effect == 0 || comparison.speedup > 1);
      out.covered += interval.low <= truth && truth <= interval.high;
    }
    return out;
  }

  void require(bool holds, std::string failure) {
    if (!holds) out_.failures.push_back(std::move(failure));
  }

  void judge() {
    out_.wall_seconds = clock_.now() - started_seconds_;
    require(done_ == planned_, fmt::format("out of time: {} of {} comparisons in {:.0f} s", done_, planned_,
                                           config_.budget_seconds));
    const double flagged_limit = kFlaggedLimit * out_.comparisons;
    require(
        out_.flagged <= flagged_limit,
        fmt::format("{} of {} comparisons of the kernel with itself were flagged, {:.0f} at most are allowed",
                    out_.flagged, out_.comparisons, std::floor(flagged_limit)));
    std::vector<stats::Detection> curve;
    for (const SelfTest::Injected& injected : out_.injected) {
      curve.push_back({injected.effect, injected.found, injected.comparisons});
      if (injected.effect != kRequiredEffect) continue;
      require(injected.found >= kRequiredPower * injected.comparisons,
              fmt::format("a slow-down of 2 % was found in {} of {} comparisons, {:.0f} % are needed",
                          injected.found, injected.comparisons, 100 * kRequiredPower));
    }
    out_.minimum_detectable = stats::minimum_detectable_effect(curve).value_or(0);
    const double n = std::max(1, done_);
    out_.coverage = covered_ / n;
    const double least = kNominalCoverage - 3 * std::sqrt(kNominalCoverage * (1 - kNominalCoverage) / n);
    require(out_.coverage >= least,
            fmt::format("intervals covered the known effect in {:.1f} %, {:.1f} % are needed",
                        100 * out_.coverage, 100 * least));
    out_.passed = out_.failures.empty();
  }

  const Subject& kernel_;
  const SelfTestConfig& config_;
  const Clock& clock_;
  double read_seconds_;
  double started_seconds_;
  int planned_ = 0, done_ = 0;
  double covered_ = 0;
  SelfTest out_;
};

}  // namespace

double read_cost(const Clock& clock) {
  constexpr int kReads = 1000, kRuns = 5;
  double best = std::numeric_limits<double>::infinity();
  for (int run = 0; run < kRuns; ++run) {
    const double begin = clock.now();
    double end = begin;
    for (int i = 0; i < kReads; ++i) end = clock.now();
    best = std::min(best, (end - begin) / kReads);
  }
  return best;
}

Subject slowed(const Subject& kernel, double effect, const Clock& clock, Injection* injection) {
  const auto run = [kernel, effect, &clock, injection](std::int64_t count) -> Status {
    const double begin = clock.now();
    FULCRUM_CHECK(kernel.run(count));
    const double middle = clock.now();
    const double until = middle + effect * (middle - begin);
    double end = 0;
    do {
      end = clock.now();
    } while (end < until);
    if (count != injection->calls) injection->ratios.clear();
    injection->calls = count;
    // The runner's own clock adds two reads, and even without a spin there is one after `middle`.
    const double bare_seconds = middle - begin + 3 * injection->read_seconds;
    injection->ratios.push_back((end - begin + 2 * injection->read_seconds) / bare_seconds);
    return {};
  };
  return Subject{
      .name = fmt::format("{} + {:g} %", kernel.name, 100 * effect), .run = run, .reset = kernel.reset};
}

Result<SelfTest> self_test_of(const Subject& kernel, const SelfTestConfig& config) {
  return SelfTester(kernel, config).run();
}

Result<SelfTest> self_test(const SelfTestConfig& config) { return self_test_of(fixed_subject(), config); }

}  // namespace fulcrum::measure
