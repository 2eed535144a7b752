// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Calls by their threads, with the ops that the timeline has joined to them.
#include <algorithm>

#include "diagnose/idle.h"

namespace fulcrum::diagnose {
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
    : call_of_op(facts.timeline.call_of_op),
      op_of_call(facts.trace.calls.size(), -1),
      kind(facts.trace.calls.size()),
      calls_of_thread(facts.trace.threads.size()),
      place(facts.trace.calls.size(), 0),
      trace(facts.trace) {
  call_of_op.resize(trace.ops.size(), -1);
  for (std::uint32_t i = 0; i < trace.calls.size(); ++i) {
    const GpuTrace::Call& call = trace.calls[i];
    kind[i] = call.kind;
    if (call.thread >= calls_of_thread.size()) calls_of_thread.resize(call.thread + 1);
    auto& own = calls_of_thread[call.thread];
    if (!own.empty() && call.end_ns <= trace.calls[own.back()].end_ns) {
      if (kind[own.back()] == CallKind::other) kind[own.back()] = call.kind;
    } else {
      own.push_back(i);
    }
    place[i] = std::uint32_t(own.size() - 1);
  }
  for (std::uint32_t i = 0; i < trace.ops.size(); ++i) {
    const std::int64_t call = call_of_op[i];
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
