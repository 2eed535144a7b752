// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// What this machine is and what it can do at best: discovery, ceilings measured with probe_* ops, and the store
// of profiles (own measurements in the data folder, shipped device profiles in share/machines).
#pragma once

#include <fulcrum/measure.h>

namespace fulcrum::machine {

/// Topology, caches and instruction sets; takes milliseconds, measures nothing.
CpuTopology discover_cpu();
/// Sizes of the data caches as one thread sees them, smallest first; DRAM last with capacity 0.
std::vector<MemoryLevel> discover_levels();
/// What control groups leave of the machine: CPUs worth of time and bytes; 0: no limit.
struct Limits {
  double cpus = 0;
  std::int64_t memory_bytes = 0;
};
Limits discover_limits();
/// Facts of every GPU that a backend of this program can use, without ceilings.
std::vector<GpuCeilings> discover_gpus();
/// Stable identity: CPU model, cores, caches, memory. Never the host name.
std::string fingerprint(const CpuTopology& topology, const std::vector<MemoryLevel>& levels);

struct ProbeConfig {
  double budget_seconds = 45;
  double gpu_seconds =
      12;           // of them for the GPUs, where there are any: a third of the budget at most, if cpu too
  bool cpu = true;  // false: facts of the CPU, but no ceilings
  bool gpu = true;  // false: as if there were none
  std::function<bool()> interrupted;
  std::function<void(std::string_view what, int done, int total)> progress;
};
/// Measures every ceiling: FMA peak by instruction set, read, copy and triad per level (the last cache and DRAM also
/// with non-temporal stores: copy_nt, triad_nt), with one and with all threads, load latency, fork-join, clock. Probes
/// take turns in short windows; those that agree least come again. A value is what one window in 100 beats, or in
/// caches what usual turns do; its interval is from their lower quartile to the best. Rates count bytes that are moved,
/// not the line that a plain store makes a cache read first. GPUs come after it, with the probes of their backends: a
/// probe that fails is left out, and `notes` says so. While it runs, the process uses the instruction sets it
/// measures and its pool is bound to CPUs; both are put back.
Result<Machine> measure(const ProbeConfig& config);

/// Profiles by name: "this" is the newest of this machine.
struct StoredProfile {
  std::string name, path, description;
  bool shipped = false;
};
std::vector<StoredProfile> list();
Result<Machine> load(std::string_view name);
/// The profile of this machine if it was measured before, without measuring.
std::optional<Machine> known();
Result<std::filesystem::path> save(const Machine& machine);
/// Times that were measured on the machine of a shipped profile and come with the program.
Result<std::vector<Measurement>> measurements(std::string_view name);

}  // namespace fulcrum::machine
