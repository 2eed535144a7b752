// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// What any CUDA program does on the GPU, seen from inside it by an injected library: starts the program, reads the
// files it leaves, and makes the timeline that findings come from. No code change, no root.
#pragma once

#include <fulcrum/core.h>
#include <fulcrum/core/finding.h>
#include <fulcrum/core/trace.h>

#include <atomic>

namespace fulcrum::trace {

/// What the machine costs, where it is known: from `fulcrum machine --measure` and from earlier traces. Zero: not
/// known, and the trace's own figures are used.
struct Costs {
  std::string from;
  double back_to_back_seconds = 0, launch_seconds = 0, launch_latency_seconds = 0;
  double pinned_bytes_per_second = 0, pageable_bytes_per_second = 0, small_copy_seconds = 0;
  double dram_bytes_per_second = 0, fp32_flops = 0, tf32_flops = 0, bf16_flops = 0;
  double record_seconds = 0;       // that tracing adds to a launch: a kernel's record
  double call_record_seconds = 0;  // and the record of a call
};

struct Progress {
  double seconds = 0;
  std::int64_t file_bytes = 0;
  std::string_view activity;
};

struct Options {
  std::vector<std::string> command;
  std::string folder;          // for the files of the processes; empty: a temporary one
  bool full = false;           // no windows, whatever it costs
  double budget_share = 0.05;  // of the program's time that tracing may add
  bool counters = false;       // T1: PM sampling
  bool hash_copies = false;    // look whether the same bytes go to the device again
  bool managed = true;         // unified memory counters
  std::int64_t size_limit_bytes = std::int64_t{256} << 20;  // a process
  std::string injector;  // path of libfulcrum_inject.so; empty: the one beside the program
  Costs costs;
  std::vector<std::pair<std::string, std::string>> environment;
  int standard_input = -1, standard_output = -1, standard_error = -1;
  std::function<void(const Progress&)> progress;
  const std::atomic<bool>* stop = nullptr;
  /// Runs the program in its stead (`--with-cpu`): gets command and environment, returns when it has ended.
  std::function<Status(const std::vector<std::string>& command,
                       const std::vector<std::pair<std::string, std::string>>& environment, int& exit_code)>
      run_with;
};

/// Runs the program with the injected library and reads what it wrote. A program that fails, or that never touches a
/// GPU, is a trace that says so; one that cannot be started is an error.
Result<GpuTrace> run(const Options&);

/// The binary file (docs/trace-file.md): one a process, or several processes merged by `save`.
Result<GpuTrace> read(const std::filesystem::path& file);
/// Everything in a folder of such files, on one clock.
Result<GpuTrace> read_folder(const std::filesystem::path& folder);
Result<GpuTrace> parse(std::string_view bytes, std::string_view origin);
std::string bytes_of(const GpuTrace&);

/// What others write. Kineto: the JSON of torch.profiler (also gzip'ed). ncu: `ncu --csv`, joined into a trace.
Result<GpuTrace> from_kineto(std::string_view text, std::string_view origin);
Status add_ncu(GpuTrace&, std::string_view csv, std::string_view origin);
/// Chrome trace and Perfetto: GPU streams, host threads, CPU samples and counters on one clock.
std::string chrome_trace(const GpuTrace&);

Timeline timeline(const GpuTrace&, const Costs& = {});
/// What changes to the run would save, by simulating the events of the trace again. Keeps references to both.
WhatIf what_if(const GpuTrace&, const Timeline&);

/// How two runs differ: an iteration, busy share, kernels by name.
struct Difference {
  struct Row {
    std::string what;
    double before = 0, after = 0;  // seconds an iteration (or of the whole without iterations)
    double before_low = 0, before_high = 0, after_low = 0, after_high = 0;
    double before_count = 0, after_count = 0;
    bool beyond_doubt = false;  // the intervals do not touch
  };
  std::vector<Row> rows;  // the iteration first, then what changed most
  std::string basis;      // "iteration" or "whole run"
};
Difference difference(const GpuTrace& before, const Timeline&, const GpuTrace& after, const Timeline&);

struct Capability {
  std::string name;  // "injection library", "CUPTI", "driver", "counters"
  bool there = false;
  std::string detail, hint;
};
std::vector<Capability> capabilities();

}  // namespace fulcrum::trace
