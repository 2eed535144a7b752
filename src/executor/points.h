// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// What a table is made from: times of candidates at some shapes, and what moving data costs. Plain data, measured here,
// read from a file, or predicted from what the program ships.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "executor/dispatch.h"
#include "executor/forks.h"

namespace fulcrum::executor {

/// One candidate at one shape. seconds 0: not known.
struct Sample {
  double seconds = 0;
  double plan_seconds = 0;  // of a plan that reads the data, and so is made anew with every call
  double noise = 0.03;      // one sigma of ln(seconds)
  int looks = 1;            // at it, seconds apart
  double total() const { return seconds + plan_seconds; }
};

struct Point {
  Args args{};  // dims and scalars
  DType dtype = DType::f32;
  std::vector<Sample> samples;  // by candidate
};

struct OpPoints {
  std::vector<Point> points;
  Grade grade = Grade::b;  // inside the range of the points; beyond it one less
  double sigma = 0;        // doubt beside what the points show: of a prior
};

/// Those that have a time of this candidate.
std::vector<std::size_t> points_of(const OpPoints& points, std::size_t candidate);

/// Seconds that one more copy of so many bytes adds to a call.
struct LinkCurve {
  std::vector<std::pair<double, double>> knots;  // bytes, seconds; ascending
  /// Linear in bytes between knots, beyond the last at its last rate. 0 bytes: nothing.
  double seconds(double bytes) const;
};

struct Costs {
  LinkCurve pinned_in, pinned_out, pageable_in, pageable_out;
  // One copy back, the wait for it, and what reading it cold adds; what each further one adds. May be empty.
  LinkCurve pinned_home, pageable_home, pinned_more, pageable_more;
  double launch_sync_seconds = 0;  // of an empty call to the device
  double fork_seconds = 0;         // of handing nothing to all threads and taking it back
  // The same for some counts of threads, as the table's times have it, and in this process. May be empty.
  ForkTimes forks, now_forks;
  double fork_of(int threads) const;
  double fork_change(int threads) const { return executor::fork_change(forks, now_forks, threads); }
  double in_seconds(const Traffic& traffic) const;
  double out_seconds(const Traffic& traffic) const;
  double home_seconds(const Traffic& traffic) const;
};

struct TableData {
  Costs costs;
  std::vector<OpPoints> ops;  // by position in ops::all()
  std::string description;
};

/// Fits every op. `device`: backend whose kernels are candidates too; null: none. `clock`: what a fork takes now is looked
/// at when the first op is asked for, if the table says what it took; null: it is not.
std::shared_ptr<const Table> make_table(const backends::Backend* device, TableData data,
                                        const measure::Clock* clock = nullptr);

/// Seconds of copies as one that also waited took them, less the wait.
LinkCurve link_curve(std::span<const std::pair<std::int64_t, Quantity>> table, double wait_seconds);

}  // namespace fulcrum::executor
