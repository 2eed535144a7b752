// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// What launching, queueing and copying cost on this machine, seen in the trace itself wherever it shows: robust
// quantiles of ops in the right situation, so that a few odd ones do not matter.
#include <algorithm>
#include <unordered_map>

#include "trace/timeline/parts.h"

namespace fulcrum::trace {
namespace {

constexpr std::size_t kEnough = 5;  // observations that make a figure of this trace
// Usual figures of a current data centre GPU, in seconds: used with neither a trace nor a profile that shows them.
// What is longer has another reason: a kernel waits for pages to move, a clock to rise, an event of another device.
constexpr double kLongestLatency = 30e-6, kLongestBackToBack = 5e-6;
constexpr double kBackToBack = 1.0e-6, kLaunch = 2.2e-6, kLatency = 1.8e-6, kSmallCopy = 6e-6;

/// An op that was queued behind another: for how long when that ended, and how long after that it began.
struct Queued {
  double lead = 0, gap = 0;
  bool kernels = false;
};

struct Observations {
  std::vector<Queued> queued;
  std::vector<double> launch, latency, small_copy, pinned;
};

bool pinned_copy(const GpuTrace::Op& op) {
  return op.kind == GpuOpKind::copy && (op.from == MemoryKind::pinned || op.to == MemoryKind::pinned) &&
         (op.copy == CopyKind::h2d || op.copy == CopyKind::d2h);
}

/// Gaps between ops of a stream of which the second was queued before the first ended, with how long before, and
/// nothing else ran between them: another stream's op is something to wait for.
void look_at_queue(const Joined& joined, std::uint32_t before, std::uint32_t after, Observations& seen) {
  const auto call = joined.call_of[after];
  if (call < 0 || joined.op(before).stream != joined.op(after).stream) return;
  if (joined.window_of[before] != joined.window_of[after]) return;
  if (joined.trace.calls[std::size_t(call)].end_ns > joined.end_ns[before]) return;
  const auto gap = joined.begin_ns[after] - joined.end_ns[before];
  if (gap < 0) return;
  const GpuTrace::Op &a = joined.op(before), &b = joined.op(after);
  if (a.graph && b.graph) return;  // nodes follow each other far more closely
  const auto lead = joined.end_ns[before] - joined.trace.calls[std::size_t(call)].end_ns;
  seen.queued.push_back(
      {double(lead) * 1e-9, double(gap) * 1e-9, a.kind == GpuOpKind::kernel && b.kind == GpuOpKind::kernel});
}

void look_at_ops(const Joined& joined, Observations& seen) {
  struct Busy {
    std::int64_t until = 0, last = -1;
  };
  std::unordered_map<int, Busy> devices;
  for (const auto i : joined.ops) {
    const GpuTrace::Op& op = joined.op(i);
    auto& [until, last] = devices[joined.device_of[i]];
    if (last >= 0) look_at_queue(joined, std::uint32_t(last), i, seen);
    if (const auto c = joined.call_of[i]; c >= 0) {
      const GpuTrace::Call& call = joined.trace.calls[std::size_t(c)];
      const bool idle = until <= call.begin_ns;
      if (idle && op.kind == GpuOpKind::kernel && !op.graph) {
        seen.latency.push_back(std::max<double>(0, double(joined.begin_ns[i] - call.end_ns)) * 1e-9);
      }
      if (idle && pinned_copy(op) && op.async && op.bytes <= 4096) {
        seen.small_copy.push_back(double(joined.end_ns[i] - call.begin_ns) * 1e-9);
      }
    }
    if (pinned_copy(op) && op.bytes >= 1 << 20) {
      seen.pinned.push_back(double(op.duration_ns()) * 1e-9 / double(op.bytes));
    }
    if (joined.end_ns[i] >= until) until = joined.end_ns[i], last = i;
  }
}

Timeline::Cost choose(std::vector<double>& seen, double q, double known, const std::string& from,
                      double usual) {
  if (seen.size() >= kEnough) {
    if (const double value = quantile(seen, q); value > 0) return {value, "this trace"};
  }
  if (known > 0) return {known, from.empty() ? "machine profile" : from};
  return {usual, "assumed"};
}

/// Gaps behind which the next op had long arrived: what was launched a moment before was still on its way. Between
/// kernels where there are enough; a few among very many are odd ones.
std::vector<double> gaps_of_queue(const Observations& seen, double latency, std::size_t ops) {
  std::vector<double> kernels, any;
  for (const Queued& queued : seen.queued) {
    if (queued.lead >= 1.5 * latency) (queued.kernels ? kernels : any).push_back(queued.gap);
  }
  std::vector<double>& best = kernels.size() >= kEnough ? kernels : any;
  if (best.size() * 200 < ops) best.clear();
  return best;
}

double usual_pinned_rate(const GpuTrace& trace) {
  const int generation = trace.devices.empty() ? 9 : trace.devices.front().compute_major;
  return generation >= 9 ? 50e9 : generation == 8 ? 24e9 : 12e9;  // PCIe 5, 4, 3
}

/// Time of windows in which a process had ops: what records cost is known as a share of that.
double working_seconds(const Joined& joined, std::uint32_t process) {
  constexpr std::int64_t kStretchNs = 20'000'000;  // as the collector looks at it
  double ns = 0;
  std::int64_t stretch = -1;
  std::int32_t window = -1;
  for (const auto i : joined.ops) {
    if (joined.process_of[i] != process || joined.window_of[i] < 0) continue;
    const Span& span = joined.windows[std::size_t(joined.window_of[i])];
    const std::int64_t number = (joined.begin_ns[i] - span.begin_ns) / kStretchNs;
    if (joined.window_of[i] == window && number == stretch) continue;
    window = joined.window_of[i];
    stretch = number;
    ns += double(std::clamp<std::int64_t>(span.length_ns() - number * kStretchNs, 0, kStretchNs));
  }
  return ns * 1e-9;
}

/// Seconds that records took inside windows; -1: not known. Outside them launches were counted, which is part of what
/// the process lost and of no record's price.
double recording_seconds(const Joined& joined) {
  double seconds = -1;
  for (std::uint32_t p = 0; p < joined.trace.processes.size(); ++p) {
    const GpuTrace::Process& process = joined.trace.processes[p];
    const double share = process.full_overhead_share;
    const double of_windows = share > 0 ? working_seconds(joined, p) * share / (1 + share) : -1;
    if (of_windows > 0 || process.overhead_seconds >= 0)
      seconds = std::max(seconds, 0.0) + (of_windows > 0 ? of_windows : process.overhead_seconds);
  }
  return seconds;
}

/// What tracing adds to a launch: the record of the kernel and that of the call, which takes half as long.
Timeline::Cost tracing_cost(const Joined& joined, const Costs& known) {
  if (known.record_seconds > 0) return {known.record_seconds + known.call_record_seconds, known.from};
  const double overhead = recording_seconds(joined);
  const auto launches =
      std::count_if(joined.trace.calls.begin(), joined.trace.calls.end(), [](const auto& call) {
        return call.kind == CallKind::launch || call.kind == CallKind::copy || call.kind == CallKind::memset;
      });
  const double records =
      std::max(double(joined.trace.ops.size()), double(launches)) + 0.5 * double(joined.trace.calls.size());
  if (overhead < 0 || records == 0) return {0, "not known"};
  return {1.5 * overhead / records, "this trace"};
}

}  // namespace

double quantile(std::vector<double>& values, double q) {
  if (values.empty()) return 0;
  const auto at = values.begin() + std::ptrdiff_t(q * double(values.size() - 1) + 0.5);
  std::nth_element(values.begin(), at, values.end());
  return *at;
}

std::int64_t tracing_of_graph_ns(const Joined& joined, std::uint32_t c) {
  // Untraced, launching a graph takes a few microseconds whatever its size.
  constexpr std::int64_t kCallNs = 6000, kNodeNs = 50, kMostNodeNs = 2000;
  if (joined.call(c).kind != CallKind::graph_launch) return 0;
  const auto nodes = std::int64_t(joined.caused_by(c).size());
  const auto length = joined.trace.calls[c].end_ns - joined.trace.calls[c].begin_ns;
  return std::clamp<std::int64_t>(length - kCallNs - kNodeNs * nodes, 0, kMostNodeNs * nodes);
}

void observe_costs(const Joined& joined, const Costs& known, Timeline& result) {
  Observations seen;
  look_at_ops(joined, seen);
  const std::vector<bool> full = joined.full_queue();
  for (const auto c : joined.calls) {
    const GpuTrace::Call& call = joined.trace.calls[c];
    if (call.kind == CallKind::launch && !full[c])
      seen.launch.push_back(double(call.end_ns - call.begin_ns) * 1e-9);
  }
  std::erase_if(seen.latency, [](double seconds) { return seconds > kLongestLatency; });
  result.launch = choose(seen.launch, 0.5, known.launch_seconds, known.from, kLaunch);
  result.launch_latency = choose(seen.latency, 0.5, known.launch_latency_seconds, known.from, kLatency);
  std::vector<double> between = gaps_of_queue(seen, result.launch_latency.seconds, joined.ops.size());
  std::erase_if(between, [](double seconds) { return seconds > kLongestBackToBack; });
  result.back_to_back = choose(between, 0.2, known.back_to_back_seconds, known.from, kBackToBack);
  result.small_copy = choose(seen.small_copy, 0.5, known.small_copy_seconds, known.from, kSmallCopy);
  const double known_pinned = known.pinned_bytes_per_second > 0 ? 1 / known.pinned_bytes_per_second : 0;
  result.pinned_bytes =
      choose(seen.pinned, 0.5, known_pinned, known.from, 1 / usual_pinned_rate(joined.trace));

  result.tracing_per_launch = tracing_cost(joined, known);
}

}  // namespace fulcrum::trace
