// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// What handing work to threads and taking it back takes. A virtual machine may do that in 0.15 us in one minute and in 0.5
// in another, as its host places its cores; whoever decides between one thread and two has to know which minute it is.
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
