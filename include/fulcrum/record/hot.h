// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// What a CPU profile says: hot functions with the doubt of their shares, threads, who calls whom, regions, and what
// changed between two profiles. Pure functions; docs/profiling.md has the definitions.
#pragma once

#include <fulcrum/core/plan.h>
#include <fulcrum/core/profile.h>

namespace fulcrum::record {

/// One function, or one inlined call. Shares are of Hot::seconds.
struct HotFunction {
  std::string function, module, file;
  int line = 0;
  Doubtful self, inclusive;  // a function that calls itself counts once a stack
  double waiting_share = 0;  // part of `inclusive` in which it was off the CPU
  double threads = 0;        // that were inside at once, on average while it ran
  std::int64_t samples = 0;  // on a CPU, inclusive
  bool recursive = false;    // seen twice in one stack
  int rank = 1;              // by self; equal numbers: the intervals do not tell them apart
};

struct HotThread {
  std::uint32_t thread = 0;  // number in the profile
  std::string name;
  std::int64_t pid = 0, tid = 0;
  double cpu_seconds = 0, blocked_seconds = 0, preempted_seconds = 0;
  double share = 0;     // of Hot::seconds
  std::string hottest;  // the function in which it spent most CPU time
};

struct HotCall {
  std::uint32_t caller = 0, callee = 0;  // numbers in Hot::functions
  double share = 0;                      // of Hot::seconds spent in callee when called from caller
};

struct HotRegion {
  std::string name, path;  // path: "outer/inner"
  Doubtful share;          // with the regions inside
  double entries = 0, work = 0;
  double seconds_per_entry = 0;  // of CPU time in all threads; 0: not known
};

struct Hot {
  std::string basis;                   // "wall-clock time" or "CPU time": what shares are of
  double seconds = 0;                  // of it, stolen and preempted time taken out
  double effective_samples = 0;        // what the samples on a CPU are worth in equal ones
  double waiting_share = 0;            // nobody ran
  std::vector<HotFunction> functions;  // hottest self share first
  std::vector<HotThread> threads;
  std::vector<HotCall> calls;  // largest share first
  std::vector<HotRegion> regions;
  std::vector<std::string> notes;

  /// Number of the function; none: it is not in the profile.
  std::optional<std::uint32_t> find(std::string_view function) const;
};
Hot hot(const CpuProfile&);

/// How much of the wall-clock time each sample stands for: the time line of the main thread, and where that one
/// waits, of those who ran meanwhile. Empty: the profile does not say who waited; CPU time is all there is.
std::vector<double> path_seconds(const CpuProfile&);

/// A share k of n, at 95 %, after Wilson: inside 0 and 1 and right near both. n need not be whole.
Doubtful wilson(double share, double samples);

/// One function in two profiles.
struct Difference {
  std::string function, module;
  Doubtful before, after;  // self shares
  Doubtful change;         // after - before, in shares
  double seconds_before = 0, seconds_after = 0;
  bool clear = false;  // the interval of the change leaves out 0
};
/// Clear changes first, largest first.
std::vector<Difference> difference(const Hot& before, const Hot& after);

/// Stacks as a tree, callers outside, for a flame graph: path seconds of each node without its children. Branches
/// below `least` of the whole are left out, their time stays with the caller's.
struct FlameNode {
  std::string name, module;
  std::int32_t parent = -1;  // a number before this one
  double seconds = 0;
  bool inlined = false, waiting = false;
};
std::vector<FlameNode> flame(const CpuProfile&, double least = 0.0005);

}  // namespace fulcrum::record
