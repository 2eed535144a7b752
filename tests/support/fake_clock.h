// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Time that tests own: a clock that moves only when told to, and subjects that move it by a known amount plus
// noise from a recorded stream.
#pragma once

#include <fulcrum/measure.h>

#include <cmath>
#include <memory>

namespace fulcrum::testing {

class FakeClock {
 public:
  /// Each read moves time by `read_seconds`, so that loops which wait for the clock end.
  explicit FakeClock(double resolution_seconds = 1e-9, double read_seconds = 0)
      : clock_{.now = [this] { return now_seconds_ += clock_.read_seconds; },
               .resolution_seconds = resolution_seconds,
               .read_seconds = read_seconds} {}
  FakeClock(const FakeClock&) = delete;
  FakeClock& operator=(const FakeClock&) = delete;

  const measure::Clock* clock() const { return &clock_; }
  double now_seconds() const { return now_seconds_; }
  void advance(double seconds) { now_seconds_ += seconds; }

 private:
  double now_seconds_ = 1000;
  measure::Clock clock_;
};

/// A subject that takes `call_seconds` a call, times exp(noise * normal) drawn once a batch.
struct FakeSubject {
  FakeClock* clock = nullptr;
  double call_seconds = 1e-3;
  double noise = 0;
  std::uint64_t seed = 1;
  /// Factor by time, for drift that all subjects of a clock share. Optional.
  std::function<double(double now_seconds)> drift;

  std::shared_ptr<std::vector<std::int64_t>> counts = std::make_shared<std::vector<std::int64_t>>();

  measure::Subject subject(std::string name) const {
    auto random = std::make_shared<stats::Random>(seed);
    return measure::Subject{.name = std::move(name), .run = [*this, random](std::int64_t count) -> Status {
                              counts->push_back(count);
                              double factor = std::exp(noise * stats::normal_quantile(random->uniform()));
                              if (drift) factor *= drift(clock->now_seconds());
                              clock->advance(static_cast<double>(count) * call_seconds * factor);
                              return {};
                            }};
  }
};

}  // namespace fulcrum::testing
