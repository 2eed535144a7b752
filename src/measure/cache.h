// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Cache states: making operands cold, and proving by the rate of a sentinel read that a state is what its
// name says.
#pragma once

#include "measure/session.h"

namespace fulcrum::measure {

using Operands = std::vector<std::span<const std::byte>>;

/// Takes every line of the operands out of every cache.
void flush(const Operands& operands);
/// Sum over all operands, read in order: the sentinel's load.
std::uint64_t read_all(const Operands& operands);

/// Seconds of one sentinel read just after a flush (cold) or a run of the kernel (warm), and of a second
/// read.
struct Sentinel {
  double bytes = 0;
  double first_seconds = 0;
  double again_seconds = 0;
};
/// Cold: nearer to the rate of DRAM than to that of the last cache, and a second read shows that the sentinel
/// would have noticed otherwise.
bool proves_cold(const Sentinel& sentinel, const Machine& machine);
/// Warm: nearer to the last cache, or, for a few lines, faster than one access to DRAM.
bool proves_warm(const Sentinel& sentinel, const Machine& machine);
/// No cache holds the set: every warm call streams from DRAM.
bool streams(std::int64_t working_set_bytes, int threads, const Machine& machine);

/// Takes sentinels around `call` and judges them; `call_seconds` bounds what the proof may cost.
Result<bool> verify_cache(const Session& session, Cache cache, const Operands& operands,
                          const std::function<Status()>& call, double call_seconds, const Machine& machine);

}  // namespace fulcrum::measure
