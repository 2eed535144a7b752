// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// A trace becomes a timeline: what the run is about, how busy the GPU is, why not, and whether it can be simulated.
#include <fmt/format.h>
#include <fulcrum/trace.h>

#include <algorithm>
#include <cmath>

#include "trace/simulate/graph.h"
#include "trace/timeline/parts.h"

namespace fulcrum::trace {
namespace {

constexpr double kMostModelError = 0.03;
constexpr std::int64_t kLoadingNs = 100'000;  // shorter ones do not matter
constexpr double kLeastJoined = 0.9;          // of the ops, with their calls

/// Whether the run unchanged comes out as it was; without that no gain is worth anything.
void check_simulation(const Joined& joined, Timeline& result) {
  if (joined.ops.empty()) {
    result.why_not = "no GPU operation was traced";
    return;
  }
  if (joined.trace.calls.empty()) {
    result.why_not = "the trace has no calls of the CUDA API: what an operation waited for is not known";
    return;
  }
  const auto with_call = std::count_if(joined.ops.begin(), joined.ops.end(),
                                       [&](std::uint32_t i) { return joined.call_of[i] >= 0; });
  const double share = double(with_call) / double(joined.ops.size());
  if (share < kLeastJoined) {
    result.why_not =
        fmt::format("the calls of {:.0f} % of the GPU operations are missing", 100 * (1 - share));
    return;
  }
  const Graph graph(joined, result);
  const double observed = observed_seconds(graph), simulated = simulate(graph, Change{});
  if (observed <= 0) {
    result.why_not = "no time passed between the first and the last GPU operation";
    return;
  }
  result.model_error = std::abs(simulated - observed) / observed;
  result.simulated = result.model_error <= kMostModelError;
  if (!result.simulated) {
    result.why_not = fmt::format("simulated unchanged, the run takes {:.1f} % {} than it did",
                                 100 * result.model_error, simulated > observed ? "longer" : "less");
  }
}

/// The loop loads code or makes graphs again and again: half of its iterations still do, when half of them are over.
bool loads_in_loop(const Timeline& result) {
  constexpr std::int64_t kLeast = 3;
  const auto count = result.iterations.count();
  if (count < 2 * kLeast) return false;
  const auto half_ns = result.iterations.begins_ns[std::size_t(count / 2)];
  const auto loads = std::count_if(result.gaps.begin(), result.gaps.end(), [&](const Timeline::Gap& gap) {
    return gap.steady && gap.cause == GapCause::module_load && gap.begin_ns >= half_ns;
  });
  return loads >= kLeast && 4 * loads >= count;
}

/// Code that is loaded or compiled in the middle of a run is loaded once: its gaps do not count.
void leave_out_loading(Timeline& result) {
  if (loads_in_loop(result)) return;
  for (auto& gap : result.gaps) {
    const bool counted = gap.steady && gap.device == result.gaps.front().device;
    if (gap.cause != GapCause::module_load || gap.end_ns - gap.begin_ns < kLoadingNs) continue;
    gap.steady = false;
    if (counted) result.seconds -= double(gap.end_ns - gap.begin_ns) * 1e-9;
  }
}

/// Time that only tracing took is not part of the run.
void leave_out_tracing(std::int64_t ns, Timeline& result) {
  if (ns <= 0 || result.seconds <= 0) return;
  const double share = double(ns) * 1e-9 / result.seconds;
  result.seconds *= 1 - share;
  auto& steps = result.iterations;
  for (double* seconds : {&steps.median_seconds, &steps.low_seconds, &steps.high_seconds})
    *seconds *= 1 - share;
  if (share < 0.01) return;
  result.notes.push_back(fmt::format(
      "tracing the nodes of graphs kept the GPU waiting {:.0f} % of the time: left out", 100 * share));
}

void add_notes(const Joined& joined, Timeline& result) {
  if (joined.partial) {
    result.notes.push_back(joined.windows.size() == 1
                               ? "one window was traced; what lies before and behind it is left out"
                               : fmt::format("{} windows were traced; what lies between them is left out",
                                             joined.windows.size()));
  }
  if (joined.cut) {
    result.notes.push_back(fmt::format("{} operations ran while tracing stopped: left out", joined.cut));
  }
  if (result.skewed) {
    result.notes.push_back(
        fmt::format("{} operations began up to {:.1f} us before their call: clocks disagree", result.skewed,
                    double(joined.worst_skew_ns) * 1e-3));
  }
}

}  // namespace

Timeline timeline(const GpuTrace& trace, const Costs& costs) {
  const Joined joined(trace);
  Timeline result;
  result.skewed = joined.skewed;
  result.call_of_op = joined.call_of;
  observe_costs(joined, costs, result);
  find_iterations(joined, result);
  const auto spans = clipped(joined.windows, result.begin_ns, result.end_ns);
  result.seconds = seconds_of(spans);
  measure_devices(joined, spans, result);
  leave_out_tracing(find_gaps(joined, result), result);
  leave_out_loading(result);
  name_functions(joined, result);
  group_kernels(joined, result);
  join_counters(joined, result);
  check_simulation(joined, result);
  add_notes(joined, result);
  return result;
}

}  // namespace fulcrum::trace
