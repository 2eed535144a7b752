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

/// Bytes of a cycle that one thread follows for the load latency: as above, but in the caches of a core no more than 256
/// KiB. A walk through more small pages than a core keeps at hand (64 to 128 on today's CPUs) measures the look-up of
/// pages too, and how much of it is luck: 512 KiB took 5.94 to 6.9 ns a load in a virtual machine, 256 KiB 5.34 always.
std::int64_t cycle_bytes(const std::vector<MemoryLevel>& levels, std::size_t level);

/// Sizes for DRAM. Arrays: three of equal size; the two that are only read hold at least four times the last-level
/// caches and 256 MiB, as does a copy from one of them to the third. Chase: as much for the load latency.
struct DramSets {
  std::int64_t array_bytes = 0;
  std::int64_t chase_bytes = 0;
};
/// `available_bytes` 0: not known. At most half of it is used, however large the caches are.
DramSets dram_sets(const std::vector<MemoryLevel>& levels, int threads, std::int64_t available_bytes);

}  // namespace fulcrum::machine
