// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// What each flag means and what to do about it. A flag may carry a detail after a colon or an equals sign.
#include <fulcrum/report.h>

namespace fulcrum::report {
namespace {

struct Explanation {
  std::string_view flag, sentence;
};

constexpr Explanation kExplanations[] = {
    {"heavy_tail",
     "rare slow samples stretch the tail; trust the median, not the mean, and stop other programs"},
    {"multimodal", "the times fall into separate groups; pin the process (taskset), or let the clock settle"},
    {"interrupted",
     "more than 5 % of the time went to ticks and other programs and is not in the times; stop other "
     "programs"},
    {"correlated", "neighbouring samples resemble each other, so they count for fewer; raise --budget"},
    {"low_n", "few samples, because one is long; raise --budget for a narrower interval"},
    {"too_few_samples", "too few samples for the interval asked for, so it spans them all; raise --budget"},
    {"warmup_unsettled", "times still moved when the warm-up ended; run again when the machine is quieter"},
    {"cache_unverified",
     "the rates measured on this machine do not prove the cache state that the row names"},
    {"streaming", "the data does not fit the caches, so this row measures memory"},
    {"batch_percentiles", "p90 and p99 are of batches of calls, not of single calls"},
    {"bits_vary", "results stayed right, but their bits changed between calls"},
    {"inaccurate",
     "a peer that misses the tolerance of the op, by as much as `error` says; our kernels are never timed "
     "so"},
    {"clamped",
     "more than 1 % of the pixels lie outside of the range and fell into its first or last bin; give lo and "
     "hi, "
     "or range=auto"},
    {"impossible_rate",
     "faster than this machine can be, so it is wrong; measure it again with `fulcrum machine`"},
    {"throttled",
     "the device ran below its clocks to save power or to stay cool; let it cool, then measure again"},
    {"clock_dropped",
     "the device's clock fell by more than 10 % during the row; measure again, with nothing else on it"},
    {"shared_device", "other processes use the device, and its time is shared; stop them"},
    {"few_sets",
     "too few sets of operands fit to be sure that none is left in L2: take a larger size for cold rows"},
    {"short_replay", "the recorded batch is too short for the device's clock, so the row has no device time"},
    {"ledger_incomplete",
     "more than 5 % (and 2 us) of the traced call belongs to no phase; `unattributed` says how much"},
    {"ledger_perturbed",
     "tracing changed the time by more than 5 %: take the ledger's shares, not its seconds"},
    {"few_processes",
     "fewer than 6 processes: the interval is that of the pooled samples; raise --processes"},
    {"variance",
     "where the spread lies; a large process share asks for more --processes, not for more --budget"},
    {"first_run_outlier",
     "the first run was much slower; use --warmup, or --prepare to clear the caches each time"},
    {"fast_command", "under 5 ms, starting the process is most of what is timed"},
};

}  // namespace

std::string explain_flag(std::string_view flag) {
  const std::string_view name = flag.substr(0, flag.find_first_of(":= "));
  for (const Explanation& explanation : kExplanations) {
    if (explanation.flag == name) return std::string(explanation.sentence);
  }
  return "";
}

}  // namespace fulcrum::report
