// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// What the host did: calls one behind the other with its own work between, and in calls how much was the host's own
// time and how much was waiting for the GPU. Waiting is simulated anew; own time and work stay as they were seen.
#include <algorithm>
#include <map>

#include "trace/simulate/links.h"
#include "trace/timeline/parts.h"

namespace fulcrum::trace {
namespace {

bool is_sync(CallKind kind) {
  return kind == CallKind::device_sync || kind == CallKind::stream_sync || kind == CallKind::event_sync;
}

class HostLinker {
 public:
  HostLinker(const Joined& joined, const Scale& scale, const Issue& issue, const CallTimes& times,
             std::vector<Link>& links, std::vector<std::int64_t>& own_ns, std::vector<std::int64_t>& trims)
      : joined_(joined),
        scale_(scale),
        issue_(issue),
        times_(times),
        links_(links),
        own_ns_(own_ns),
        trims_(trims) {
    by_end_.resize(joined.trace.processes.size());
    for (const auto i : joined.ops) {
      if (joined.process_of[i] < by_end_.size()) by_end_[joined.process_of[i]].push_back(i);
    }
    for (auto& ops : by_end_) {
      std::stable_sort(ops.begin(), ops.end(),
                       [&](std::uint32_t a, std::uint32_t b) { return joined.end_ns[a] < joined.end_ns[b]; });
    }
    own_ns_.assign(joined.trace.calls.size(), 0);
    elastic_.assign(joined.trace.calls.size(), false);
    before_.assign(joined.trace.calls.size(), -1);
    full_ = joined.full_queue();
    for (const auto c : joined.calls) own_ns_[c] = length_ns(c);
  }

  void run() {
    calibrate();
    link_queries();
    for (const auto c : joined_.calls) {
      if (joined_.call_window[c] < 0) continue;
      link_wait(c);
      links_.push_back({NodeKind::call_end, NodeKind::call_begin, EdgeKind::own, c, c, own_ns_[c]});
    }
    for (const auto& calls : joined_.thread_calls) {
      for (std::size_t k = 1; k < calls.size(); ++k) before_[calls[k]] = calls[k - 1];
    }
    find_trims();
    for (std::uint32_t p = 0; p < joined_.trace.processes.size(); ++p) take_turns(p);
    for (const auto c : joined_.calls) link_program(c);
  }

 private:
  std::int64_t length_ns(std::uint32_t c) const { return times_.end_ns[c] - times_.begin_ns[c]; }

  /// The end of the last op that a sync waited for; ops that ended long after it returned were none.
  std::int64_t target_end(std::uint32_t c) const {
    const auto found = issue_.sync_targets.find(c);
    std::int64_t end = INT64_MIN;
    if (found == issue_.sync_targets.end()) return end;
    for (const auto i : found->second) {
      if (waited_for(c, i)) end = std::max(end, joined_.end_ns[i]);
    }
    return end;
  }
  bool waited_for(std::uint32_t c, std::uint32_t i) const {
    return joined_.window_of[i] == joined_.call_window[c] &&
           joined_.end_ns[i] <= times_.end_ns[c] + scale_.unit_ns / 4;
  }
  bool waits_for_own_op(std::uint32_t c, std::uint32_t i) const {
    const GpuTrace::Op& op = joined_.op(i);
    if (op.kind == GpuOpKind::kernel || op.graph || joined_.window_of[i] != joined_.call_window[c])
      return false;
    const bool blocking = !op.async || op.from == MemoryKind::pageable || op.to == MemoryKind::pageable;
    // A pageable copy may return when its last piece has left, a little before the copy ends.
    const auto early =
        blocking ? std::max(scale_.unit_ns, (joined_.end_ns[i] - joined_.begin_ns[i]) / 10) : 0;
    return times_.end_ns[c] >= joined_.end_ns[i] - early && times_.end_ns[c] > joined_.begin_ns[i];
  }

  /// What calls of each kind take when they have nothing to wait for.
  void calibrate() {
    std::map<CallKind, std::vector<double>> seen;
    std::vector<double> returns;
    for (const auto c : joined_.calls) {
      const CallKind kind = joined_.call(c).kind;
      if (is_sync(kind)) {
        const auto end = target_end(c);
        if (end > times_.begin_ns[c]) {
          returns.push_back(std::max<double>(0, double(times_.end_ns[c] - end)));
          continue;
        }
      }
      const auto ops = joined_.caused_by(c);
      if (std::any_of(ops.begin(), ops.end(), [&](std::uint32_t i) { return waits_for_own_op(c, i); }))
        continue;
      if (!full_[c]) seen[kind].push_back(double(length_ns(c)));
    }
    for (auto& [kind, values] : seen) usual_ns_[kind] = std::int64_t(quantile(values, 0.5));
    // A GPU that was always busy shows no sync on an idle one.
    const auto usual = [&](CallKind kind, double units) {
      const auto limit = std::int64_t(units * double(scale_.unit_ns));
      auto [at, fresh] = usual_ns_.try_emplace(kind, limit);
      if (!fresh && is_sync(kind)) at->second = std::min(at->second, 2 * limit);
    };
    for (const auto kind : {CallKind::device_sync, CallKind::stream_sync, CallKind::event_sync})
      usual(kind, 0.3);
    for (const auto kind : {CallKind::launch, CallKind::copy, CallKind::memset}) usual(kind, 0.6);
    return_ns_ = returns.empty() ? scale_.unit_ns * 6 / 10 : std::int64_t(quantile(returns, 0.5));
  }

  void link_wait(std::uint32_t c) {
    if (elastic_[c]) return;
    if (is_sync(joined_.call(c).kind)) {
      link_sync(c);
    } else if (!link_own_ops(c)) {
      link_implicit(c);
    }
  }

  void wait_for(std::uint32_t c, std::uint32_t i, std::int64_t lag_ns) {
    links_.push_back({NodeKind::call_end, NodeKind::op, EdgeKind::wait, c, i, lag_ns});
  }

  void link_sync(std::uint32_t c) {
    const auto end = target_end(c);
    const bool waited = end > times_.begin_ns[c];
    if (end == INT64_MIN) {  // which op it is about is not known: one that ended right before it returned
      if (length_ns(c) > 2 * usual_ns_[joined_.call(c).kind]) wait_for_latest(c, times_.begin_ns[c]);
      return;
    }
    if (waited) own_ns_[c] = std::min(own_ns_[c], usual_ns_[joined_.call(c).kind]);
    const auto late = times_.end_ns[c] - end;
    // The host's return is as late as it was seen to be, also behind another op than the one that ended last.
    const auto lag = waited ? late : std::min(return_ns_, late);
    for (const auto i : issue_.sync_targets.at(c)) {
      if (waited_for(c, i)) wait_for(c, i, std::min(lag, times_.end_ns[c] - joined_.end_ns[i]));
    }
  }

  /// Synchronous copies: the call returns when its own op has ended.
  bool link_own_ops(std::uint32_t c) {
    bool waits = false;
    std::int64_t beside_ns = length_ns(c);  // of the call: what it did beside waiting for its op
    for (const auto i : joined_.caused_by(c)) {
      if (!waits_for_own_op(c, i)) continue;
      wait_for(c, i, times_.end_ns[c] - joined_.end_ns[i]);
      waits = true;
      beside_ns -=
          std::min(times_.end_ns[c], joined_.end_ns[i]) - std::max(times_.begin_ns[c], joined_.begin_ns[i]);
    }
    if (waits) {
      const std::int64_t usual_ns = usual_ns_[joined_.call(c).kind];
      own_ns_[c] = std::min({own_ns_[c], usual_ns, std::max<std::int64_t>(0, beside_ns)});
    }
    return waits;
  }

  /// cudaFree waits for the device; launches wait when too much is queued; others sometimes do.
  void link_implicit(std::uint32_t c) {
    const CallKind kind = joined_.call(c).kind;
    const bool drains = kind == CallKind::free || kind == CallKind::host_free;
    if (!drains && !full_[c] && length_ns(c) < 3 * usual_ns_[kind] + 3 * scale_.unit_ns) return;
    const auto i = latest_end(c, times_.end_ns[c]);
    if (i < 0) return;
    const auto end = joined_.end_ns[std::size_t(i)];
    if (end <= times_.begin_ns[c]) return;
    if (drains ? runs_beyond(c) : times_.end_ns[c] - end > 2 * scale_.unit_ns) return;
    // Its own work comes after the wait.
    own_ns_[c] = std::min(own_ns_[c], drains ? times_.end_ns[c] - end : usual_ns_[kind]);
    wait_for(c, std::uint32_t(i), times_.end_ns[c] - end);
  }

  /// Something that was issued before the call still ran when it returned.
  bool runs_beyond(std::uint32_t c) const {
    const auto& ops = by_end_[joined_.call_process[c]];
    auto at = after(ops, times_.end_ns[c]);
    for (std::size_t k = 0; k < 8 && at != ops.end(); ++k, ++at) {
      if (issued_before(c, *at)) return true;
    }
    return false;
  }

  void wait_for_latest(std::uint32_t c, std::int64_t since_ns) {
    const auto i = latest_end(c, times_.end_ns[c]);
    if (i < 0 || joined_.end_ns[std::size_t(i)] <= since_ns) return;
    const auto late = times_.end_ns[c] - joined_.end_ns[std::size_t(i)];
    if (late > 5 * scale_.unit_ns) return;
    own_ns_[c] = std::min(own_ns_[c], usual_ns_[joined_.call(c).kind]);
    wait_for(c, std::uint32_t(i), late);
  }

  bool issued_before(std::uint32_t c, std::uint32_t i) const {
    const auto call = joined_.call_of[i];
    return joined_.window_of[i] == joined_.call_window[c] &&
           (call < 0 ? joined_.begin_ns[i] : times_.begin_ns[std::size_t(call)]) < times_.begin_ns[c];
  }
  std::vector<std::uint32_t>::const_iterator after(const std::vector<std::uint32_t>& ops,
                                                   std::int64_t at_ns) const {
    return std::upper_bound(ops.begin(), ops.end(), at_ns,
                            [&](std::int64_t t, std::uint32_t op) { return t < joined_.end_ns[op]; });
  }
  /// The op of the call's process, issued before it, that ended last at or before an instant; -1: none.
  std::int64_t latest_end(std::uint32_t c, std::int64_t at_ns) const {
    if (joined_.call_process[c] >= by_end_.size()) return -1;
    const auto& ops = by_end_[joined_.call_process[c]];
    auto at = after(ops, at_ns);
    for (std::size_t k = 0; k < 8 && at != ops.begin(); ++k) {
      if (issued_before(c, *--at)) return *at;
    }
    return -1;
  }

  /// Loops of queries end when the work is done: with less work they are shorter, not fewer by number.
  void link_queries() {
    for (const auto& calls : joined_.thread_calls) {
      for (std::size_t k = 0; k < calls.size();) {
        std::size_t end = k;
        while (end < calls.size() && joined_.call(calls[end]).kind == CallKind::query &&
               joined_.call_window[calls[end]] == joined_.call_window[calls[k]]) {
          ++end;
        }
        if (end - k >= 3) loop_of_queries(calls, k, end - 1);
        k = std::max(end, k + 1);
      }
    }
  }
  void loop_of_queries(const std::vector<std::uint32_t>& calls, std::size_t first, std::size_t last) {
    const auto c = calls[last];
    const auto i = latest_end(calls[first], times_.end_ns[c]);
    if (i < 0 || joined_.end_ns[std::size_t(i)] <= times_.begin_ns[calls[first]]) return;
    wait_for(c, std::uint32_t(i), times_.end_ns[c] - joined_.end_ns[std::size_t(i)]);
    for (std::size_t k = first + 1; k <= last; ++k) {
      elastic_[calls[k]] = true;
      own_ns_[calls[k]] = 0;
    }
  }

  /// A pool gives memory back when the host waits: a sync behind a pool_free that returns late did that.
  void find_trims() {
    trims_.assign(joined_.trace.calls.size(), -1);
    for (const auto& calls : joined_.thread_calls) {
      std::int64_t freed = -1;
      for (const auto c : calls) {
        if (joined_.call(c).kind == CallKind::pool_free) freed = c;
        if (!is_sync(joined_.call(c).kind)) continue;
        trims_[c] = freed;
        freed = -1;
      }
    }
  }

  /// Threads that take turns (a training loop and the thread of its backward pass): the silence of one is the work of
  /// the other, so the first call of a turn waits for the last call of the turn before.
  void take_turns(std::uint32_t process) {
    std::vector<std::uint32_t> calls;
    for (const auto c : joined_.calls) {
      if (joined_.call_process[c] == process && joined_.call_window[c] >= 0) calls.push_back(c);
    }
    std::size_t turn = 0;  // its first call
    for (std::size_t k = 1; k < calls.size(); ++k) {
      const auto x = calls[k - 1], y = calls[k];
      if (joined_.trace.calls[x].thread == joined_.trace.calls[y].thread) continue;
      const bool long_turn = k - turn >= 3;
      const auto since = times_.begin_ns[y] - times_.end_ns[x];
      const auto silent =
          before_[y] < 0 ? INT64_MAX : times_.begin_ns[y] - times_.end_ns[std::size_t(before_[y])];
      const bool own_work =
          before_[y] >= 0 && times_.end_ns[std::size_t(before_[y])] > times_.begin_ns[calls[turn]];
      if (long_turn && since >= 0 && !own_work && silent > 2 * since) before_[y] = x;
      turn = k;
    }
  }

  void link_program(std::uint32_t c) {
    const auto before = before_[c];
    if (joined_.call_window[c] < 0 || before < 0) return;
    if (joined_.call_window[std::size_t(before)] != joined_.call_window[c]) return;
    const auto lag = elastic_[c] ? 0 : times_.begin_ns[c] - times_.end_ns[std::size_t(before)];
    links_.push_back(
        {NodeKind::call_begin, NodeKind::call_end, EdgeKind::program, c, std::uint32_t(before), lag});
  }

  const Joined& joined_;
  const Scale& scale_;
  const Issue& issue_;
  const CallTimes& times_;
  std::vector<Link>& links_;
  std::vector<std::int64_t>& own_ns_;
  std::vector<std::int64_t>& trims_;
  std::map<CallKind, std::int64_t> usual_ns_;
  std::int64_t return_ns_ = 0;
  std::vector<std::vector<std::uint32_t>> by_end_;  // ops of each process
  std::vector<bool> elastic_, full_;
  std::vector<std::int64_t> before_;  // call that comes before on the host
};

}  // namespace

CallTimes::CallTimes(const Joined& joined)
    : begin_ns(joined.trace.calls.size()), end_ns(joined.trace.calls.size()) {
  for (const auto& calls : joined.thread_calls) {
    std::int64_t now = INT64_MIN;
    for (const auto c : calls) {
      begin_ns[c] = std::max(joined.trace.calls[c].begin_ns, now);
      end_ns[c] = now = std::max(joined.trace.calls[c].end_ns, begin_ns[c] + 1);
    }
  }
}

void link_host(const Joined& joined, const Scale& scale, const Issue& issue, const CallTimes& times,
               std::vector<Link>& links, std::vector<std::int64_t>& own_ns,
               std::vector<std::int64_t>& trims) {
  HostLinker(joined, scale, issue, times, links, own_ns, trims).run();
}

}  // namespace fulcrum::trace
