// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// A trace with its records joined: which call caused which op, what each thread and each stream did in order, and the
// spans in which everything was seen. What the timeline and the simulation both start from.
#pragma once

#include <fulcrum/core/trace.h>

namespace fulcrum::trace {

struct Span {
  std::int64_t begin_ns = 0, end_ns = 0;
  std::int64_t length_ns() const { return end_ns - begin_ns; }
  bool holds(std::int64_t at_ns) const { return at_ns >= begin_ns && at_ns < end_ns; }
};

/// The part of sorted spans that lies in [begin, end).
std::vector<Span> clipped(const std::vector<Span>&, std::int64_t begin_ns, std::int64_t end_ns);
double seconds_of(const std::vector<Span>&);

struct Joined {
  explicit Joined(const GpuTrace&);

  const GpuTrace& trace;

  // Numbers of ops in order of their begin, only those with usable stamps that began inside a span.
  std::vector<std::uint32_t> ops;
  // For every op of the trace; call: outermost call that caused it, -1: not seen; window: number of its span, -1: none.
  std::vector<std::int64_t> call_of;
  std::vector<std::int64_t> begin_ns, end_ns;  // begin clamped to the beginning of the call
  std::vector<std::int32_t> window_of;
  std::vector<int> device_of;
  std::vector<std::uint32_t> process_of;
  std::int64_t skewed = 0, worst_skew_ns = 0;
  std::int64_t cut = 0;  // ops whose end is of a later window: left out

  // Calls: a call inside another on its thread belongs to that one. `meaning` is the call that says what an outermost
  // one does: itself, or the one inside a call of kind other.
  std::vector<std::uint32_t> outer, meaning;
  std::vector<std::vector<std::uint32_t>> thread_calls;  // outermost ones in order
  std::vector<std::uint32_t> calls;                      // all outermost ones in order of their begin
  std::vector<std::int32_t> call_window;
  std::vector<std::uint32_t> call_process;
  std::vector<std::uint32_t> first_op,
      ops_of_calls;  // ops of call c: ops_of_calls[first_op[c] .. first_op[c + 1])

  std::vector<std::vector<std::uint32_t>> stream_ops;  // in order of begin

  std::vector<Span> windows;  // in which everything was seen, cut to the ops in them
  bool partial = false;       // there are off-windows

  /// By call: it began with as much queued as CUDA takes, so that it may have waited for room.
  std::vector<bool> full_queue() const;
  const GpuTrace::Op& op(std::uint32_t number) const { return trace.ops[number]; }
  /// The call that says what call number `c` (an outermost one) does.
  const GpuTrace::Call& call(std::int64_t c) const { return trace.calls[meaning[std::size_t(c)]]; }
  std::span<const std::uint32_t> caused_by(std::uint32_t call) const {
    return {ops_of_calls.data() + first_op[call], ops_of_calls.data() + first_op[call + 1]};
  }

 private:
  std::vector<double> usual_ns_;  // duration by shape
  void join_calls();
  void find_usual();
  void join_ops();
  void find_windows();
  bool ends_in_another_window(std::uint32_t op) const;
  void trim_windows();
};

}  // namespace fulcrum::trace
