// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Waits of the host after which the GPU has nothing to do: it ran dry while the host waited for it, and the next launch
// comes only then. Waits that a result on its way to the host stands behind may be needed, so their low end is 0.
#include <fmt/format.h>

#include <algorithm>

#include "diagnose/copies.h"

namespace fulcrum::diagnose {
namespace {

// A step may end with a wait, and results have to be read some time: only what is worth a change is said.
constexpr double kLeastShare = 0.05, kLeastReadShare = 0.1;
constexpr double kLeastUnsure = 0.05;  // the high end, where the low one is next to nothing
constexpr std::size_t kLeastStalls = 3;
constexpr double kLeastAStep = 0.1;  // fewer are around the loop and not in it

// The host reads something after this wait: a copy to it is the last work before, or was issued right before the wait,
// or is the wait itself. Returns the copy; -1: it reads nothing.
std::int64_t read_by(const Facts& facts, const Joined& joined, const Idle& idle) {
  const auto& ops = facts.trace.ops;
  const auto is_read = [&](std::int64_t op) {
    return op >= 0 && std::size_t(op) < ops.size() && ops[std::size_t(op)].kind == GpuOpKind::copy &&
           ops[std::size_t(op)].copy == CopyKind::d2h;
  };
  const std::int64_t own = joined.op_of_call[std::size_t(idle.call)];
  if (is_read(own)) return own;
  const std::int64_t before = joined.before(std::uint32_t(idle.call));
  const std::int64_t issued = before < 0 ? -1 : joined.op_of_call[std::size_t(before)];
  return is_read(issued) ? issued : is_read(idle.gap->before) ? std::int64_t(idle.gap->before) : -1;
}

// Waits; and copies that are waits: of pinned memory but synchronous, or of a few bytes that the host wants to see.
// Large ones of pageable memory have a rule.
bool is_stall(const Facts& facts, const Joined& joined, const Idle& idle) {
  if (idle.call < 0) return false;
  if (idle.owner == Owner::sync) return true;
  const std::int64_t op = joined.op_of_call[std::size_t(idle.call)];
  if (idle.owner != Owner::copy || op < 0) return false;
  const GpuTrace::Op& copy = facts.trace.ops[std::size_t(op)];
  return copy.kind == GpuOpKind::copy && (is_pageable(copy) ? is_readback(copy) : !copy.async);
}

std::string_view name_of(CallKind kind) {
  return kind == CallKind::device_sync   ? "cudaDeviceSynchronize"
         : kind == CallKind::stream_sync ? "cudaStreamSynchronize"
         : kind == CallKind::event_sync  ? "cudaEventSynchronize"
         : kind == CallKind::query       ? "polling"
                                         : "cudaMemcpy";
}

struct Stalls {
  Change change;
  double seconds = 0, drain_seconds = 0;  // all of the gaps; and after the wait had returned
  double waits = 0;
  std::map<CallKind, int> kinds;
  std::vector<std::uint32_t> ops, calls;
};

Stalls stalls_of(const Facts& facts, const Joined& joined, std::span<const Idle> idle, bool reading) {
  Stalls stalls;
  std::set<std::int64_t> batched;  // of these, small_copies says that they are too many
  for (const Batch& batch : small_batches(facts, joined)) batched.insert(batch.ops.begin(), batch.ops.end());
  for (const Idle& i : idle) {
    if (!is_stall(facts, joined, i) || batched.count(joined.op_of_call[std::size_t(i.call)]) != 0) continue;
    const std::int64_t read = read_by(facts, joined, i);
    if ((read >= 0) != reading) continue;
    const auto call = std::uint32_t(i.call);
    const GpuTrace::Call& wait = facts.trace.calls[call];
    stalls.seconds += double(i.lost_ns) * 1e-9;
    const auto returned_ns = std::clamp(wait.end_ns, i.gap->begin_ns, i.gap->end_ns);
    stalls.drain_seconds += double(std::min(i.lost_ns, i.gap->end_ns - returned_ns)) * 1e-9;
    if (!stalls.change.no_wait.insert(call).second) continue;  // the same wait once more
    stalls.waits += 1;
    ++stalls.kinds[joined.kind[call]];
    // Read every so many steps, a few bytes do not count either.
    if (read >= 0 && is_readback(facts.trace.ops[std::size_t(read)])) {
      if (stalls.change.gone.insert(std::uint32_t(read)).second) {
        stalls.seconds += double(facts.trace.ops[std::size_t(read)].duration_ns()) * 1e-9 +
                          facts.timeline.back_to_back.seconds;
      }
    }
    if (joined.op_of_call[call] < 0) stalls.change.call_ns[call] = 0;
    stalls.ops.push_back(i.gap->after);
    stalls.calls.push_back(call);
  }
  return stalls;
}

Finding finding_of(const Facts& facts, Stalls stalls, bool reading) {
  // The wait returns late as well as the launch comes late; only the second is sure to go.
  // Simulations leave out what tracing adds to calls, which is known within a factor of three: none of it here.
  const double traced = stalls.waits * facts.timeline.tracing_per_launch.seconds;
  const double high = std::min(stalls.seconds, saved_seconds(facts, stalls.change) + traced);
  const double low = reading ? 0 : std::min(high, stalls.drain_seconds);
  const auto kind = std::max_element(stalls.kinds.begin(), stalls.kinds.end(),
                                     [](const auto& a, const auto& b) { return a.second < b.second; });
  Finding finding;
  finding.subject = reading ? "results read back" : "waits of the host";
  finding.grade = Evidence::measured;
  finding.claim = reading ? fmt::format("Reading results back leaves the GPU idle {} of the time",
                                        percent(stalls.seconds / facts.timeline.seconds))
                          : fmt::format("Waits of the host leave the GPU idle {} of the time",
                                        percent(stalls.seconds / facts.timeline.seconds));
  finding.evidence.push_back(fmt::format("{}, mostly {}; from each to the next op the GPU idles {}",
                                         count_text(facts, stalls.waits, "waits"), name_of(kind->first),
                                         human_seconds(stalls.seconds / stalls.waits)));
  finding.evidence.push_back(
      fmt::format("of that, {} after the wait had returned: the next launch was not queued yet",
                  human_seconds(stalls.drain_seconds / stalls.waits)));
  finding.next_step =
      reading ? "read results a step later, or only every few steps, so that the next step is queued before "
                "the host waits; in PyTorch .item(), .cpu() and printing a tensor read"
              : "leave out waits that no result is read after: a stream keeps its order without them";
  finding.verify = verify_by_difference();
  finding.ops = some(stalls.ops);
  finding.calls = some(stalls.calls);
  add_gain(finding, range(facts, low, high, stalls.waits, std::move(stalls.change)));
  return finding;
}

Looked look(const Facts& facts) {
  if (auto missing = needs_simulation(facts, "sync_stall")) return {{}, std::move(missing)};
  const Joined joined(facts);
  const std::vector<Idle> idle = idle_times(facts, joined);
  Looked looked;
  for (const bool reading : {false, true}) {
    Stalls stalls = stalls_of(facts, joined, idle, reading);
    if (has_steps(facts) && stalls.waits < kLeastAStep * steps(facts)) continue;
    if (stalls.calls.size() < kLeastStalls ||
        stalls.seconds < (reading ? kLeastReadShare : kLeastShare) * facts.timeline.seconds)
      continue;
    Finding finding = finding_of(facts, std::move(stalls), reading);
    if (finding.saved_low < facts.threshold && finding.saved_high < kLeastUnsure) continue;
    looked.findings.push_back(std::move(finding));
  }
  return looked;
}

}  // namespace

Rule sync_stall() {
  return Rule{.id = "sync_stall",
              .looks_for = "waits of the host after which the GPU has nothing queued",
              .needs = "API records",
              .look = look};
}

}  // namespace fulcrum::diagnose
