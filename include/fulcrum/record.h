// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Where a CPU program spends its time, seen from outside: starts a program or attaches to one, samples its stacks and
// hands back a CpuProfile. Nothing is needed of the program: no recompile, no root, no hardware counters.
#pragma once

#include <fulcrum/core.h>
#include <fulcrum/core/profile.h>

#include <atomic>

namespace fulcrum::record {

enum class Mode : std::uint8_t {
  automatic,  // perf events where the kernel allows them, else timers
  perf,       // perf events or an error
  timer,      // timers inside the program, by a preloaded library
};

/// How far a recording is: handed to Options::progress a few times a second, on the thread that called record().
struct Progress {
  double seconds = 0;  // since the program started or was attached to
  std::int64_t samples = 0, lost = 0;
  int threads = 0;            // alive now
  std::int64_t bytes = 0;     // that the profile takes so far, as estimated
  double collector_cpu = 0;   // seconds
  std::string_view activity;  // "sampling", "reading symbols", "decoding instructions"
};

struct Options {
  /// Program and arguments, looked up in PATH; or `pid` of a running process. Exactly one of the two.
  std::vector<std::string> command;
  std::int64_t pid = 0;

  Mode mode = Mode::automatic;
  double rate_hz = 199;  // off the beat of timers that tick 100 or 250 times a second
  /// Sample at burst_rate_hz until there are enough_samples, so that short programs have usable shares too.
  bool adaptive = true;
  double burst_rate_hz = 269;  // in a VM a sample takes the program some 25 us: below 1 % of its time
  std::int64_t enough_samples = 2000;

  double duration_seconds = 0;                 // stop after that long; the program goes on. 0: until it ends
  std::int64_t size_limit_bytes = 20'000'000;  // of the profile: sampling ends there, and a note says so
  bool children = true;                        // processes that it starts, too
  bool off_cpu = true;                         // blocked time from context switches

  bool instruction_mix = true;  // decode the code around hot addresses
  bool preload = true;          // started programs: a shim sees the shapes of BLAS calls
  bool touched_bytes = true;    // clear the reference bits of pages in a few short windows
  bool python = true;           // started programs: ask Python 3.12 and newer for the names of its functions

  /// Added to our environment for the started program, or in place of ours.
  std::vector<std::pair<std::string, std::string>> environment;
  /// The program's standard streams; -1: ours.
  int standard_input = -1, standard_output = -1, standard_error = -1;

  std::function<void(const Progress&)> progress;
  /// Becomes true (from a signal handler, say): sampling ends and what is there comes back. A program that record()
  /// started gets SIGINT, then SIGTERM after two seconds; one that was attached to is left alone.
  const std::atomic<bool>* stop = nullptr;
};

/// Starts or attaches, samples until the program ends (or a limit is reached), unwinds, names. A program that fails is
/// a profile with its exit_code; one that cannot be started or seen is an error.
Result<CpuProfile> record(const Options&);

/// What a byte of memory costs that nobody has touched yet, beyond writing it: page faults, in one thread, measured now in
/// a few milliseconds; 0: it could not be. What comes back from a device into fresh memory pays it.
double seconds_per_fresh_byte();

/// What this machine allows, for `doctor`.
struct Capability {
  std::string name;    // "perf events", "hardware counters", "kernel frames", "unwinding", "instruction mix"
  bool there = false;  // usable now, by this user
  std::string detail;  // what was found: "cpu-clock, perf_event_paranoid 2"
  std::string hint;    // what to do to have it; empty when it is there
};
std::vector<Capability> capabilities();

}  // namespace fulcrum::record
