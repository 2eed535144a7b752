// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Where a CPU program spent its time, as plain data: what `record` collects, what other tools' files become, and what
// `plan` and the report read. Whoever shows it may leave things out, but nothing here is guessed.
#pragma once

#include <fulcrum/core.h>

namespace fulcrum {

/// One function (or one inlined call) in a stack.
struct Frame {
  std::string function;  // demangled; "[libm.so.6+0x1f40]" where no symbol says it
  std::string module;    // file name of the binary; empty: not known
  std::string file;      // of the source; empty: not known
  int line = 0;
  std::uint64_t address = 0;  // in the module as linked (ELF address); 0: not known
  bool inlined = false;       // part of the frame behind it
  bool operator==(const Frame&) const = default;
};

struct CpuProfile {
  std::string command, created_utc, machine_id, program;  // program: version and commit of the writer
  std::string origin = "fulcrum";                         // "fulcrum", "folded", "perf script", "pprof"
  std::string event;                                      // "cycles", "cpu-clock", "timer"; what a sample is
  double rate_hz = 0;                                     // per CPU (or thread) asked for
  double wall_seconds = 0;                                // of the recording
  double cpu_seconds = 0;  // of the target, its threads and children, as the kernel counted
  double steal_seconds = 0;
  int exit_code = 0;  // of the target; 128 + signal when killed

  std::vector<Frame> frames;
  struct Stack {
    std::vector<std::uint32_t> frames;  // numbers of frames, leaf first
    bool truncated = false;             // the unwinder did not reach the thread's start
    std::string why;                    // why not: "dump too small", "no unwind information in X"
  };
  std::vector<Stack> stacks;

  struct Thread {
    std::int64_t pid = 0, tid = 0;
    std::string name;
    double begin_seconds = 0, end_seconds = 0;  // since the recording began
    double cpu_seconds = 0, blocked_seconds = 0, preempted_seconds = 0;
  };
  std::vector<Thread> threads;

  /// A sample on a CPU stands for weight_seconds of one CPU; one off it for a blocked interval of that length.
  struct Sample {
    std::uint32_t thread = 0, stack = 0;
    double seconds = 0;  // since the recording began
    double weight_seconds = 0;
    bool blocked = false;      // off the CPU, waiting
    bool approximate = false;  // the stack is that of the last sample before it went off
    std::uint32_t region = 0;  // number of regions[], plus one; 0: none
  };
  std::vector<Sample> samples;

  /// FULCRUM_REGION names: counts are exact, time comes from samples.
  struct Region {
    std::string name;
    std::uint32_t parent = 0;  // number plus one; 0: none
    double entries = 0;
    double work = 0;  // sum of the work arguments; 0: none given
  };
  std::vector<Region> regions;

  /// Calls that were recognised with their sizes (a preloaded library saw them, or arguments at samples).
  struct Call {
    std::string function, op;  // op: empty when no op of ours means it
    Shape shape;
    double calls = 0, seconds = 0;  // seconds 0: not timed
    std::string how;                // "preload", "sampled arguments"
  };
  std::vector<Call> calls;

  /// Parallel regions of OpenMP that a preloaded library saw begin.
  struct Loop {
    std::string function, module;     // the code that every thread runs
    double entries = 0, seconds = 0;  // seconds: from begin to end, all entries together
    double iterations = 0;  // of the loop where most samples were, in its longest entry; 0: not known
  };
  std::vector<Loop> loops;

  /// What the machine code around the samples of one function does.
  struct Mix {
    std::string function, module;
    double samples = 0;
    double flops = 0, load_bytes = 0, store_bytes = 0;  // per instruction, weighted by samples
    double loads_per_turn = 0;          // data loads of the innermost loop, weighted by samples
    std::map<int, double> vector_bits;  // share of floating-point work by width: 32, 128, 256, 512
    std::string access;                 // "streaming", "strided", "gather", "none"
    std::vector<std::string> against;   // evidence against parallelism: "locks", "allocation", "recursion"
    int threads = 1;                    // seen inside it at once
  };
  std::vector<Mix> mixes;

  std::map<std::string, double> counters;  // with a PMU or imported: "instructions", "cache_misses", ...
  double touched_bytes = 0;  // pages referenced in the windows that were looked at; 0: not looked at

  std::int64_t lost_samples = 0;
  double overhead_target_seconds = 0;     // CPU time that sampling took from the target, as estimated
  double overhead_collector_seconds = 0;  // CPU time of the collector itself
  std::vector<std::string> notes;         // what was lost or could not be had, each with its reason

  double sampled_seconds() const;  // sum of weights, blocked ones left out
  std::int64_t on_cpu_samples() const;
  double truncated_share() const;  // of on-CPU samples
};

/// fulcrum.profile/1.
Json to_json(const CpuProfile&);
Result<CpuProfile> profile_from_json(const Json&, std::string_view origin);

}  // namespace fulcrum
