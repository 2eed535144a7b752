// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Times in which a device had nothing to do, and what the thread that launched the next op was doing meanwhile.
#include <algorithm>
#include <array>
#include <map>

#include "trace/timeline/parts.h"

namespace fulcrum::trace {
namespace {

constexpr std::int64_t kShortNs =
    10'000;  // a gap of launches one after the other, not of the host's own work
constexpr std::size_t kCauses = std::size_t(GapCause::unknown) + 1;

GapCause cause_of(CallKind kind) {
  switch (kind) {
    case CallKind::device_sync:
    case CallKind::stream_sync:
    case CallKind::event_sync:
    case CallKind::query:
      return GapCause::sync;
    case CallKind::alloc:
    case CallKind::free:
    case CallKind::pool_alloc:
    case CallKind::pool_free:
    case CallKind::host_alloc:
    case CallKind::host_free:
    case CallKind::host_register:
      return GapCause::alloc;
    case CallKind::copy:
    case CallKind::memset:
    case CallKind::prefetch:
      return GapCause::copy;
    case CallKind::module_load:
    case CallKind::graph_instantiate:
      return GapCause::module_load;
    default:
      return GapCause::launch;
  }
}

struct Weights {
  std::array<std::int64_t, kCauses> ns{};
  std::int64_t& operator[](GapCause cause) { return ns[std::size_t(cause)]; }
  std::int64_t of(GapCause cause) const { return ns[std::size_t(cause)]; }
};

class GapReader {
 public:
  GapReader(const Joined& joined, const Timeline& timeline)
      : joined_(joined),
        latency_ns_(std::int64_t((timeline.launch.seconds + timeline.launch_latency.seconds) * 1e9)),
        queue_ns_(std::int64_t(timeline.back_to_back.seconds * 12e9)) {
    for (const auto& overhead : joined.trace.overheads) {
      const bool code =
          overhead.what == "jit" || overhead.what == "module load" || overhead.what == "lazy load";
      if (code) loads_[overhead.thread].push_back({overhead.begin_ns, overhead.end_ns});
    }
    for (auto& [thread, spans] : loads_) {
      std::sort(spans.begin(), spans.end(),
                [](const Span& a, const Span& b) { return a.begin_ns < b.begin_ns; });
    }
  }

  /// Takes out of a gap what tracing took of it; returns how much.
  std::int64_t shorten(Timeline::Gap& gap) const {
    const auto c = joined_.call_of[gap.after];
    if (c < 0) return 0;
    const GpuTrace::Call& call = joined_.trace.calls[std::size_t(c)];
    const auto inside = std::min(call.end_ns, gap.end_ns) - std::max(call.begin_ns, gap.begin_ns);
    const auto ns = std::min(inside, tracing_of_graph_ns(joined_, std::uint32_t(c)));
    if (ns <= 0) return 0;
    gap.begin_ns += std::min(ns, gap.end_ns - gap.begin_ns - 1);
    return ns;
  }

  void explain(Timeline::Gap& gap) const {
    const auto c = joined_.call_of[gap.after];
    if (c < 0) return;
    const GpuTrace::Call& call = joined_.trace.calls[std::size_t(c)];
    const bool first = joined_.caused_by(std::uint32_t(c)).front() == gap.after;
    if (!first) {  // a later node of a graph
      gap.cause = GapCause::queue;
      return;
    }
    if (call.end_ns <= gap.begin_ns) {
      const auto gap_ns = gap.end_ns - gap.begin_ns;
      gap.cause = gap_ns <= queue_ns_                             ? GapCause::queue
                  : gap.end_ns - call.begin_ns <= 2 * latency_ns_ ? GapCause::launch
                                                                  : GapCause::dependency;
      return;
    }
    explain_host(gap, std::uint32_t(c));
  }

 private:
  /// The host came late: what its thread did from the gap's begin until the call.
  void explain_host(Timeline::Gap& gap, std::uint32_t last) const {
    const GpuTrace::Call& launching = joined_.trace.calls[last];
    const auto& list = joined_.thread_calls[launching.thread];
    auto at = std::upper_bound(list.begin(), list.end(), gap.begin_ns, [&](std::int64_t t, std::uint32_t c) {
      return t < joined_.trace.calls[c].begin_ns;
    });
    if (at != list.begin()) --at;  // the one that the thread was in when the gap began
    Weights weights;
    std::int64_t in_calls = 0, longest = 0;
    GapCause drained = GapCause::unknown;  // what the host waited in while the GPU ran dry
    for (; at != list.end() && joined_.trace.calls[*at].begin_ns <= launching.begin_ns; ++at) {
      const GpuTrace::Call& call = joined_.trace.calls[*at];
      // From the call on, what is left until the op begins is its latency.
      const auto end = *at == last ? gap.end_ns : std::min(call.end_ns, gap.end_ns);
      const auto ns = end - std::max(call.begin_ns, gap.begin_ns);
      if (ns <= 0) continue;
      GapCause cause = cause_of(joined_.call(*at).kind);
      if (cause == GapCause::sync && behind_prefetch(list.begin(), at)) cause = GapCause::copy;
      const bool polling =
          joined_.call(*at).kind == CallKind::query;  // the gap may begin between two of them
      if ((call.begin_ns < gap.begin_ns || polling) && cause != GapCause::launch) drained = cause;
      weights[cause] += ns;
      in_calls += ns;
      if (ns > longest) longest = ns, gap.call = *at;
    }
    const auto gap_ns = gap.end_ns - gap.begin_ns;
    weights[GapCause::host] = std::max<std::int64_t>(0, gap_ns - in_calls);
    const auto loaded = loading(launching.thread, gap);
    if (2 * loaded > gap_ns) {
      gap.cause = GapCause::module_load;
      return;
    }
    // Launching the next op would be hidden behind work that is queued: it is the price of having drained.
    if (drained != GapCause::unknown) {
      weights[drained] += weights.of(GapCause::launch);
      weights[GapCause::launch] = 0;
    }
    const bool only_launches = drained == GapCause::unknown && gap_ns <= kShortNs &&
                               weights.of(GapCause::host) + weights.of(GapCause::launch) == gap_ns;
    const auto most = std::max_element(weights.ns.begin(), weights.ns.end());
    gap.cause = only_launches ? GapCause::launch : GapCause(most - weights.ns.begin());
    if (gap.cause == GapCause::host) gap.call = -1;
  }

  /// Pages that move ahead of their use are no ops, but a wait behind the call waits for them.
  bool behind_prefetch(std::vector<std::uint32_t>::const_iterator first,
                       std::vector<std::uint32_t>::const_iterator at) const {
    for (int back = 0; back < 2 && at != first; ++back) {
      if (joined_.call(*--at).kind == CallKind::prefetch) return true;
    }
    return false;
  }

  std::int64_t loading(std::uint32_t thread, const Timeline::Gap& gap) const {
    const auto found = loads_.find(thread);
    if (found == loads_.end()) return 0;
    std::int64_t ns = 0;
    for (const Span& part : clipped(found->second, gap.begin_ns, gap.end_ns)) ns += part.length_ns();
    return ns;
  }
  const Joined& joined_;
  std::int64_t latency_ns_, queue_ns_;
  std::map<std::uint32_t, std::vector<Span>> loads_;
};

}  // namespace

std::int64_t find_gaps(const Joined& joined, Timeline& result) {
  const GapReader reader(joined, result);
  struct Busy {
    std::int64_t until = 0;
    std::uint32_t last = 0;
    std::int32_t window = -1;
  };
  std::map<int, Busy> devices;
  std::int64_t tracing_in_gaps_ns = 0;
  for (const auto i : joined.ops) {
    Busy& busy = devices[joined.device_of[i]];
    const bool same_window = busy.window == joined.window_of[i];
    if (same_window && joined.begin_ns[i] > busy.until) {
      Timeline::Gap gap{.device = joined.device_of[i],
                        .begin_ns = busy.until,
                        .end_ns = joined.begin_ns[i],
                        .before = busy.last,
                        .after = i};
      gap.steady = gap.begin_ns >= result.begin_ns && gap.end_ns <= result.end_ns;
      reader.explain(gap);
      const auto tracing_ns = reader.shorten(gap);
      if (gap.steady && gap.device == joined.device_of[joined.ops.front()]) tracing_in_gaps_ns += tracing_ns;
      result.gaps.push_back(std::move(gap));
    }
    if (!same_window || joined.end_ns[i] >= busy.until) {
      busy = {joined.end_ns[i], i, joined.window_of[i]};
    }
  }
  std::stable_sort(result.gaps.begin(), result.gaps.end(),
                   [](const auto& a, const auto& b) { return a.begin_ns < b.begin_ns; });
  return tracing_in_gaps_ns;
}

}  // namespace fulcrum::trace
