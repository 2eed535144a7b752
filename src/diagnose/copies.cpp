// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Which copy belongs to which rule.
#include "diagnose/copies.h"

#include <algorithm>
#include <tuple>

namespace fulcrum::diagnose {
namespace {

constexpr double kAssumedPinned = 50e9;       // bytes a second: PCIe 5 x16
constexpr double kAssumedSmallCopy = 6.5e-6;  // seconds, from the call to the end
constexpr double kAssumedFloor = 1.5e-6;      // seconds on the GPU
constexpr std::size_t kLeastBatch = 4;        // copies in a row
constexpr double kLeastSmallCopiesAStep = 8;
constexpr double kHostWrites = 20e9;               // bytes a second that one thread of a host writes at most
constexpr double kPageBytes = 4096, kTouchNs = 1;  // and a value in each page takes it that long, at least

// Host time outside the API between two calls; negative: another thread made the calls.
double host_ns_between(const Joined& joined, std::int64_t from_call, std::int64_t to_call) {
  if (from_call < 0 || to_call < 0) return -1;
  const auto& calls = joined.trace.calls;
  const auto thread = calls[std::size_t(from_call)].thread;
  if (calls[std::size_t(to_call)].thread != thread) return -1;
  const auto& own = joined.calls_of_thread[thread];
  double host_ns = 0;
  for (std::size_t i = joined.place[std::size_t(from_call)] + 1; i <= joined.place[std::size_t(to_call)];
       ++i) {
    host_ns += double(joined.host_ns_before(own[i]));
  }
  return host_ns;
}

// Uploads to one place that look repeated.
struct Place {
  std::vector<std::uint32_t> ops;
  double bytes = 0,
         touched = 0;  // of one; of all, those before which the host could have put a value into each page
  std::vector<double> unwritten;  // shares of the bytes that it had no time to write
};
using Places = std::map<std::pair<std::uint32_t, std::uint64_t>, Place>;

// Every step has some input. Where nothing else is uploaded, and the host had the time to change something here and
// there, the smallest upload is that input and no repetition, unless it is larger than what steps are given.
void drop_input(Places& places) {
  constexpr double kLargestInput = 4 << 20;
  auto least = places.end();
  for (auto at = places.begin(); at != places.end(); ++at) {
    const bool could =
        2 * at->second.touched > double(at->second.ops.size()) && at->second.bytes < kLargestInput;
    if (could && (least == places.end() || at->second.bytes < least->second.bytes)) least = at;
  }
  if (least != places.end()) places.erase(least);
}

bool any_other_upload(const Facts& facts, const Places& places) {
  std::set<std::uint32_t> known;
  for (const auto& [where, place] : places) known.insert(place.ops.begin(), place.ops.end());
  std::size_t others = 0;
  for (std::uint32_t i = 0; i < facts.trace.ops.size(); ++i) {
    const GpuTrace::Op& op = facts.trace.ops[i];
    others += op.kind == GpuOpKind::copy && op.copy == CopyKind::h2d && is_steady(facts, op.begin_ns) &&
              known.count(i) == 0;
  }
  return double(others) >= 0.5 * steps(facts);
}

bool is_repetition(const Facts& facts, const Repeats& repeats) {
  double uploads = 0, downloads = 0;
  for (const GpuTrace::Op& op : facts.trace.ops) {
    if (op.kind != GpuOpKind::copy || !is_steady(facts, op.begin_ns)) continue;
    if (op.copy == CopyKind::h2d) uploads += double(op.bytes);
    if (op.copy == CopyKind::d2h) downloads += double(op.bytes);
  }
  return downloads > 0.1 * uploads && repeats.bytes > 0.9 * uploads;
}

bool is_small(const Facts& facts, const GpuTrace::Op& op, double limit) {
  return op.kind == GpuOpKind::copy && crosses(op) && op.graph == 0 && double(op.bytes) < limit &&
         is_steady(facts, op.begin_ns);
}

}  // namespace

bool is_pageable(const GpuTrace::Op& op) {
  return op.from == MemoryKind::pageable || op.to == MemoryKind::pageable;
}
bool crosses(const GpuTrace::Op& op) { return op.copy == CopyKind::h2d || op.copy == CopyKind::d2h; }

bool is_readback(const GpuTrace::Op& op) { return op.copy == CopyKind::d2h && op.bytes <= 64 << 10; }

double pinned_seconds_a_byte(const Facts& facts) {
  if (facts.timeline.pinned_bytes.seconds > 0) return facts.timeline.pinned_bytes.seconds;
  if (facts.roofs.pinned_bytes_per_second > 0) return 1 / facts.roofs.pinned_bytes_per_second;
  return 1 / kAssumedPinned;
}

double copy_floor_seconds(const Facts& facts) {
  std::int64_t least_ns = 0;
  for (const GpuTrace::Op& op : facts.trace.ops) {
    if (op.kind != GpuOpKind::copy || !crosses(op) || op.duration_ns() <= 0) continue;
    least_ns = least_ns == 0 ? op.duration_ns() : std::min(least_ns, op.duration_ns());
  }
  return least_ns == 0 ? kAssumedFloor : std::min(kAssumedFloor, double(least_ns) * 1e-9);
}

double small_bytes(const Facts& facts) {
  const double fixed =
      facts.timeline.small_copy.seconds > 0 ? facts.timeline.small_copy.seconds : kAssumedSmallCopy;
  return fixed / pinned_seconds_a_byte(facts);
}

std::vector<Batch> small_batches(const Facts& facts, const Joined& joined) {
  const double limit = small_bytes(facts);
  const auto& ops = facts.trace.ops;
  std::vector<Batch> batches;
  double copies = 0;
  for (const auto& own : joined.calls_of_thread) {
    Batch batch;
    const auto end_batch = [&] {
      if (batch.ops.size() >= kLeastBatch) {
        copies += double(batch.ops.size());
        batches.push_back(std::move(batch));
      }
      batch = {};
    };
    for (const std::uint32_t call : own) {
      const std::int64_t op = joined.op_of_call[call];
      if (op < 0) continue;  // waits and records between copies are part of the pattern
      const GpuTrace::Op& copy = ops[std::size_t(op)];
      if (!is_small(facts, copy, limit)) {
        end_batch();
        continue;
      }
      if (!batch.ops.empty()) {
        const GpuTrace::Op& first = ops[batch.ops.front()];
        if (first.copy != copy.copy || first.stream != copy.stream) end_batch();
      }
      batch.ops.push_back(std::uint32_t(op));
      batch.bytes += double(copy.bytes);
    }
    end_batch();
  }
  if (copies < kLeastSmallCopiesAStep * steps(facts)) return {};
  return batches;
}

Repeats repeated_uploads(const Facts& facts, const Joined& joined) {
  std::set<std::uint32_t> batched;
  for (const Batch& batch : small_batches(facts, joined)) batched.insert(batch.ops.begin(), batch.ops.end());
  // What each place on the device was last filled from.
  struct Last {
    std::uint64_t from = 0, hash = 0;
    std::int64_t bytes = 0, op = -1;
  };
  std::map<std::pair<std::uint32_t, std::uint64_t>, Last> places;
  std::map<std::pair<std::uint32_t, std::uint64_t>, std::int64_t>
      downloaded;  // the last op that wrote to the host there
  Repeats hashed, guessed;
  hashed.hashed = hashed.sure = true;
  Places unchanged;  // as far as the host had no time to change them
  std::map<std::pair<std::uint32_t, std::uint64_t>, std::size_t> uploads;
  const auto add = [](Repeats& into, std::uint32_t number, const GpuTrace::Op& op) {
    into.ops.push_back(number);
    into.seconds += double(op.duration_ns()) * 1e-9;
    into.bytes += double(op.bytes);
  };
  for (std::uint32_t i = 0; i < facts.trace.ops.size(); ++i) {
    const GpuTrace::Op& op = facts.trace.ops[i];
    if (op.kind == GpuOpKind::kernel || op.kind == GpuOpKind::graph || op.to_address == 0) continue;
    const auto process = op.stream < facts.trace.streams.size() ? facts.trace.streams[op.stream].process : 0;
    if (op.copy != CopyKind::h2d || op.graph != 0 || op.from_address == 0) {
      // A memset or a copy on the device writes there; a download changes what uploads from there bring.
      places.erase({process, op.to_address});
      if (op.copy == CopyKind::d2h) downloaded[{process, op.to_address}] = std::int64_t(i);
      continue;
    }
    hashed.addresses_seen = guessed.addresses_seen = true;
    uploads[{process, op.to_address}] += is_steady(facts, op.begin_ns);
    Last& last = places[{process, op.to_address}];
    const auto changed = downloaded.find({process, op.from_address});
    const bool same_place = last.op >= 0 && last.from == op.from_address && last.bytes == op.bytes &&
                            (changed == downloaded.end() || changed->second < last.op);
    if (is_steady(facts, op.begin_ns) && last.op >= 0 && batched.count(i) == 0) {
      if (op.content_hash != 0 && last.hash != 0) {
        if (last.hash == op.content_hash && last.bytes == op.bytes) add(hashed, i, op);
      } else if (same_place) {
        const double ns =
            host_ns_between(joined, joined.call_of_op[std::size_t(last.op)], joined.call_of_op[i]);
        const double share = 1 - ns * 1e-9 * kHostWrites / double(op.bytes);
        if (ns >= 0 && share > 0) {
          Place& place = unchanged[{process, op.to_address}];
          place.ops.push_back(i);
          place.bytes = double(op.bytes);
          place.touched += ns >= kTouchNs * double(op.bytes) / kPageBytes;
          place.unwritten.push_back(share);
        }
      }
    }
    last = {op.from_address, op.content_hash, op.bytes, std::int64_t(i)};
  }
  if (!hashed.ops.empty()) return hashed;
  // One of several buffers that comes twice in a row now and then is no habit.
  std::erase_if(unchanged, [&](const auto& at) { return 2 * at.second.ops.size() < uploads[at.first]; });
  if (!any_other_upload(facts, unchanged)) drop_input(unchanged);
  std::vector<double> shares;
  guessed.sure = true;
  for (const auto& [where, place] : unchanged) {
    guessed.sure &= 2 * place.touched < double(place.ops.size());
    for (const std::uint32_t op : place.ops) add(guessed, op, facts.trace.ops[op]);
    shares.insert(shares.end(), place.unwritten.begin(), place.unwritten.end());
  }
  std::sort(guessed.ops.begin(), guessed.ops.end());
  if (!shares.empty()) {  // of most of them: a pause now and then says nothing
    const auto low = shares.begin() + std::ptrdiff_t(shares.size() / 4);
    std::nth_element(shares.begin(), low, shares.end());
    guessed.unwritten = *low;
  }
  if (is_repetition(facts, guessed)) guessed.ops.clear();
  return guessed;
}

}  // namespace fulcrum::diagnose
