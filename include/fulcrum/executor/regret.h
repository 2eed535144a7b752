// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// What deciding costs: held-out calls timed in every way, and the chosen way against the best one. See
// docs/deciding-well.md.
#pragma once

#include <fulcrum/core.h>

namespace fulcrum::executor {

struct Options;

/// Where the answer is about to change, between one thread and several or between this machine and its device: the best way
/// of the other side is predicted within a factor of two.
enum class Band : std::uint8_t { none, threads, device };

/// Times over the oracle's: 1 is perfect.
struct RegretScore {
  int points = 0;
  double mean = 1, low = 1, high = 1;  // interval of the mean at 95 %
  double p95 = 1, max = 1;
  struct InBand {
    int points = 0;
    double p95 = 1;
  };
  InBand threads, device;
};

struct RegretConfig {
  int points = 320;  // half of them in a band: the device's where the op has one, else that of threads
  /// Of each call, some time apart: a disturbance of seconds is in one of them. The oracle is picked on every second one
  /// and scored on the others (one more visit comes before: see RegretReport::timed_before).
  int visits = 10;
  int rounds = 10;  // of a visit
  double budget_seconds = 240;
  int learned_calls = 1000;  // of each, behind what `after` is the score of
  std::uint64_t seed = 20260131;
  std::vector<std::string> ops;  // empty: all that were calibrated
  std::function<bool()> interrupted;
  std::function<void(int done, int total)> progress;  // calls timed
};

struct RegretRow {
  std::string op, shape, residency;  // "host" or "resident"
  std::string chosen, oracle, tier;
  Band band = Band::none;
  double regret = 1, regret_after = 0;  // after: 0 where nothing was chosen
  double regret_before = 0;             // of the way that was fastest in the visit before
  double chosen_seconds = 0, oracle_seconds = 0, overhead_seconds = 0;
  struct Way {
    std::string name;
    double first_seconds = 0, second_seconds = 0;  // medians of the two halves of the visits
    double predicted_seconds = 0;
    double before_seconds = 0;  // median of the visit before
  };
  std::vector<Way> ways;  // all that could do it
};

struct RegretReport {
  std::string machine, table, measured_utc;
  std::uint64_t seed = 0;
  RegretScore executor;  // at the first call, by the table alone
  /// Of what is chosen after `after_calls` calls of each: the executor's tracker learns from the times of one half of the
  /// visits, trials within its credit included, and is scored with them on the other.
  RegretScore after;
  int after_calls = 0;
  /// Of the way that was fastest in all rounds together: below 1 where times changed between the halves, since the best
  /// way of one half is then not that of the other.
  RegretScore hindsight;
  /// Of the way that was fastest in one visit before these, when the very calls were timed: what a table without any error
  /// of its own would score. What is above 1 here is what the machine changes between visits.
  RegretScore timed_before;
  struct Baseline {
    std::string name, meaning;
    RegretScore score;
  };
  std::vector<Baseline> baselines;
  std::vector<std::pair<std::string, int>> classes;  // of the oracle: "one thread", "threads", "device"
  std::vector<RegretRow> rows;                       // as measured
  double seconds = 0;
  bool complete = true;  // false: the budget ended it before all points were measured
};

/// Decides by the table that `options` loads, without learning and with it.
Result<RegretReport> measure_regret(const Options& options, const RegretConfig& config);
Json to_json(const RegretReport& report);  // fulcrum.regret/3

}  // namespace fulcrum::executor
