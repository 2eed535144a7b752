// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// When to trace and when not. Tracing costs the program time in proportion to what it records; the costs of a record
// are known, so the time spent so far is too. Where it exceeds the budget, tracing goes on in windows. Pure: the
// caller brings the clock and the counts.
#pragma once

#include <cstdint>

namespace fulcrum::trace::inject {

class Governor {
 public:
  struct Limits {
    double budget_share = 0.05;
    bool full = false;
    std::int64_t window_ns = 250'000'000;  // at least
    // Where records come at more than 100,000 a second, this much holds enough of them.
    std::int64_t dense_window_ns = 100'000'000;
    std::int64_t limit_bytes = 0;  // of the file; 0: none
  };

  Governor(const Limits& limits, std::int64_t now_ns, std::uint64_t seed);

  /// What has been spent since the start, in nanoseconds of the program's time, and whether to trace from now on.
  bool tick(std::int64_t now_ns, double spent_ns, std::int64_t records) noexcept;
  /// Whether records are to be kept in the file from now on: beyond half of its limit only in windows whose distance
  /// doubles. Call after tick().
  bool keep(std::int64_t now_ns, std::int64_t file_bytes) noexcept;

  bool tracing() const { return tracing_; }
  bool keeping() const { return keeping_; }
  /// Share of the program's time that tracing everything costs, as seen in windows so far; -1: nothing was seen.
  double full_share() const;

 private:
  double random();  // 0 to 1

  Limits limits_;
  std::uint64_t state_;
  bool tracing_ = true, keeping_ = true;
  std::int64_t last_ns_, window_begin_ns_, window_length_ns_;
  double last_spent_ns_ = 0, window_spent_ns_ = 0;
  std::int64_t window_records_ = 0, last_records_ = 0;
  double balance_ns_ = 0;  // what may still be spent
  double traced_ns_ = 0, traced_spent_ns_ = 0;
  std::int64_t pause_until_ns_ = 0;
  bool limited_ = false;
  std::int64_t keep_until_ns_ = 0, pause_ns_ = 0, next_keep_ns_ = 0, keep_bytes_ = 0;
};

}  // namespace fulcrum::trace::inject
