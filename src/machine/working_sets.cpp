// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Half of a thread's share of the first cache leaves room for what else runs. Below it, pages fall on the sets of a
// cache by chance: half of it would be evicted here and there, by luck of the run, and a quarter hardly ever. Of the
// last cache only four times the level above is used: in a virtual machine the neighbours live there too, and it may
// be ours for a small part.
#include "machine/working_sets.h"

#include <algorithm>

namespace fulcrum::machine {
namespace {

constexpr std::int64_t kMiB = std::int64_t{1} << 20;
constexpr std::int64_t kLeastDram = 256 * kMiB;
constexpr std::int64_t kLastLevelFactor = 4;
constexpr std::int64_t kPagesAtHand = kMiB / 4;

std::int64_t share_of(const MemoryLevel& level, int threads) {
  return level.capacity_bytes / std::clamp(level.shared_by_threads, 1, std::max(1, threads));
}

}  // namespace

bool is_last_cache(const std::vector<MemoryLevel>& levels, std::size_t level) {
  return level + 1 >= levels.size() || levels[level + 1].capacity_bytes == 0;
}

std::int64_t cache_set_bytes(const std::vector<MemoryLevel>& levels, std::size_t level, int threads) {
  const std::int64_t share = share_of(levels[level], threads);
  if (level == 0) return share / 2;
  const std::int64_t above = share_of(levels[level - 1], threads);
  std::int64_t bytes = share / 4;
  if (is_last_cache(levels, level)) bytes = std::min(bytes, kLastLevelFactor * above);
  if (bytes >= above + above / 2) return bytes;
  // Caches of today's servers do not keep a second copy of what the level above holds, so both together count.
  bytes = above + above / 2;
  return 10 * bytes <= 8 * (share + above) ? bytes : 0;
}

std::int64_t cycle_bytes(const std::vector<MemoryLevel>& levels, std::size_t level) {
  const std::int64_t bytes = cache_set_bytes(levels, level, 1);
  if (level == 0 || is_last_cache(levels, level)) return bytes;
  return std::min(bytes, std::max(kPagesAtHand, 4 * share_of(levels[level - 1], 1)));
}

DramSets dram_sets(const std::vector<MemoryLevel>& levels, int threads, std::int64_t available_bytes) {
  std::int64_t caches = 0;
  for (const MemoryLevel& level : levels) {
    if (level.capacity_bytes == 0) continue;
    const std::int64_t instances =
        (threads + level.shared_by_threads - 1) / std::max(1, level.shared_by_threads);
    caches = std::max(caches, level.capacity_bytes * std::max<std::int64_t>(1, instances));
  }
  DramSets sets;
  sets.chase_bytes = std::max(kLeastDram, 4 * caches);
  sets.array_bytes = sets.chase_bytes / 2;
  const std::int64_t wanted = sets.chase_bytes + 3 * sets.array_bytes;
  const std::int64_t at_most = available_bytes / 2;
  if (available_bytes > 0 && wanted > at_most) {
    const double shrink = static_cast<double>(at_most) / static_cast<double>(wanted);
    sets.chase_bytes = static_cast<std::int64_t>(static_cast<double>(sets.chase_bytes) * shrink);
    sets.array_bytes = static_cast<std::int64_t>(static_cast<double>(sets.array_bytes) * shrink);
  }
  return sets;
}

}  // namespace fulcrum::machine
