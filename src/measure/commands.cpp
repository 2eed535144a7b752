// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Whole commands as subjects: one process per call, never batched, the user's warm-up and preparation between
// runs.
#include <fmt/format.h>

#include <algorithm>

#include "measure/runner.h"

namespace fulcrum::measure {
namespace {

// Below this, starting the process is most of what is measured.
constexpr double kFastSeconds = 5e-3;

struct Runs {
  std::vector<double> user_seconds, system_seconds;
  std::vector<int> exit_codes;
  std::int64_t peak_bytes = 0;
};

Status run_command(const Command& command, Runs& runs) {
  FULCRUM_TRY(const ProcessResult result, run_process(command.argv, ProcessOptions{.capture = false}));
  runs.user_seconds.push_back(result.user_seconds);
  runs.system_seconds.push_back(result.system_seconds);
  runs.exit_codes.push_back(result.exit_code);
  runs.peak_bytes = std::max(runs.peak_bytes, result.peak_bytes);
  if (result.exit_code == 0 || command.ignore_failure) return {};
  return Error{Code::environment, fmt::format("`{}` ended with exit code {}", command.name, result.exit_code),
               "Run it alone to see its output, or add --ignore-failure to time it all the same."};
}

Status prepare_command(const Command& command) {
  FULCRUM_TRY(const ProcessResult result,
              run_process({"/bin/sh", "-c", command.prepare}, ProcessOptions{.capture = false}));
  if (result.exit_code == 0) return {};
  return Error{Code::environment,
               fmt::format("the preparation `{}` ended with exit code {}", command.prepare, result.exit_code),
               "It must succeed before every run; run it alone to see its output."};
}

Subject subject_of(const Command& command, Runs& runs) {
  Subject subject{.name = command.name, .run = [&command, &runs](std::int64_t count) -> Status {
                    for (std::int64_t i = 0; i < count; ++i) FULCRUM_CHECK(run_command(command, runs));
                    return {};
                  }};
  if (!command.prepare.empty()) subject.reset = [&command] { return prepare_command(command); };
  return subject;
}

Preparation preparation_of(const Command& command) {
  return Preparation{.warmup_calls = command.warmup_runs,
                     .warmup_seconds = 0,
                     .warmup_cap_seconds = 1e9,  // the user said how many; the budget still ends it
                     .settle = false,
                     .pilot_min = 1,
                     .single_calls = true};
}

Status runnable(const Command& command) {
  if (!command.argv.empty()) return {};
  return Error{Code::usage, "there is no command to run", "Write it after --, for example: -- sleep 0.1"};
}

}  // namespace

Result<CommandTiming> time_command(const Command& command, const Config& config) {
  FULCRUM_CHECK(runnable(command));
  Runs runs;
  const Subject subject = subject_of(command, runs);
  Preparation preparation = preparation_of(command);
  preparation.counting_starts = [&] { runs = Runs{}; };
  Session session(command.name, config);
  Config keeping = config;
  keeping.keep_raw = true;
  FULCRUM_TRY(Timing timing, time_in(session, subject, keeping, preparation));

  // The very first run finds cold disks and caches; later ones do not, and the user may care for either.
  std::vector<double> from_first;
  for (const Sample& sample : timing.raw) from_first.push_back(sample.seconds);
  if (stats::classify_outliers(from_first).slow_first) add_flag(timing.flags, "first_run_outlier");
  if (timing.seconds.median < kFastSeconds) add_flag(timing.flags, "fast_command");
  if (!config.keep_raw) timing.raw.clear();
  return CommandTiming{.name = command.name,
                       .timing = std::move(timing),
                       .user_seconds = stats::median(runs.user_seconds),
                       .system_seconds = stats::median(runs.system_seconds),
                       .peak_bytes = runs.peak_bytes,
                       .exit_codes = std::move(runs.exit_codes)};
}

Result<Comparison> compare_commands(const Command& a, const Command& b, const Config& config) {
  FULCRUM_CHECK(runnable(a));
  FULCRUM_CHECK(runnable(b));
  Runs runs_a, runs_b;
  Preparation preparation = preparation_of(a);
  preparation.warmup_calls = std::max(a.warmup_runs, b.warmup_runs);
  Session session(a.name + " vs " + b.name, config);
  return compare_in(session, subject_of(a, runs_a), subject_of(b, runs_b), config, preparation);
}

}  // namespace fulcrum::measure
