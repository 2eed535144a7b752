// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// What handing work to threads and taking it back takes. On a virtual machine that may change for minutes, whatever it does
// itself; whoever decides between one thread and two has to know.
#pragma once

#include <fulcrum/measure.h>

#include <utility>
#include <vector>

namespace fulcrum::executor {

/// Seconds by number of threads, ascending.
using ForkTimes = std::vector<std::pair<int, double>>;

/// Of nothing, to 2, 4, .. all threads, many times a round. Empty while other jobs keep the threads busy.
ForkTimes measure_forks(const measure::Clock& clock, int rounds);

/// Between two numbers of threads on the line; beyond the last as for it. 0 for one thread, and if nothing is known.
double fork_seconds(const ForkTimes& times, int threads);

/// Both together, the less or the greater of both where they know the same number of threads.
ForkTimes least_of(const ForkTimes& a, const ForkTimes& b);
ForkTimes most_of(const ForkTimes& a, const ForkTimes& b);

/// What a fork takes longer now than it ever did between `least` and `most`; less than 0: shorter. 0 where nobody looked,
/// or where it is hardly out of that range.
double fork_change(const ForkTimes& least, const ForkTimes& most, const ForkTimes& now, int threads);

}  // namespace fulcrum::executor
