// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// What the rules about the timeline share: ops joined to the calls that caused them, idle time of the GPU with the one
// rule that each piece of it belongs to, and ranges of gains that know what tracing itself cost. Lost time is never
// claimed twice: a rule of the host gains at most the idle time that it owns.
#pragma once

#include "diagnose/gain.h"

namespace fulcrum::diagnose {

/// A gap before a launch up to which the cost of launching is the likely reason, and not work of the program: a
/// framework takes 5 to 40 us an op, and between its phases a multiple of what it usually takes. Longer is host compute.
std::int64_t dispatch_limit_ns(const Facts&);

bool is_sync(CallKind);
bool is_allocation(CallKind);
bool is_launch(CallKind);

/// The trace joined by correlation and by thread. A call inside another on its thread counts as that one.
struct Joined {
  explicit Joined(const Facts&);

  std::vector<std::int64_t> call_of_op;  // -1: not traced
  std::vector<std::int64_t> op_of_call;  // the first; -1: none
  std::vector<CallKind> kind;            // of a call, or of the one inside a call of kind other
  std::vector<std::vector<std::uint32_t>> calls_of_thread;  // outermost ones, in order
  std::vector<std::uint32_t> place;                         // of a call in its thread
  bool outermost(std::uint32_t call) const;
  /// The call before it on its thread; -1: none.
  std::int64_t before(std::uint32_t call) const;
  /// Host time outside the API right before a call.
  std::int64_t host_ns_before(std::uint32_t call) const;
  /// On the way from the call of `from` to that of `to` on one thread; false when the threads differ.
  template <class Is>
  bool any_between(std::int64_t from_call, std::int64_t to_call, Is is) const;

  const GpuTrace& trace;
};

/// Inside what shares are of.
bool is_steady(const Facts&, std::int64_t at_ns);
int device_of_op(const Facts&, const GpuTrace::Op&);
double back_to_back_ns(const Facts&);

/// Who claims a gap.
enum class Owner : std::uint8_t { nobody, launch, host, sync, alloc, copy, managed };
struct Idle {
  const Timeline::Gap* gap = nullptr;
  Owner owner = Owner::nobody;
  std::int64_t lost_ns = 0;  // of it: without what any two ops have between them
  std::int64_t call = -1;    // that is to blame: the wait, the allocation, the copy; -1: not known
};
/// Gaps of the device that loses the most to its owners, in order of time.
std::vector<Idle> idle_times(const Facts&, const Joined&);
double lost_seconds(std::span<const Idle>, Owner);

/// A gain from seconds, both ends widened by the model's error and by the spread over iterations. Simulations leave out
/// what tracing adds to a call, as far as it is known; the low end leaves it out once more for `traced_calls` calls,
/// half of it: it was seen to be up to three times what calibration says.
Gain range(const Facts&, double low_seconds, double high_seconds, double traced_calls, Change);
/// Seconds that a change saves; 0 without a simulation.
double saved_seconds(const Facts&, const Change&);

/// How a finding is checked after the fix.
std::string verify_by_difference();

// Implementation.

template <class Is>
bool Joined::any_between(std::int64_t from_call, std::int64_t to_call, Is is) const {
  if (from_call < 0 || to_call < 0) return false;
  const auto& calls = trace.calls;
  const auto thread = calls[std::size_t(from_call)].thread;
  if (thread != calls[std::size_t(to_call)].thread || thread >= calls_of_thread.size()) return false;
  const auto& own = calls_of_thread[thread];
  for (std::size_t i = place[std::size_t(from_call)] + 1; i < place[std::size_t(to_call)]; ++i) {
    if (is(calls[own[i]], own[i])) return true;
  }
  return false;
}

}  // namespace fulcrum::diagnose
