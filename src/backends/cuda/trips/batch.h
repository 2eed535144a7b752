// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Many calls that differ in their pointers alone: what travels for each of them, what for all of them once, and how
// many may be under way. Arithmetic only, like plan.h.
#pragma once

#include "backends/cuda/trips/plan.h"

#include <cstring>

namespace fulcrum::backends::cuda::trips {

struct Batch {
  Cargo like;                                   // the first call: kernel, sizes, and which buffers there are
  std::vector<Buffer> buffers;                  // of all calls, each stretch of memory once
  std::vector<std::vector<std::size_t>> where;  // [call][buffer of `like`]: its place in `buffers`
  std::vector<bool> shared;  // [buffer of `like`]: only read, and the same one in every call

  std::int64_t calls() const { return static_cast<std::int64_t>(where.size()); }
  bool shares() const { return std::find(shared.begin(), shared.end(), true) != shared.end(); }
  /// What a call brings and takes away by itself.
  std::int64_t bytes_each() const {
    std::int64_t sum = 0;
    for (std::size_t i = 0; i < like.buffers.size(); ++i) sum += shared[i] ? 0 : like.buffers[i].bytes;
    return sum;
  }
  std::int64_t shared_bytes() const { return like.bytes() - bytes_each(); }
};

/// What is wrong with taking these for one batch; null: nothing.
inline const char* unlike(const std::vector<Cargo>& calls) {
  const auto same = [](const Buffer& a, const Buffer& b) {
    return a.bytes == b.bytes && a.in == b.in && a.out == b.out && a.slots == b.slots;
  };
  if (calls.empty()) return "a batch needs at least one call";
  const Cargo& first = calls.front();
  for (const Cargo& call : calls) {
    if (call.kernel != first.kernel) return "the calls of a batch are of one kernel";
    if (std::memcmp(call.args.dim, first.args.dim, sizeof first.args.dim) != 0 ||
        std::memcmp(call.args.scalar, first.args.scalar, sizeof first.args.scalar) != 0 ||
        call.args.prepared != first.args.prepared || call.calls != first.calls)
      return "the calls of a batch differ in their pointers alone, and these have other sizes or parameters";
    if (!std::equal(call.buffers.begin(), call.buffers.end(), first.buffers.begin(), first.buffers.end(),
                    same))
      return "the calls of a batch use the same operands in the same way, and these do not";
  }
  return nullptr;
}

/// Takes calls that are not unlike().
inline Batch batch_of(const std::vector<Cargo>& calls) {
  Batch batch{.like = calls.front(), .buffers = {}, .where = {}, .shared = {}};
  std::vector<std::pair<const char*, std::size_t>> known;  // by address
  for (const Cargo& call : calls) {
    for (const Buffer& buffer : call.buffers) known.emplace_back(buffer.host, 0);
  }
  std::sort(known.begin(), known.end());
  known.erase(std::unique(known.begin(), known.end()), known.end());
  for (std::size_t i = 0; i < known.size(); ++i) known[i].second = i;
  batch.buffers.resize(known.size());
  for (const Cargo& call : calls) {
    auto& places = batch.where.emplace_back();
    for (const Buffer& buffer : call.buffers) {
      const auto found = std::lower_bound(known.begin(), known.end(), std::pair(buffer.host, std::size_t{0}),
                                          [](const auto& a, const auto& b) { return a.first < b.first; });
      Buffer& joined = batch.buffers[found->second];
      joined.host = buffer.host;
      joined.bytes = std::max(joined.bytes, buffer.bytes);
      joined.in |= buffer.in;
      joined.out |= buffer.out;
      places.push_back(found->second);
    }
  }
  for (std::size_t i = 0; i < batch.like.buffers.size(); ++i) {
    const bool one_place = std::all_of(batch.where.begin(), batch.where.end(), [&](const auto& places) {
      return places[i] == batch.where.front()[i];
    });
    batch.shared.push_back(batch.calls() > 1 && one_place && !batch.like.buffers[i].out);
  }
  return batch;
}

/// Whether no call writes what another one reads or writes, so that their order does not matter.
inline bool independent(const Batch& batch) {
  struct Stretch {
    const char *begin, *end;
    bool out;
  };
  std::vector<Stretch> stretches;
  for (const auto& places : batch.where) {
    for (std::size_t i = 0; i < places.size(); ++i) {
      const Buffer& like = batch.like.buffers[i];
      const char* const host = batch.buffers[places[i]].host;
      if (like.bytes > 0) stretches.push_back({host, host + like.bytes, like.out});
    }
  }
  std::sort(stretches.begin(), stretches.end(),
            [](const Stretch& a, const Stretch& b) { return a.begin < b.begin; });
  const char *reached = nullptr, *written = nullptr;
  for (const Stretch& stretch : stretches) {
    if ((written && stretch.begin < written) || (stretch.out && reached && stretch.begin < reached))
      return false;
    reached = reached ? std::max(reached, stretch.end) : stretch.end;
    if (stretch.out) written = written ? std::max(written, stretch.end) : stretch.end;
  }
  return true;
}

/// One set of buffers comes in, one is at work, one goes out; a fourth keeps the link busy while one is handed over.
/// Small calls spend more time between these than in them, so that more of them are under way; not where each set would
/// need a plan of its own, which may be dear.
inline constexpr std::int64_t kSets = 4, kSetsOfSmallCalls = 8, kSmallCallBytes = 2 << 20;

/// Sets of buffers within `room_bytes` of device memory; fewer than two are no pipeline: 0.
inline std::int64_t sets_within(const Batch& batch, std::int64_t room_bytes) {
  const std::int64_t each = std::max<std::int64_t>(batch.bytes_each(), 1);
  const std::int64_t most = (room_bytes - batch.shared_bytes()) / each;
  const bool many = each < kSmallCallBytes && !(batch.like.kernel && batch.like.kernel->plan);
  const std::int64_t wanted = many ? kSetsOfSmallCalls : kSets;
  return most < 2 ? 0 : std::min(most, wanted);
}

}  // namespace fulcrum::backends::cuda::trips
