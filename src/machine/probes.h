// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Probes as things that can be timed in short windows. Each kernel is checked against its op's reference, with as
// many threads as will be timed, before it becomes a probe.
#pragma once

#include <fulcrum/machine.h>

#include "machine/arena.h"
#include "machine/working_sets.h"

namespace fulcrum::machine {

/// One ceiling to be measured.
struct Probe {
  std::string what;                    // "L2 copy, 2 threads"
  std::vector<std::string> isas = {};  // in use, round by round; empty: the best
  int threads = 1;
  int places = 1;                   // of memory, in one turn; each of them counts as a turn of its own
  std::function<void()> move = {};  // to another place, not timed
  std::function<void()> warm = {};  // before every window, not timed; empty: nothing
  std::function<void(std::int64_t repeats)> run;  // does its work so many times
  double work = 0;                                // of one repeat: bytes, flops, loads, joins
  bool is_rate = true;                            // ceiling = work per second; else seconds per unit of work
  double usual_share = 0;  // usual_cost() of its turns with this share; 0: the best windows of all
  std::function<void(const Quantity&)> store;
  double window_seconds =
      2e-3;                  // short enough to slip between neighbours, whose time slices are some ms long
  std::int64_t repeats = 1;  // of one window; grows until it is long enough
  std::vector<double> costs = {};       // seconds per unit of work, window by window
  std::vector<std::size_t> turns = {};  // the first window of each turn
};

/// Cores and the caches of their own go by the clock, which is now and then higher than usual: half of the turns.
inline constexpr double kUsualOfCores = 0.5;
/// What is shared with neighbours is usually worse than it can be: a quarter.
inline constexpr double kUsualOfShared = 0.25;
/// Where in memory threads meet decides how long they wait for each other, and a pool lies anywhere: half of the
/// places.
inline constexpr double kUsualOfPlaces = 0.5;
inline double usual_share_of(const std::vector<MemoryLevel>& levels, std::size_t cache) {
  return is_last_cache(levels, cache) ? kUsualOfShared : kUsualOfCores;
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
