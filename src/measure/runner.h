// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// The stages that timing and comparing share, and the entry points that run inside a session of their caller.
#pragma once

#include "measure/environment.h"
#include "measure/session.h"

namespace fulcrum::measure {

/// How much to do before the counted samples. Commands differ: their warm-up is what the user asked for.
struct Preparation {
  std::int64_t warmup_calls = 3;
  double warmup_seconds = 0.1;
  double warmup_cap_seconds = 1;
  bool settle = true;  // until two successive blocks of five have the same median within 5 %
  std::int64_t pilot_min = 3, pilot_max = 10;
  double pilot_seconds = 0.2;
  bool single_calls = false;  // never batch
  /// Called once, before the first counted sample. Optional.
  std::function<void()> counting_starts;
};

struct WarmUp {
  double call_seconds = 0;  // of the last samples
  double sample_cost_seconds = 0;
  bool settled = true;
};
/// Calls until times are steady; batches grow to `batch_seconds` unless there is a reset.
Result<WarmUp> warm_up(Session& session, const Subject& subject, const Preparation& preparation,
                       double batch_seconds, std::vector<Sample>& raw);

Result<Timing> time_in(Session& session, const Subject& subject, const Config& config,
                       const Preparation& preparation);
Result<Comparison> compare_in(Session& session, const Subject& a, const Subject& b, const Config& config,
                              const Preparation& preparation);

/// Level that the interval reported for n independent values has: the schedule's, or that of [min, max].
double reported_level(bool exact, double n_eff);

/// Fills what follows from the counted samples (seconds per call, in time order): estimate, quality, flags.
void summarize_into(Timing& timing, std::span<const double> call_seconds, double alpha, double tagged_share);

void add_flag(std::vector<std::string>& flags, std::string_view flag);

}  // namespace fulcrum::measure
