// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// What calls really took, against what the table said: corrections by op, candidate, residency and size class, robust
// to spikes, with drift detection and a credit for exploration. Reading and recording take no lock, and samples that are
// as expected write to no line that other threads read.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "executor/dispatch.h"

namespace fulcrum::executor {

class Tracker {
 public:
  struct Cell {
    int op = 0;  // position in ops::all()
    std::uint8_t candidate = 0, residency = 0, size_class = 0;
    Place place = Place::host;
  };
  explicit Tracker(double explore_credit = 0.01);
  ~Tracker();
  Tracker(const Tracker&) = delete;
  Tracker& operator=(const Tracker&) = delete;

  /// ln(measured / predicted) as learned, 0 where nothing was. Lock-free, no allocation.
  float correction(const Cell& cell) const;
  /// The same of two candidates of one op, for decisions, and e to the power of each: an exponential would be a third of
  /// a decision. All numbers in range.
  struct Corrections {
    float first = 0, second = 0;
    float first_factor = 1, second_factor = 1;
  };
  Corrections corrections(int op, std::uint8_t residency, std::uint8_t size_class, std::uint8_t first,
                          bool first_on_device, std::uint8_t second, bool second_on_device) const;
  /// What is known of a cell, for the full model: samples that threads still gather are not in it.
  struct Known {
    float correction = 0, doubt = 0;
    std::int64_t samples = 0;
  };
  Known known(const Cell& cell) const;
  /// Doubt of that correction beside the table's own: small with many samples, large after a drift alarm.
  float doubt(const Cell& cell) const;
  /// These two ask every thread for what it has gathered first.
  std::int64_t samples(const Cell& cell) const;
  std::array<double, 3> last_seconds(const Cell& cell) const;  // newest first; 0: none

  /// One timed call. `predicted` without correction. Returns true when decisions of this op should be made anew.
  bool record(const Cell& cell, double predicted_seconds, double measured_seconds);
  /// A call that was given up after so long: it would have taken at least that.
  bool record_at_least(const Cell& cell, double predicted_seconds, double waited_seconds);

  /// Whether a call may go to the runner-up to learn, at this extra cost (upper bound); takes it from the credit.
  bool explore(double extra_seconds, double ratio);
  /// The same for a runner-up whose cell is known: one that was better before is judged by its best.
  bool explore(const Cell& runner_up, double extra_seconds, double ratio);
  /// What a trial cost in the end, in place of the upper bound that explore() took; less than nothing counts as nothing.
  void settle(double taken_seconds, double extra_seconds);
  /// All corrections, when other predictions take the place of those they were learned against. The credit stays.
  void forget();
  /// Time spent in calls, on which the credit rests.
  void spend(double seconds);
  double explored_seconds() const;
  /// ln of what all device cells are off by, in common; drift alarms of all cells so far.
  float device_shift() const;
  std::int64_t alarms() const;
  /// Times that samples of the CPU were written into what all threads share: far fewer than samples, once these are as
  /// expected.
  std::int64_t handed_on() const;

 private:
  struct State;
  State& state() const { return *state_.load(std::memory_order_acquire); }
  std::atomic<State*> state_{nullptr};
  std::mutex states_mutex_;
  std::vector<std::unique_ptr<State>> states_;  // all there ever were: readers hold no reference
};

}  // namespace fulcrum::executor
