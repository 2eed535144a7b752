// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Gives every gap the one rule that it belongs to.
#include "diagnose/idle.h"

#include <algorithm>

namespace fulcrum::diagnose {
namespace {

// Time of a span with pages on their way or a kernel stalled for them, in order of begin.
std::int64_t moved_ns(const std::vector<const GpuTrace::Fault*>& faults, std::int64_t begin_ns,
                      std::int64_t end_ns) {
  // Faults are short: what began a second before the span does not reach into it.
  constexpr std::int64_t kLongestNs = 1'000'000'000;
  // Between two pages that the host fetches back it is inside the kernel's fault handler.
  constexpr std::int64_t kHandlerNs = 200'000;
  auto at = std::lower_bound(faults.begin(), faults.end(), begin_ns - kLongestNs,
                             [](const GpuTrace::Fault* f, std::int64_t ns) { return f->begin_ns < ns; });
  std::int64_t sum = 0, reach = begin_ns;
  for (; at != faults.end() && (*at)->begin_ns < end_ns; ++at) {
    const auto from = (*at)->begin_ns - reach < kHandlerNs ? reach : (*at)->begin_ns;
    const auto to = std::min(end_ns, (*at)->end_ns);
    if (to > from) sum += to - from, reach = to;
  }
  return sum;
}

// The wait, allocation or copy that the host was in during the gap, or right before the launch that ended it.
std::int64_t blamed(const Facts& facts, const Joined& joined, const Timeline::Gap& gap,
                    bool (*is)(CallKind)) {
  const auto& calls = facts.trace.calls;
  const auto fits = [&](std::int64_t call) {
    return call >= 0 && std::size_t(call) < calls.size() && is(joined.kind[std::size_t(call)]);
  };
  if (fits(gap.call)) return gap.call;
  std::int64_t call = gap.after < joined.call_of_op.size() ? joined.call_of_op[gap.after] : -1;
  constexpr int kLookBack = 16;
  for (int i = 0; i < kLookBack && call >= 0; ++i) {
    call = joined.before(std::uint32_t(call));
    if (fits(call)) return calls[std::size_t(call)].end_ns >= gap.begin_ns ? call : -1;
  }
  return -1;
}

// The host came out of a synchronous copy in this gap, which is a wait like any other.
bool after_synchronous_copy(const Facts& facts, const Joined& joined, const Timeline::Gap& gap) {
  std::int64_t call = gap.after < joined.call_of_op.size() ? joined.call_of_op[gap.after] : -1;
  if (call >= 0) call = joined.before(std::uint32_t(call));
  for (; call >= 0; call = joined.before(std::uint32_t(call))) {
    if (facts.trace.calls[std::size_t(call)].end_ns < gap.begin_ns) return false;
    const std::int64_t op = joined.op_of_call[std::size_t(call)];
    if (op >= 0) {
      const GpuTrace::Op& copy = facts.trace.ops[std::size_t(op)];
      return copy.kind == GpuOpKind::copy && !copy.async;
    }
  }
  return false;
}

bool is_wait(CallKind kind) { return is_sync(kind) || kind == CallKind::query; }
bool is_copy(CallKind kind) { return kind == CallKind::copy; }

// A short gap after which came what a graph could hold: launched alone, with no work of the program before it.
bool is_dispatch(const Facts& facts, const Joined& joined, const Timeline::Gap& gap, std::int64_t limit_ns) {
  const auto& ops = facts.trace.ops;
  if (gap.after >= ops.size() || ops[gap.after].graph != 0) return false;
  const std::int64_t call = joined.call_of_op[gap.after];
  if (call < 0 || gap.end_ns - gap.begin_ns >= limit_ns) return false;
  const GpuTrace::Op& op = ops[gap.after];
  if (op.kind == GpuOpKind::copy) {
    return op.async && op.from != MemoryKind::pageable && op.to != MemoryKind::pageable;
  }
  return is_launch(joined.kind[std::size_t(call)]);
}

// The call had returned before the GPU went idle, and yet the op began as soon as a launch reaches the GPU at all: it
// was on its way and not in a queue.
bool arrived_late(const Facts& facts, const Joined& joined, const Timeline::Gap& gap) {
  const std::int64_t call = gap.after < joined.call_of_op.size() ? joined.call_of_op[gap.after] : -1;
  if (call < 0) return false;
  const double way_ns = (facts.timeline.launch.seconds + facts.timeline.launch_latency.seconds) * 1e9;
  return double(gap.end_ns - facts.trace.calls[std::size_t(call)].begin_ns) <= 1.1 * way_ns;
}

// Time of a gap inside allocations and frees of the thread that ended it.
std::int64_t allocating_ns(const Facts& facts, const Joined& joined, const Timeline::Gap& gap) {
  std::int64_t call = gap.after < joined.call_of_op.size() ? joined.call_of_op[gap.after] : -1;
  std::int64_t sum = 0;
  for (; call >= 0; call = joined.before(std::uint32_t(call))) {
    const GpuTrace::Call& c = facts.trace.calls[std::size_t(call)];
    if (c.end_ns <= gap.begin_ns) break;
    if (is_allocation(joined.kind[std::size_t(call)])) {
      sum += std::min(c.end_ns, gap.end_ns) - std::max(c.begin_ns, gap.begin_ns);
    }
  }
  return sum;
}

// The wait went on long after the GPU was done: for something that is no op, as a function of the host or pages.
bool waited_for_more(const GpuTrace::Call& wait, const Timeline::Gap& gap) {
  constexpr std::int64_t kLongestReturnNs = 50'000;
  const std::int64_t late_ns = wait.end_ns - gap.begin_ns;
  return late_ns > kLongestReturnNs && 2 * late_ns > gap.end_ns - gap.begin_ns;
}

// Comparing contents takes the tracer as long as the program would take to write them, around the copy's call.
bool near_hashing(const Facts& facts, const Joined& joined, const Timeline::Gap& gap) {
  std::int64_t call = gap.after < joined.call_of_op.size() ? joined.call_of_op[gap.after] : -1;
  for (int back = 0; back < 4 && call >= 0; ++back, call = joined.before(std::uint32_t(call))) {
    const std::int64_t op = joined.op_of_call[std::size_t(call)];
    if (op >= 0 && facts.trace.ops[std::size_t(op)].content_hash != 0) return true;
  }
  return false;
}

// Without its waits the host would keep up with the GPU, so that a step takes as long as the longer of the two: where
// that is most of the idle time, what the host does after a wait, short of work of its own, would be hidden behind the
// GPU's work, and the wait is to blame for it.
bool runs_ahead(const Facts& facts, const Joined& joined) {
  constexpr double kMostOfIt = 0.6;
  double waited_ns = 0;
  for (const auto& own : joined.calls_of_thread) {
    for (const std::uint32_t number : own) {
      const GpuTrace::Call& call = facts.trace.calls[number];
      if (!is_steady(facts, call.begin_ns) || !is_wait(joined.kind[number])) continue;
      waited_ns += double(std::min(call.end_ns, facts.timeline.end_ns) - call.begin_ns);
    }
  }
  const double all = facts.timeline.seconds, busy = facts.timeline.busy_share() * all;
  const double host = all - waited_ns * 1e-9;
  return all - std::max(host, busy) > kMostOfIt * (all - busy);
}

// Host time after a wait that is still a framework getting to its next launch: a phase of it takes as long as many of
// its launches.
std::int64_t resume_limit_ns(const Facts& facts, const Joined& joined) {
  constexpr double kManyAStep = 16, kLaunches = 25;
  constexpr std::int64_t kShortestNs = 60'000, kLongestNs = 500'000;
  std::vector<std::int64_t> before;
  for (const auto& own : joined.calls_of_thread) {
    for (const std::uint32_t call : own) {
      if (is_launch(joined.kind[call]) && is_steady(facts, facts.trace.calls[call].begin_ns))
        before.push_back(joined.host_ns_before(call));
    }
  }
  if (double(before.size()) < kManyAStep * steps(facts)) return dispatch_limit_ns(facts);
  const auto middle = before.begin() + std::ptrdiff_t(before.size() / 2);
  std::nth_element(before.begin(), middle, before.end());
  return std::clamp(std::int64_t(kLaunches * double(*middle)), kShortestNs, kLongestNs);
}

// Waits of the host, of all its threads: a training loop waits in one and launches in another as well.
struct Waits {
  std::int64_t limit_ns = 0;                                // of host time after them that is theirs; 0: none
  std::vector<std::pair<std::int64_t, std::int64_t>> ends;  // instant and call, in order

  Waits(const Facts& facts, const Joined& joined) {
    if (!runs_ahead(facts, joined)) return;
    limit_ns = resume_limit_ns(facts, joined);
    for (const auto& own : joined.calls_of_thread) {
      for (const std::uint32_t call : own) {
        if (is_wait(joined.kind[call])) ends.emplace_back(facts.trace.calls[call].end_ns, call);
      }
    }
    std::sort(ends.begin(), ends.end());
  }
  // The last one that returned before a gap ended, not longer ago than a step; -1: none.
  std::int64_t before(const Facts& facts, const Timeline::Gap& gap) const {
    const auto at = std::upper_bound(ends.begin(), ends.end(), std::pair(gap.end_ns, INT64_MAX));
    if (at == ends.begin()) return -1;
    const auto step_ns = std::int64_t(facts.timeline.iterations.median_seconds * 1e9);
    return std::prev(at)->first >= gap.begin_ns - step_ns ? std::prev(at)->second : -1;
  }
};

Idle owned(const Facts& facts, const Joined& joined, const Timeline::Gap& gap,
           const std::vector<const GpuTrace::Fault*>& faults, std::int64_t limit_ns, bool prefetches,
           const Waits& waits) {
  Idle idle{.gap = &gap};
  const auto length = gap.end_ns - gap.begin_ns;
  const auto moving = faults.empty() ? 0 : moved_ns(faults, gap.begin_ns, gap.end_ns);
  idle.lost_ns = std::max<std::int64_t>(0, length - std::int64_t(back_to_back_ns(facts)));
  // Pages that the program moves ahead take their time on the host as well.
  if (2 * moving >= length || (prefetches && 8 * moving >= length)) {
    idle.owner = Owner::managed;
    return idle;
  }
  switch (gap.cause) {
    case GapCause::launch:
      idle.owner = is_dispatch(facts, joined, gap, limit_ns) ? Owner::launch : Owner::nobody;
      if (waits.limit_ns > 0 && idle.owner == Owner::launch && (idle.call = waits.before(facts, gap)) >= 0) {
        idle.owner = Owner::sync;
      }
      break;
    case GapCause::host:
      if (near_hashing(facts, joined, gap)) break;
      if (waits.limit_ns > 0 && is_dispatch(facts, joined, gap, waits.limit_ns) &&
          (idle.call = waits.before(facts, gap)) >= 0) {
        idle.owner = Owner::sync;
        break;
      }
      idle.owner = blamed(facts, joined, gap, is_wait) >= 0 || after_synchronous_copy(facts, joined, gap)
                       ? Owner::host
                   : is_dispatch(facts, joined, gap, limit_ns) ? Owner::launch
                   : length >= limit_ns                        ? Owner::host
                                                               : Owner::nobody;
      break;
    case GapCause::sync:
      if (allocating_ns(facts, joined, gap) * 3 > length) {  // it waited, and then memory took its time
        idle.owner = Owner::alloc;
        idle.call = blamed(facts, joined, gap, is_allocation);
        break;
      }
      idle.owner = Owner::sync;
      idle.call = blamed(facts, joined, gap, is_wait);
      if (idle.call >= 0 && waited_for_more(facts.trace.calls[std::size_t(idle.call)], gap))
        idle.owner = Owner::nobody;
      if (idle.call < 0) {  // a synchronous copy waits as well
        idle.call = blamed(facts, joined, gap, is_copy);
        if (idle.call >= 0) idle.owner = Owner::copy;
      }
      break;
    case GapCause::alloc:
      idle.owner = Owner::alloc;
      idle.call = blamed(facts, joined, gap, is_allocation);
      break;
    case GapCause::copy:
      idle.owner = Owner::copy;
      idle.call = blamed(facts, joined, gap, is_copy);
      break;
    case GapCause::queue:
      if (arrived_late(facts, joined, gap) && is_dispatch(facts, joined, gap, limit_ns))
        idle.owner = Owner::launch;
      break;
    case GapCause::dependency:
    case GapCause::module_load:
    case GapCause::unknown:
      break;
  }
  return idle;
}

}  // namespace

bool is_steady(const Facts& facts, std::int64_t at_ns) {
  return at_ns >= facts.timeline.begin_ns && at_ns < facts.timeline.end_ns;
}

int device_of_op(const Facts& facts, const GpuTrace::Op& op) {
  return op.stream < facts.trace.streams.size() ? facts.trace.streams[op.stream].device : 0;
}

double back_to_back_ns(const Facts& facts) { return facts.timeline.back_to_back.seconds * 1e9; }

std::int64_t dispatch_limit_ns(const Facts& facts) {
  constexpr std::int64_t kShortestNs = 20'000, kShortNs = 60'000, kLongestNs = 500'000;
  constexpr double kLaunches = 8;  // that one takes as long as, its dispatch included
  constexpr std::size_t kManyAStep = 16;
  constexpr std::int64_t kUsualOnes = 25;  // a phase of a framework takes as long as so many of its launches
  std::vector<std::int64_t> gaps;
  for (const Timeline::Gap& gap : facts.timeline.gaps) {
    const bool host = gap.cause == GapCause::launch || gap.cause == GapCause::host;
    const auto ns = gap.end_ns - gap.begin_ns;
    if (gap.steady && host && ns < kShortNs && facts.trace.ops[gap.after].graph == 0) gaps.push_back(ns);
  }
  if (double(gaps.size()) < double(kManyAStep) * steps(facts)) {
    return std::clamp(std::int64_t(kLaunches * 1e9 * facts.timeline.launch.seconds), kShortestNs, kShortNs);
  }
  const auto middle = gaps.begin() + std::ptrdiff_t(gaps.size() / 2);
  std::nth_element(gaps.begin(), middle, gaps.end());
  return std::clamp(kUsualOnes * *middle, kShortNs, kLongestNs);
}

std::vector<Idle> idle_times(const Facts& facts, const Joined& joined) {
  std::vector<const GpuTrace::Fault*> faults;
  for (const GpuTrace::Fault& fault : facts.trace.faults) faults.push_back(&fault);
  std::stable_sort(faults.begin(), faults.end(),
                   [](const auto* a, const auto* b) { return a->begin_ns < b->begin_ns; });
  const std::int64_t limit_ns = dispatch_limit_ns(facts);
  const bool prefetches =
      std::find(joined.kind.begin(), joined.kind.end(), CallKind::prefetch) != joined.kind.end();
  const Waits waits(facts, joined);
  std::map<int, std::vector<Idle>> by_device;
  std::map<int, std::int64_t> owned_ns;
  for (const Timeline::Gap& gap : facts.timeline.gaps) {
    if (!gap.steady || !is_steady(facts, gap.begin_ns)) continue;
    const Idle idle = owned(facts, joined, gap, faults, limit_ns, prefetches, waits);
    by_device[gap.device].push_back(idle);
    owned_ns[gap.device] += idle.owner == Owner::nobody ? 0 : idle.lost_ns;
  }
  if (by_device.empty()) return {};
  const auto most = std::max_element(owned_ns.begin(), owned_ns.end(),
                                     [](const auto& a, const auto& b) { return a.second < b.second; });
  std::vector<Idle> result = std::move(by_device[most->first]);
  std::stable_sort(result.begin(), result.end(),
                   [](const Idle& a, const Idle& b) { return a.gap->begin_ns < b.gap->begin_ns; });
  // After a wait the queue is empty: when the first op is over before the second was launched, the second gap is part of
  // the price of the wait.
  const double launch_ns = facts.timeline.launch.seconds * 1e9;
  for (std::size_t i = result.size(); i-- > 1;) {
    const Idle& before = result[i - 1];
    const bool wait =
        before.owner == Owner::sync || before.owner == Owner::alloc || before.owner == Owner::copy;
    const bool refill = result[i].owner == Owner::launch && before.gap->after == result[i].gap->before &&
                        double(result[i].gap->begin_ns - before.gap->end_ns) < launch_ns;
    if (wait && refill) result[i].owner = before.owner, result[i].call = before.call;
  }
  return result;
}

double lost_seconds(std::span<const Idle> idle, Owner owner) {
  double ns = 0;
  for (const Idle& i : idle) ns += i.owner == owner ? double(i.lost_ns) : 0;
  return ns * 1e-9;
}

}  // namespace fulcrum::diagnose
