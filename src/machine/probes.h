// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Probes as things that can be timed in short windows. Each kernel is checked against its op's reference, with as
// many threads as will be timed, before it becomes a probe.
#pragma once

#include <fulcrum/machine.h>

#include "machine/arena.h"
#include "machine/windows.h"
#include "machine/working_sets.h"

namespace fulcrum::machine {

/// One ceiling to be measured.
struct Probe {
  std::string what;                    // "L2 copy, 2 threads"
  std::vector<std::string> isas = {};  // in use, round by round; empty: the best
  int threads = 1;
  double visit_seconds = 0;  // of a probe without turns: it comes between those of the others, for so long
  std::function<void()> move = {};                // to another place of memory before each turn, not timed
  std::function<void()> warm = {};                // before every window, not timed; empty: nothing
  std::function<void(std::int64_t repeats)> run;  // does its work so many times
  double work = 0;                                // of one repeat: bytes, flops, loads, joins
  bool is_rate = true;                            // ceiling = work per second; else seconds per unit of work
  Usual usual = Usual::best;                      // of its turns
  std::function<void(const Quantity&)> store;
  double window_seconds =
      2e-3;                  // short enough to slip between neighbours, whose time slices are some ms long
  std::int64_t repeats = 1;  // of one window; grows until it is long enough
  std::vector<double> costs = {};       // seconds per unit of work, window by window
  std::vector<std::size_t> turns = {};  // the first window of each turn
};

/// A core and the caches of its own go by the clock, which is now and then higher than usual.
inline constexpr Usual kUsualOfOneCore = Usual::middle;
/// What is shared with neighbours is usually worse than it can be.
inline constexpr Usual kUsualOfShared = Usual::quartile;
/// Where in memory threads meet decides how long they wait for each other, and a pool lies anywhere. Half of the places
/// are near and half are far, with few between: the one in the middle is of either kind by luck, their mean is not.
inline constexpr Usual kUsualOfPlaces = Usual::mean;
/// All cores at once are slower than they can be whenever something else needs one of them or, it seems, a hypervisor
/// lets two of them share one, which can go on for most of a run.
inline constexpr Usual kUsualOfAllCores = Usual::eighth;
inline Usual usual_of_cores(int threads) { return threads > 1 ? kUsualOfAllCores : kUsualOfOneCore; }
inline Usual usual_of_level(const std::vector<MemoryLevel>& levels, std::size_t cache, int threads) {
  return is_last_cache(levels, cache) ? kUsualOfShared : usual_of_cores(threads);
}
/// Of a probe in caches and registers: as short as starting the threads allows. Between interruptions of a virtual CPU
/// more of them are left whole than of long ones.
inline double short_window_seconds(int threads) { return threads > 1 ? 4e-4 : 2e-4; }

/// The probes of a machine and the memory they work on.
struct ProbeSet {
  std::vector<Probe> probes;
  std::vector<std::shared_ptr<Arena>> memory;
};

/// Where results go: `cpu` and its levels must outlive the probes and stay in place.
struct ProbeTarget {
  CpuCeilings& cpu;
  int threads = 1;  // of the all-threads probes
  int numa_nodes = 1;
  std::int64_t available_bytes = 0;
};

Status add_fma_probes(const ProbeTarget& target, ProbeSet& set);
Status add_cache_probes(const ProbeTarget& target, ProbeSet& set);
Status add_dram_probes(const ProbeTarget& target, ProbeSet& set);
Status add_latency_probes(const ProbeTarget& target, ProbeSet& set);
Status add_fork_join_probe(const ProbeTarget& target, ProbeSet& set);
Status add_clock_probe(const ProbeTarget& target, ProbeSet& set);

/// Windows of one probe until `until` on the clock, at least a few, behind one that does not count: it finds the caches
/// as another probe left them, and what it writes may stay there. Their length is found out on the way: what was
/// slow because of a neighbour at first gets more repeats as soon as a window shows that it is fast.
void take_windows(Probe& probe, const measure::Clock& clock, double until);

}  // namespace fulcrum::machine
