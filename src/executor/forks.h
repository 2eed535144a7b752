// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// What handing work to threads and taking it back takes. On a virtual machine that may change for minutes, whatever it does
// itself; whoever decides between one thread and two has to know.
#pragma once

#include <fulcrum/measure.h>

#include <cmath>
#include <functional>
#include <span>
#include <utility>
#include <vector>

namespace fulcrum::executor {

/// Seconds by number of threads, ascending.
using ForkTimes = std::vector<std::pair<int, double>>;

/// Of nothing, to 2, 4, .. all threads, many times a round. Empty while other jobs keep the threads busy.
ForkTimes measure_forks(const measure::Clock& clock, int rounds);

/// Between two numbers of threads on the line; beyond the last as for it. 0 for one thread, and if nothing is known.
double fork_seconds(const ForkTimes& times, int threads);

/// What a fork takes longer now than it did; less than 0: shorter. 0 where nobody looked, or where it is hardly another.
double fork_change(const ForkTimes& then, const ForkTimes& now, int threads);

/// Of several looks, by number of threads, what is nearest to the usual. A thread that is held up for a moment is in one of
/// them, a machine that has changed in all.
ForkTimes least_changed(const ForkTimes& usual, std::span<const ForkTimes> looks);

/// Forks beside a calibration: what they take changes from one second to the next, and times of different calls are to be
/// those of one machine.
class ForkWatch {
 public:
  using Look = std::function<ForkTimes(int rounds)>;
  /// All looks are held against what is usual; empty: against the first one. `look`: in place of measure_forks().
  explicit ForkWatch(const measure::Clock& clock, ForkTimes usual = {}, Look look = nullptr);
  const ForkTimes& usual() const { return usual_; }
  /// Another one where the last is some time ago, and long ago against the time that it took.
  void look();
  /// What a call that forks so often took by the last looks, all of them, had forks taken the usual.
  double as_usual(double seconds, double forks, int threads) const;

 private:
  const measure::Clock* clock_;
  Look measure_;
  ForkTimes usual_, now_;
  std::vector<ForkTimes> last_;  // looks
  double next_ = -INFINITY;      // look
};

}  // namespace fulcrum::executor
