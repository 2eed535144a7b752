// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Many copies in a row that are too small for their fixed cost: one of all their bytes would do. Simulated with each
// row as its first copy, as long as all bytes take, and the others gone.
#include <fmt/format.h>

#include <algorithm>

#include "diagnose/copies.h"

namespace fulcrum::diagnose {
namespace {

constexpr double kPackBytesASecond = 5e9;  // the low end: the host gathers what lies scattered

Looked look(const Facts& facts) {
  if (auto missing = needs_simulation(facts, "small_copies")) return {{}, std::move(missing)};
  const Joined joined(facts);
  const std::vector<Batch> batches = small_batches(facts, joined);
  if (batches.empty()) return {};
  Change change;
  const double floor = copy_floor_seconds(facts), a_byte = pinned_seconds_a_byte(facts);
  double copies = 0, bytes = 0, seconds = 0;
  std::vector<std::uint32_t> ops;
  for (const Batch& batch : batches) {
    copies += double(batch.ops.size());
    bytes += batch.bytes;
    for (const std::uint32_t op : batch.ops) {
      seconds += double(facts.trace.ops[op].duration_ns()) * 1e-9;
      ops.push_back(op);
      if (op != batch.ops.front()) change.gone.insert(op);
    }
    change.op_ns[batch.ops.front()] = std::int64_t((floor + a_byte * batch.bytes) * 1e9);
  }
  const double all = facts.timeline.seconds;
  const double high = saved_seconds(facts, change);
  if (high < facts.threshold * all) return {};
  // Between small copies the GPU pauses when they are traced, and hardly when they are not.
  const double pauses =
      std::min(0.5 * all, (copies - double(batches.size())) * facts.timeline.back_to_back.seconds);
  const double low = std::max(0.0, high - pauses - bytes / kPackBytesASecond) * all / (all - pauses);

  Finding finding;
  finding.subject = "copies";
  finding.grade = Evidence::measured;
  finding.claim = fmt::format("{} of {} each cost their fixed price {}", count_text(facts, copies, "copies"),
                              human_bytes(bytes / copies), every_step(facts));
  finding.evidence.push_back(fmt::format(
      "{} follow each other with nothing between; {} on the GPU, of which their bytes need {}",
      count_text(facts, copies, "copies"), time_text(facts, seconds), time_text(facts, bytes * a_byte)));
  finding.evidence.push_back(fmt::format("{} would do", count_text(facts, double(batches.size()), "copies")));
  finding.next_step = "put what is copied together side by side and copy it at once";
  finding.verify = verify_by_difference();
  finding.ops = some(ops);
  add_gain(finding, range(facts, low, high, 0, std::move(change)));
  return {{std::move(finding)}, {}};
}

}  // namespace

Rule small_copies() {
  return Rule{.id = "small_copies",
              .looks_for = "many copies in a row that are too small for their fixed cost",
              .needs = "API records",
              .look = look};
}

}  // namespace fulcrum::diagnose
