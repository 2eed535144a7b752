// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// One case while it is being measured: its clock, its hard cap, the caller's wish to stop, progress at a
// civil rate, and the calls into user code, which may throw.
#pragma once

#include <fulcrum/measure.h>

namespace fulcrum::measure {

class Session {
 public:
  Session(std::string row, const Config& config);

  const Clock& clock() const { return *clock_; }
  double now() const { return clock_->now(); }
  double elapsed_seconds() const { return now() - started_seconds_; }
  double left_seconds() const { return config_->budget_seconds - elapsed_seconds(); }
  bool interrupted() const;
  /// Tells the caller where we are, at most ten times a second (a new stage is always told).
  void report(std::string_view stage, std::int64_t samples, double half_width);

 private:
  std::string row_;
  const Config* config_;
  const Clock* clock_;
  double started_seconds_;
  double reported_seconds_ = 0;
  std::string_view reported_stage_;
};

/// Runs user code; what it throws becomes an error of this case.
Status guarded(std::string_view name, const std::function<Status()>& code);

/// One timed batch: the reset outside, two clock reads around the calls.
struct Batch {
  double seconds = 0;
  double cost_seconds = 0;  // reset included
};
Result<Batch> timed_batch(const Session& session, const Subject& subject, std::int64_t calls);

Error interrupted_error(std::string_view name);

}  // namespace fulcrum::measure
