// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Copies from or to memory that is not pinned: the driver copies it once more, and the host waits. Simulated at the
// speed of pinned memory; the low end keeps the wait, the high end is asynchronous. To pin memory takes several times as
// long as to copy it once from where it is, so what a program copies once is a note.
#include <fmt/format.h>

#include <algorithm>

#include "diagnose/copies.h"

namespace fulcrum::diagnose {
namespace {

constexpr double kLeastShare = 0.01;
constexpr double kSlowerPinned = 1.25;  // the low end: a link that others use too
constexpr std::size_t kLeastLoop = 8;   // copies in a run without steps: fewer are no loop

struct Pageable {
  Change pinned, async;
  double seconds = 0, shorter_seconds = 0, bytes = 0;
  std::size_t uploads = 0;
  std::vector<std::uint32_t> ops, calls;
};

std::set<std::uint32_t> owned_elsewhere(const Facts& facts, const Joined& joined) {
  std::set<std::uint32_t> ops;
  for (const Batch& batch : small_batches(facts, joined)) ops.insert(batch.ops.begin(), batch.ops.end());
  const Repeats repeats = repeated_uploads(facts, joined);
  if (repeats.sure) ops.insert(repeats.ops.begin(), repeats.ops.end());
  return ops;
}

Pageable pageable_of(const Facts& facts, const Joined& joined) {
  Pageable found;
  const std::set<std::uint32_t> others = owned_elsewhere(facts, joined);
  const double floor = copy_floor_seconds(facts), a_byte = pinned_seconds_a_byte(facts);
  for (std::uint32_t i = 0; i < facts.trace.ops.size(); ++i) {
    const GpuTrace::Op& op = facts.trace.ops[i];
    if (op.kind != GpuOpKind::copy || !crosses(op) || !is_pageable(op) || !is_steady(facts, op.begin_ns) ||
        is_readback(op) || others.count(i) != 0) {
      continue;
    }
    const auto now_ns = op.duration_ns();
    const auto at_ns = [&](double factor) {
      // Shorter in any case: that tells the simulation that the host no longer copies before or after it.
      return std::min(now_ns - 1, std::int64_t((floor + factor * a_byte * double(op.bytes)) * 1e9));
    };
    found.pinned.op_ns[i] = at_ns(kSlowerPinned);
    found.async.op_ns[i] = at_ns(1);
    found.seconds += double(now_ns) * 1e-9;
    found.shorter_seconds += double(now_ns - at_ns(1)) * 1e-9;
    found.bytes += double(op.bytes);
    found.uploads += op.copy == CopyKind::h2d;
    found.ops.push_back(i);
    const std::int64_t call = joined.call_of_op[i];
    if (call < 0) continue;
    found.calls.push_back(std::uint32_t(call));
    if (op.copy ==
        CopyKind::h2d) {  // a result is read after the copy: the host waits for it one way or the other
      found.async.no_wait.insert(std::uint32_t(call));
      found.async.call_ns[std::uint32_t(call)] = std::int64_t(facts.timeline.launch.seconds * 1e9);
    }
  }
  return found;
}

Looked look(const Facts& facts) {
  if (auto missing = needs_simulation(facts, "pageable_copy")) return {{}, std::move(missing)};
  const Joined joined(facts);
  Pageable found = pageable_of(facts, joined);
  const double all = facts.timeline.seconds;
  if (found.ops.empty()) return {};
  const std::vector<Idle> idle = idle_times(facts, joined);
  const std::set<std::uint32_t> own(found.calls.begin(), found.calls.end());
  double lost = 0;  // while the host is in these copies
  for (const Idle& i : idle) {
    const bool mine = i.owner == Owner::copy && i.call >= 0 && own.count(std::uint32_t(i.call)) != 0;
    lost += mine ? double(i.lost_ns) * 1e-9 : 0;
  }
  // Of small ones the GPU sees little: the host copies them first and the GPU waits.
  const double taken = found.seconds + lost;
  if (taken < kLeastShare * all) return {};
  const double high = std::min(found.shorter_seconds + lost, saved_seconds(facts, found.async));
  const double low = std::min(high, saved_seconds(facts, found.pinned));
  if (high < facts.threshold * all) return {};

  const std::size_t downloads = found.ops.size() - found.uploads;
  Finding finding;
  finding.subject = "copies";
  finding.grade = Evidence::measured;
  finding.claim = fmt::format("{} from pageable memory take {} of the time and block the host",
                              downloads == 0       ? "Uploads"
                              : found.uploads == 0 ? "Downloads"
                                                   : "Copies",
                              percent(std::min(1.0, taken / all)));
  if (found.uploads == 0)
    finding.claim = fmt::format("Downloads to pageable memory take {} of the time and block the host",
                                percent(std::min(1.0, taken / all)));
  finding.evidence.push_back(fmt::format(
      "{} with {} at {:.1f} GB/s; pinned memory reaches {:.0f} GB/s ({})",
      count_text(facts, double(found.ops.size()), "copies"), human_bytes(found.bytes / steps(facts)),
      found.bytes / found.seconds * 1e-9, 1e-9 / pinned_seconds_a_byte(facts),
      facts.timeline.pinned_bytes.from.empty() ? "assumed" : facts.timeline.pinned_bytes.from));
  if (lost > 0)
    finding.evidence.push_back(
        fmt::format("the GPU idles {} more while the host is in them", time_text(facts, lost)));
  finding.ops = some(found.ops);
  finding.calls = some(found.calls);
  if (!has_steps(facts) && found.ops.size() < kLeastLoop) {
    finding.evidence.emplace_back("they are no loop, and to pin memory takes longer than to copy it once");
    finding.next_step = "leave them, or copy in pieces through one pinned buffer that is used again";
    return {{std::move(finding)}, {}};
  }
  finding.next_step =
      "pin the host's buffers once (cudaMallocHost, cudaHostRegister; pin_memory=True), reuse them and copy "
      "asynchronously; pinning itself takes milliseconds";
  finding.verify = verify_by_difference();
  add_gain(finding, range(facts, low, high, 0, std::move(found.async)));
  return {{std::move(finding)}, {}};
}

}  // namespace

Rule pageable_copy() {
  return Rule{.id = "pageable_copy",
              .looks_for = "copies from or to memory that is not pinned",
              .needs = "API records",
              .look = look};
}

}  // namespace fulcrum::diagnose
