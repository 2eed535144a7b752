// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Ops joined to the calls that caused them, and calls to their threads.
#include <algorithm>
#include <unordered_map>

#include "diagnose/idle.h"

namespace fulcrum::diagnose {
namespace {

std::uint64_t key(std::uint32_t process, std::uint32_t correlation) {
  return (std::uint64_t{process} << 32) | correlation;
}

// Calls with one correlation, in order, and where the next op of each kind looks.
struct Same {
  std::vector<std::uint32_t> calls;
  std::size_t next[3] = {};
};

// What ops come from: 0 launches, 1 copies, 2 memsets; 3 nothing.
std::size_t makes(CallKind kind) {
  return kind == CallKind::copy                                       ? 1
         : kind == CallKind::memset                                   ? 2
         : kind == CallKind::launch || kind == CallKind::graph_launch ? 0
                                                                      : 3;
}

std::int64_t next_of(const Joined& joined, Same& same, const GpuTrace::Op& op) {
  if (same.calls.size() == 1) return same.calls.front();
  const std::size_t made = op.kind == GpuOpKind::copy ? 1 : op.kind == GpuOpKind::memset ? 2 : 0;
  std::size_t& next = same.next[made];
  const auto& calls = joined.trace.calls;
  while (next < same.calls.size() && makes(joined.kind[same.calls[next]]) != made) ++next;
  if (next >= same.calls.size() || calls[same.calls[next]].begin_ns > op.begin_ns) return -1;
  if (op.graph == 0) return same.calls[next++];
  for (std::size_t later = next + 1; later < same.calls.size();
       ++later) {  // many ops of the last launch before them
    if (makes(joined.kind[same.calls[later]]) != made) continue;
    if (calls[same.calls[later]].begin_ns > op.begin_ns) break;
    next = later;
  }
  return same.calls[next];
}

}  // namespace

bool is_sync(CallKind kind) {
  return kind == CallKind::device_sync || kind == CallKind::stream_sync || kind == CallKind::event_sync;
}
bool is_allocation(CallKind kind) {
  switch (kind) {
    case CallKind::alloc:
    case CallKind::free:
    case CallKind::pool_alloc:
    case CallKind::pool_free:
    case CallKind::host_alloc:
    case CallKind::host_free:
    case CallKind::host_register:
      return true;
    default:
      return false;
  }
}
bool is_launch(CallKind kind) { return kind == CallKind::launch || kind == CallKind::memset; }

Joined::Joined(const Facts& facts)
    : call_of_op(facts.trace.ops.size(), -1),
      op_of_call(facts.trace.calls.size(), -1),
      kind(facts.trace.calls.size()),
      calls_of_thread(facts.trace.threads.size()),
      place(facts.trace.calls.size(), 0),
      trace(facts.trace) {
  // Outermost calls by correlation, and by what they make. A tracer that was switched off and on again may give one
  // number to many calls; their ops come in the same order.
  std::unordered_map<std::uint64_t, Same> by_key;
  by_key.reserve(trace.calls.size());
  for (std::uint32_t i = 0; i < trace.calls.size(); ++i) {
    const GpuTrace::Call& call = trace.calls[i];
    kind[i] = call.kind;
    if (call.thread >= calls_of_thread.size()) calls_of_thread.resize(call.thread + 1);
    auto& own = calls_of_thread[call.thread];
    std::uint32_t outer = i;
    if (!own.empty() && call.end_ns <= trace.calls[own.back()].end_ns) {
      outer = own.back();
      if (kind[outer] == CallKind::other) kind[outer] = call.kind;
    } else {
      own.push_back(i);
    }
    place[i] = std::uint32_t(own.size() - 1);
    const auto process = call.thread < trace.threads.size() ? trace.threads[call.thread].process : 0;
    if (call.correlation == 0) continue;
    auto& calls = by_key[key(process, call.correlation)].calls;
    if (calls.empty() || calls.back() != outer) calls.push_back(outer);
  }
  for (std::uint32_t i = 0; i < trace.ops.size(); ++i) {
    const GpuTrace::Op& op = trace.ops[i];
    const auto process = op.stream < trace.streams.size() ? trace.streams[op.stream].process : 0;
    const auto found = by_key.find(key(process, op.correlation));
    if (found == by_key.end()) continue;
    const std::int64_t call = next_of(*this, found->second, op);
    call_of_op[i] = call;
    if (call >= 0 && op_of_call[std::size_t(call)] < 0) op_of_call[std::size_t(call)] = i;
  }
}

bool Joined::outermost(std::uint32_t call) const {
  return calls_of_thread[trace.calls[call].thread][place[call]] == call;
}

std::int64_t Joined::before(std::uint32_t call) const {
  const auto at = place[call];
  return at == 0 ? -1 : std::int64_t(calls_of_thread[trace.calls[call].thread][at - 1]);
}

std::int64_t Joined::host_ns_before(std::uint32_t call) const {
  const std::int64_t previous = before(call);
  if (previous < 0) return 0;
  return std::max<std::int64_t>(0, trace.calls[call].begin_ns - trace.calls[std::size_t(previous)].end_ns);
}

}  // namespace fulcrum::diagnose
