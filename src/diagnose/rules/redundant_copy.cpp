// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Uploads of what the device has already: the last upload to that place came from the same place, and either the
// contents were compared or the host had no time to write them anew. Simulated with these copies gone.
#include <fmt/format.h>

#include <algorithm>

#include "diagnose/copies.h"

namespace fulcrum::diagnose {
namespace {

constexpr double kLeastShare = 0.01;
constexpr double kLeastGuess = 0.05;  // without comparing contents only what is worth a look is said
constexpr std::size_t kLeastCopies = 3;

Change without_hashing(const Facts& facts, const Joined& joined) {
  constexpr std::int64_t kUsualNs = 500;
  Change change;
  for (std::uint32_t i = 0; i < facts.trace.ops.size(); ++i) {
    const std::int64_t call = joined.call_of_op[i];
    if (facts.trace.ops[i].content_hash == 0 || call < 0) continue;
    const auto& own = joined.calls_of_thread[facts.trace.calls[std::size_t(call)].thread];
    const std::size_t place = joined.place[std::size_t(call)];
    for (std::size_t at = place; at <= place + 1 && at < own.size(); ++at) {
      if (joined.host_ns_before(own[at]) > kUsualNs) change.host_before_ns[own[at]] = kUsualNs;
    }
  }
  return change;
}

Looked look(const Facts& facts) {
  if (auto missing = needs_simulation(facts, "redundant_copy")) return {{}, std::move(missing)};
  const Joined joined(facts);
  const Repeats repeats = repeated_uploads(facts, joined);
  const bool any_upload =
      std::any_of(facts.trace.ops.begin(), facts.trace.ops.end(), [&](const GpuTrace::Op& op) {
        return op.kind == GpuOpKind::copy && op.copy == CopyKind::h2d && is_steady(facts, op.begin_ns);
      });
  if (any_upload && !repeats.addresses_seen) {
    return {
        {},
        not_checked("redundant_copy", "the trace has no addresses of copies", "trace with fulcrum itself")};
  }
  const double all = facts.timeline.seconds;
  if (repeats.ops.size() < kLeastCopies || repeats.seconds < kLeastShare * all) return {};
  // Comparing contents takes the host time of its own around each copy, which no other run spends.
  Change change = without_hashing(facts, joined);
  const double hashing = change.host_before_ns.empty() ? 0 : saved_seconds(facts, change);
  change.gone.insert(repeats.ops.begin(), repeats.ops.end());
  const double all_traced = facts.timeline.seconds - hashing;
  const double high = (saved_seconds(facts, change) - hashing) * all / std::max(1e-9, all_traced);
  if (high < (repeats.hashed ? facts.threshold : kLeastGuess) * all) return {};

  // What the host could not write in the time between is the same for certain.
  const double low = repeats.hashed ? high : high * repeats.unwritten;
  const GpuTrace::Op& op = facts.trace.ops[repeats.ops.front()];
  Finding finding;
  finding.subject = "copies";
  finding.grade = repeats.hashed ? Evidence::measured : Evidence::bounded;
  finding.claim = fmt::format("The same {} are uploaded again {}",
                              human_bytes(repeats.bytes / double(repeats.ops.size())), every_step(facts));
  finding.evidence.push_back(fmt::format("{} from {:#x} to {:#x}, {} on the GPU",
                                         count_text(facts, double(repeats.ops.size()), "copies"),
                                         op.from_address, op.to_address, time_text(facts, repeats.seconds)));
  finding.evidence.push_back(
      repeats.hashed ? "their contents are equal; needed only if a kernel changes them on the device"
                     : "the host had no time to write them anew between two of them; needed if it or a "
                       "kernel changes part of "
                       "them (--hash compares)");
  finding.next_step = "upload it once before the loop, and again only when it changes";
  finding.verify = verify_by_difference();
  finding.ops = some(repeats.ops);
  add_gain(finding, range(facts, low, high, 0, std::move(change)));
  return {{std::move(finding)}, {}};
}

}  // namespace

Rule redundant_copy() {
  return Rule{.id = "redundant_copy",
              .looks_for = "uploads of what the device has already",
              .needs = "addresses of copies",
              .look = look};
}

}  // namespace fulcrum::diagnose
