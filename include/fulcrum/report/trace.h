// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// A GPU trace for people and scripts: the terminal's text, the document fulcrum.findings/1 and the page. All three say
// the same, from the same data.
#pragma once

#include <fulcrum/core/finding.h>
#include <fulcrum/report.h>

namespace fulcrum::report {

/// What is told about a run beside its findings; what is not known is -1.
struct TraceFacts {
  std::string command, device;
  double seconds = 0;     // that all shares are of
  double busy_share = 0;  // of the busiest device
  double kernel_share = 0, copy_share = 0, exposed_copy_share = 0;
  double traced_share = 1;          // of the run that was recorded in full
  std::int64_t windows = 0;         // 0: all of it
  double overhead_share = -1;       // that tracing added, predicted from calibrated costs
  double full_overhead_share = -1;  // predicted, had everything been traced
  double model_error = -1;          // of the simulation with nothing changed
  std::int64_t dropped = 0;
  /// Why the busiest device had nothing to do, most first.
  struct Idle {
    GapCause cause = GapCause::unknown;
    double seconds = 0, share = 0;
    std::int64_t count = 0;
    std::string function;       // of the host, by --with-cpu: in the longest part of it
    double function_share = 0;  // of this cause's time
  };
  std::vector<Idle> idle;
};
TraceFacts trace_facts(const GpuTrace&, const Timeline&);

/// The whole answer: verdict, facts, the longest `top` kernels, findings, what was and was not looked at.
std::string trace_text(const GpuTrace&, const Timeline&, const Diagnosis&, int top, bool colour, int width);
/// Findings alone, with what was and was not checked.
std::string diagnosis_text(const Diagnosis&, const Timeline&, bool colour, int width);
/// Kernels by their sum, one shape a row.
Table kernel_table(const GpuTrace&, const Timeline&, int top, int width);
/// A kernel's name in at most `room` columns: without its arguments and namespaces, cut in the middle.
std::string kernel_name(std::string_view name, std::size_t room);

/// fulcrum.findings/1 of a whole run: findings, command, facts, timeline, kernels.
Json findings_json(const GpuTrace&, const Timeline&, const Diagnosis&);

struct TracePage {
  std::string title, created_utc, program;
  std::vector<std::pair<std::string, std::string>> commands;  // what it is for, and the command
};
/// One HTML file that needs nothing else. A stretch of about three iterations is in it event by event, the whole run
/// as how busy the GPU was; at most about 2 MB of both.
std::string trace_html(const GpuTrace&, const Timeline&, const Diagnosis&, const TracePage&);

}  // namespace fulcrum::report
