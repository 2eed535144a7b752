// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// When to trace and when not. Tracing costs the program time in proportion to what it records. What a record costs is
// assumed at first; as soon as there are windows, the program itself tells: it launches faster while nobody looks.
// Where the cost exceeds the budget, tracing goes on in windows. Pure: the caller brings the clock and the counts.
#pragma once

#include <cstdint>

namespace fulcrum::trace::inject {

/// What records and counting take of the program's time. Both go through code and tables that are in the caches where a
/// loop launches and launches, and are not where an interpreter has worked in between: on an H200's host a kernel's
/// record took 1.3 us in a loop of launches (4.3 us each), and 3.6 us in a training step (35 us between launches).
class Costs {
 public:
  Costs(double record_ns, double call_ns) : record_ns_(record_ns), call_ns_(call_ns) {}

  struct Counts {
    std::int64_t ops = 0, calls = 0;  // records
    std::int64_t launches = 0;        // whether traced or not
  };
  /// Adds what came since the last call to the sums below. Counts are since the start.
  void add(std::int64_t now_ns, const Counts&) noexcept;
  double spent_ns() const { return spent_ns_; }
  double counted_ns() const { return counted_ns_; }

 private:
  double record_ns_, call_ns_, spent_ns_ = 0, counted_ns_ = 0;
  std::int64_t last_ns_ = 0;
  Counts last_;
};

class Governor {
 public:
  struct Limits {
    double budget_share = 0.05;
    bool full = false;
    std::int64_t window_ns = 250'000'000;  // at least
    // Where records come at more than 25,000 a second, this much holds enough of them, and many short windows say more
    // about a run than few long ones. The first stays long: one that has whole iterations in it is needed.
    std::int64_t dense_window_ns = 30'000'000;
    // Behind the first two windows, at most: a run of a few seconds is to have more of them than its first.
    std::int64_t first_gap_ns = 300'000'000;
    std::int64_t limit_bytes = 0;  // of the file; 0: none
  };
  /// All since the start.
  struct Seen {
    double spent_ns = 0;  // of the program's time on records, as their assumed cost has it
    std::int64_t records = 0;
    std::int64_t launches = 0;  // whether traced or not
    double counted_ns = 0;      // of its time on counting launches: no window more or less changes that
    double switched_ns = 0;     // of its time on attaching CUPTI and detaching it
  };

  Governor(const Limits& limits, std::int64_t now_ns, std::uint64_t seed);

  /// Whether to trace from now on.
  bool tick(std::int64_t now_ns, const Seen&) noexcept;
  /// Whether records are to be kept in the file from now on: beyond half of its limit only in windows whose distance
  /// doubles. Call after tick().
  bool keep(std::int64_t now_ns, std::int64_t file_bytes) noexcept;

  bool tracing() const { return tracing_; }
  bool keeping() const { return keeping_; }
  /// Share of the program's time that tracing everything costs: as assumed, corrected by what windows and the time
  /// between them show; -1: nothing was seen.
  double full_share() const;
  /// The same from launches a second within windows and just before them alone, the median of windows; -1: too few.
  double measured_share() const;
  /// Of the program's time, so far.
  double spent_ns() const { return charged_ns_; }

 private:
  double random();  // 0 to 1
  double assumed_share() const;
  double correction() const;
  void open(std::int64_t now_ns);
  void close(std::int64_t now_ns);

  static constexpr int kMostPairs = 63;

  Limits limits_;
  std::uint64_t state_;
  bool tracing_ = true, keeping_ = true;
  bool is_first_ = true, is_behind_first_ = false;
  std::int64_t last_ns_, stretch_begin_ns_, window_length_ns_;  // a stretch: a window, or what is between two
  Seen last_, stretch_begin_;
  double balance_ns_ = 0, charged_ns_ = 0;      // what may still be spent, and what was
  double traced_ns_ = 0, traced_spent_ns_ = 0;  // in windows, while the program launched
  double recent_ns_ = 0, recent_cost_ns_ = 0;   // the same of the last second or so, with what counting costs
  double rate_before_ = 0;                      // launches a nanosecond, between the last window and this
  double pairs_[kMostPairs] = {};
  int pair_count_ = 0;
  bool limited_ = false;
  std::int64_t keep_until_ns_ = 0, pause_ns_ = 0, next_keep_ns_ = 0, keep_bytes_ = 0;
};

}  // namespace fulcrum::trace::inject
