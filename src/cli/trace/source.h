// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// A GPU trace on the command line: of a program that is run now, or from a file of any kind.
#pragma once

#include <fulcrum/trace.h>

#include "cli/context.h"

namespace fulcrum::cli {

/// What a run is asked for.
struct Tracing {
  std::vector<std::string> command;
  bool with_cpu = false;  // samples of the host program beside it, on one clock
  bool full = false, counters = false, hash_copies = false;
  double budget_share = 0.05;
  bool output_is_ours = false;  // the program's standard output goes to standard error
  trace::Costs costs;           // of a record, where they are known
};
/// Runs the program, with progress. Ctrl-C ends it, and what is there comes back. A run in which no GPU did anything is
/// an error that says why.
Result<GpuTrace> trace_program(const Tracing& tracing, Context& context);

/// Recognised by what is in it, not by its name: ours (binary or fulcrum.trace/1), or torch.profiler's, also gzip'ed; a
/// folder of the injected library's files.
Result<GpuTrace> load_trace(const std::string& file);

}  // namespace fulcrum::cli
