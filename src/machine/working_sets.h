// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// How much memory a probe must touch to measure one level: enough to leave the level above, little enough to fit.
#pragma once

#include <fulcrum/core.h>

namespace fulcrum::machine {

/// The cache that others may share, behind which there is only memory.
bool is_last_cache(const std::vector<MemoryLevel>& levels, std::size_t level);

/// Bytes over all arrays of one thread when `threads` run at once; 0: no size lands in this level, because the
/// threads' share of it is hardly more than they have in the level above. `level` is not DRAM.
std::int64_t cache_set_bytes(const std::vector<MemoryLevel>& levels, std::size_t level, int threads);

/// Sizes for DRAM. Arrays: three of equal size; the two that are only read hold at least four times the last-level
/// caches and 256 MiB, as does a copy from one of them to the third. Chase: as much for the load latency.
struct DramSets {
  std::int64_t array_bytes = 0;
  std::int64_t chase_bytes = 0;
};
/// `available_bytes` 0: not known. At most half of it is used, however large the caches are.
DramSets dram_sets(const std::vector<MemoryLevel>& levels, int threads, std::int64_t available_bytes);

}  // namespace fulcrum::machine
