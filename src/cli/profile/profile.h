// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// A CPU profile on the command line: recorded, read from a file of any kind, and summed up for people.
#pragma once

#include <fulcrum/core/plan.h>
#include <fulcrum/core/profile.h>
#include <fulcrum/record.h>
#include <fulcrum/record/hot.h>

#include "cli/context.h"
#include "cli/options.h"

namespace fulcrum::cli {

/// What a recording is asked for.
struct Recording {
  std::vector<std::string> command;
  std::int64_t pid = 0;
  double rate_hz = 0;  // 0: the default, adapted to short programs
  double duration_seconds = 0;
  bool output_is_ours = false;  // the program's standard output goes to standard error
};
/// Runs or attaches, with progress. Ctrl-C ends the sampling, and what is there comes back. A profile without a single
/// sample is an error.
Result<CpuProfile> record_profile(const Recording& recording, Context& context);
/// Whether there is a program of that name to run: the same error as running it, for what takes long before it runs.
Status check_command(const std::string& name);

/// Adds what `perf stat` printed, of a run here or elsewhere, to the counters.
Status add_perf_stat(const std::string& file, CpuProfile& profile);
/// "1.2 instructions a cycle, 3.1 % of cache references miss": what the counters say; empty: there are none.
std::string counters_text(const std::map<std::string, double>& counters);

/// A file of any format that report::read_profile knows.
Result<CpuProfile> load_profile(const std::string& file);

/// What the profile says; `before` may be null.
ProfileSummary summary_of(const CpuProfile& profile, const CpuProfile* before = nullptr);

}  // namespace fulcrum::cli
