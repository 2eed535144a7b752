// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// The parts that a timeline is made of, each from the joined trace and what the parts before it filled in.
#pragma once

#include <fulcrum/trace.h>

#include "trace/timeline/joined.h"

namespace fulcrum::trace {

/// The value that a share q of the values lies below; reorders them. 0 without values.
double quantile(std::vector<double>& values, double q);

/// What calls, gaps and copies cost here, or where nothing shows it in the machine's profile, or what is usual.
void observe_costs(const Joined&, const Costs&, Timeline&);

/// What tracing added to the launch of a graph: each of its nodes gets a record, which takes longer than launching it.
std::int64_t tracing_of_graph_ns(const Joined&, std::uint32_t call);

/// The loop of the program, and from it the part of the run that everything is about.
void find_iterations(const Joined&, Timeline&);
/// Where the launches of the main process repeat; false: they do not.
bool find_repeats(const Joined&, Timeline::Iterations&);
/// The process whose ops take most of the GPU's time; the loop is looked for in it.
std::uint32_t main_process(const Joined&);
/// The stream of it that has most of the work: what runs beside it (the next batch's upload) says little about steps.
std::uint32_t main_stream(const Joined&, std::uint32_t process);

/// Union of intervals and exposed copies a device, over these spans.
void measure_devices(const Joined&, const std::vector<Span>&, Timeline&);

/// Without the time that tracing itself took in them, which is returned: nanoseconds inside the timeline.
std::int64_t find_gaps(const Joined&, Timeline&);
/// What the host did in gaps, from the CPU samples of the same run.
void name_functions(const Joined&, Timeline&);

void group_kernels(const Joined&, Timeline&);
void join_counters(const Joined&, Timeline&);

}  // namespace fulcrum::trace
