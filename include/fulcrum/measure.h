// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// The runner: warm-up, batching against the clock, cache state, stopping, paired comparison, sweeps. How to
// time is data (Config); a result carries its own doubt and the reason it stopped. See docs/measuring.md.
#pragma once

#include <fulcrum/backends.h>
#include <fulcrum/stats.h>

namespace fulcrum::measure {

/// Two clock reads around a batch are all the runner trusts. Tests pass a fake.
struct Clock {
  std::function<double()> now;    // seconds, monotonic
  double resolution_seconds = 0;  // smallest step seen
  double read_seconds = 0;        // cost of one read
};
/// The machine's steady clock, its resolution and cost measured once.
const Clock& steady_clock();

struct Progress {
  std::string_view row;    // stable name of what is being measured
  std::string_view stage;  // "check", "warm-up", "pilot", "sampling", "rounds"
  std::int64_t samples = 0;
  double half_width = 0;    // relative half width of the interval so far; 0: not known yet
  double seconds_left = 0;  // of this case's budget
};

struct Config {
  Regime regime = Regime::host;
  std::string path;        // where operands travel: how; empty: the first path of the backend for the regime
  std::int64_t reuse = 1;  // regime reuse: kernel calls per transfer
  /// Pass B of the ledger: single calls, or batches of calls that overlap, under the backend's tracing, which stays loaded. Never in a process whose
  /// bare times are reported.
  bool instrumented = false;
  Cache cache = Cache::warm;
  double precision = 0.01;     // stop when (ln high - ln low) / 2 of the median's interval is at most this
  double budget_seconds = 10;  // hard cap of one case, set-up included
  std::vector<double>
      horizons;  // comparisons: stop when the interval clears all of them; empty: precision only
  std::int64_t min_samples = 0;  // 0: 100, 30 or 10 by the cost of one sample
  double min_batch_seconds = 1e-3;
  double warmup_seconds = 0.1;
  bool keep_raw = true;
  const Machine* machine = nullptr;   // ceilings for the physics check and the proof of the cache state
  std::function<bool()> interrupted;  // asked between samples
  std::function<void(const Progress&)> progress;  // called at most ten times a second
  const Clock* clock = nullptr;                   // null: steady_clock()
};

/// Anything that can be timed: `run(count)` does count calls back to back; `reset` runs before every sample,
/// outside the timed region. Exceptions of a user's callback become errors of this case.
struct Subject {
  std::string name;
  std::function<Status(std::int64_t count)> run;
  std::function<Status()> reset;  // optional
  std::int64_t least_calls = 1;   // of a sample: calls that overlap make sense as a batch only
  /// That a call keeps busy. Beside another subject's threads, which go on spinning when they are idle, calls on several
  /// are settled before they are timed.
  int threads = 1;
};

/// Timing alone: everything of a Measurement that does not need an op. Flags: low_n, too_few_samples,
/// correlated, heavy_tail, multimodal, batch_percentiles, warmup_unsettled; kernels add cache_unverified,
/// streaming, bits_vary and impossible_rate; devices throttled, clock_dropped, shared_device, few_sets,
/// ledger_incomplete and ledger_perturbed; commands first_run_outlier and fast_command; merge few_processes and
/// "variance: ...".
struct Timing {
  Estimate seconds;
  std::int64_t samples = 0;
  double effective_samples = 0;
  std::int64_t calls_per_sample = 1;
  StopReason stop_reason = StopReason::invalid;
  std::string stop_detail;
  Quality quality = Quality::invalid;
  std::vector<std::string> flags;
  std::vector<double> modes;
  Environment environment;
  std::vector<Sample> raw;
};
Result<Timing> time(const Subject& subject, const Config& config);

/// Paired and interleaved (ABBA): rounds of one epoch each, equal call counts, until precision or a horizon.
/// speedup = time of b / time of a.
Result<Comparison> compare(const Subject& a, const Subject& b, const Config& config);

/// A kernel on a problem: correctness first, then timing, then the physics check. A wrong result is an error
/// with Code::wrong_result, never a time; a time that the machine cannot do stops as `invalid`. CPU kernels run in
/// the regime host, kernels of a backend with memory of its own in the others. first_call has a function of its own.
Result<Measurement> run(const backends::Kernel& kernel, ops::Problem& problem, const Config& config);
/// Two kernels interleaved, each in its own regime: CPU kernels as host, the others as the configuration says.
Result<Comparison> compare(const backends::Kernel& a, const backends::Kernel& b, ops::Problem& problem,
                           const Config& config);

/// One sample of the regime first_call: everything from before the backend is first asked whether it is available
/// until the first result is back on the host. Only in a process that has not asked before.
Result<Measurement> first_call(std::string_view backend, std::string_view variant, ops::Problem& problem,
                               const Config& config);

/// Bare processes (pass A, merged into `row`) and instrumented ones (pass B): the row with its ledger, the flags
/// ledger_incomplete and ledger_perturbed where they apply.
Result<Measurement> join_ledger(Measurement row, const std::vector<Measurement>& instrumented);

/// One row over several processes: medians pooled with the process as the sampling unit; the variance split
/// is in the flags. All must be of the same row.
Result<Measurement> merge(const std::vector<Measurement>& processes);

/// Whole commands, as hyperfine times them: wall time of fork to exit, standard output discarded.
struct Command {
  std::string name;               // as typed
  std::vector<std::string> argv;  // run directly, no shell
  std::string prepare;            // shell command before every run, outside the timing; empty: none
  std::int64_t warmup_runs = 0;
  bool ignore_failure = false;
};
struct CommandTiming {
  std::string name;
  Timing timing;
  double user_seconds = 0, system_seconds = 0;  // medians
  std::int64_t peak_bytes = 0;
  std::vector<int> exit_codes;
};
Result<CommandTiming> time_command(const Command& command, const Config& config);
/// Two commands, interleaved run by run.
Result<Comparison> compare_commands(const Command& a, const Command& b, const Config& config);

/// Marks a row whose time beats the machine: compulsory bytes or flops faster than 1.02 x the measured peak
/// of the level that must supply them. Empty: plausible. Also fills the ceiling the row stands under.
struct Physics {
  std::string violation;
  bool unverified = false;  // cold, and plausible only if the outputs were still in a cache
  std::optional<Ceiling> ceiling;
};
Physics physics_check(const Work& work, double seconds, Cache cache, int threads, std::string_view isa,
                      std::int64_t working_set_bytes, const Machine& machine);

/// The same for a kernel of a device. `seconds`: device time where it is known. The level is L2 for warm sets of at
/// most half of it, else HBM.
Physics device_physics(const Work& work, double seconds, Cache cache, std::string_view precision,
                       std::int64_t working_set_bytes, const GpuCeilings& gpu);
/// For trips: the link's share of `seconds`, both directions at once being the best case.
Physics link_physics(const Work& work, double seconds, const GpuCeilings& gpu);

/// The harness measures itself: A/A comparisons, injected slow-downs, coverage, floors.
struct SelfTest {
  int comparisons = 0, flagged = 0;
  struct Injected {
    double effect = 0;  // 0.02: 2 % slower
    int comparisons = 0, found = 0, covered = 0;
  };
  std::vector<Injected> injected;
  double coverage = 0;            // of the known effects, A/A pooled in
  double minimum_detectable = 0;  // smallest effect found in 80 % of the comparisons; 0: none of those tried
  double clock_resolution_seconds = 0, clock_read_seconds = 0;
  double wall_seconds = 0;
  bool passed = false;
  std::vector<std::string> failures;
};
struct SelfTestConfig {
  int comparisons = 200;
  std::vector<double> effects = {0.01, 0.02, 0.05, 0.10};
  int comparisons_per_effect = 50;
  double budget_seconds = 540;
  std::function<bool()> interrupted;
  std::function<void(std::string_view stage, int done, int total)> progress;
  const Clock* clock = nullptr;
};
Result<SelfTest> self_test(const SelfTestConfig& config);

}  // namespace fulcrum::measure
