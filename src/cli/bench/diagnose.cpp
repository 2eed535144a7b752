// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// From a row of bench to what is wrong with its launches. The child is the same worker that --processes starts; its
// times are traced ones and are not shown, only the shape of its launches is.
#include "cli/bench/diagnose.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fulcrum/diagnose.h>
#include <fulcrum/report/trace.h>
#include <fulcrum/trace.h>
#include <unistd.h>

#include <algorithm>
#include <set>

#include "cli/bench/regimes.h"
#include "cli/bench/workers.h"
#include "cli/trace/ceilings.h"

namespace fulcrum::cli {
namespace {

constexpr double kTracedSeconds = 0.5;  // launches repeat: a few hundred say as much as many
constexpr int kKernelsShown = 5;

// Kernels one after the other from instant 0; calls, copies and clocks are the harness's.
void keep_kernels(GpuTrace& trace) {
  std::erase_if(trace.ops, [](const GpuTrace::Op& op) { return op.kind != GpuOpKind::kernel; });
  std::int64_t at_ns = 0;
  for (GpuTrace::Op& op : trace.ops) {
    const std::int64_t length_ns = op.duration_ns();
    op.begin_ns = at_ns;
    op.end_ns = at_ns + length_ns;
    at_ns = op.end_ns;
  }
  trace.calls.clear();
  trace.ranges.clear();
  trace.overheads.clear();
  trace.faults.clear();
  trace.clocks.clear();
  trace.windows.clear();
  trace.counter_samples.clear();
  trace.wall_ns = at_ns;
  trace.origin = "bench";
}

struct Row {
  const Group* group;
  const backends::Kernel* kernel;
};

// One row a kernel and shape: how operands travel does not change its launch.
std::vector<Row> rows_of(const BenchPlan& plan) {
  std::vector<Row> rows;
  std::set<std::string> seen;
  for (const bool resident : {true, false}) {
    for (const Group& group : plan.groups) {
      if ((group.regime == Regime::resident) != resident) continue;
      for (const backends::Kernel& kernel : group.kernels) {
        if (!is_gpu(kernel)) continue;
        if (seen.insert(kernel.name() + " " + group.shape.text()).second) rows.push_back({&group, &kernel});
      }
    }
  }
  return rows;
}

Result<GpuTrace> traced_worker(const Row& row, const measure::Config& config) {
  FULCRUM_TRY(const std::filesystem::path program, own_program());
  measure::Config brief = config;
  brief.budget_seconds = std::min(config.budget_seconds, kTracedSeconds);
  brief.instrumented = false;
  trace::Options options;
  options.command = worker_command(program.string(), *row.group, *row.kernel, brief);
  options.full = true;
  const int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
  options.standard_output = nowhere;
  Result<GpuTrace> traced = trace::run(options);
  if (nowhere >= 0) close(nowhere);
  if (!traced.ok()) return traced;
  if (traced->exit_code != 0) {
    return Error{Code::environment, fmt::format("the traced process ended with code {}", traced->exit_code),
                 "run the same row without --diagnose"};
  }
  if (traced->ops.empty()) {
    return Error{Code::environment, "the traced process launched nothing that was seen",
                 "`fulcrum doctor` says what tracing needs"};
  }
  return traced;
}

std::string text_of(const KernelDiagnosis& row, const std::string& title, const Context& context) {
  Diagnosis shown = row.diagnosis;
  shown.fine.clear();  // one list a row would bury the findings
  shown.not_checked.clear();
  std::string text = title + "\n";
  text +=
      report::kernel_table(row.trace, row.timeline, kKernelsShown, context.width()).text(context.colour());
  if (shown.findings.empty()) return text + "no finding: its launches fill the GPU\n";
  return text + report::diagnosis_text(shown, row.timeline, context.colour(), context.width());
}

}  // namespace

KernelDiagnosis diagnose_row(GpuTrace traced, std::string_view name, const Shape& shape) {
  KernelDiagnosis row{.trace = std::move(traced)};
  keep_kernels(row.trace);
  row.trace.ranges.push_back({.begin_ns = 0,
                              .end_ns = row.trace.wall_ns + 1,
                              .name = fmt::format("{}{} {}", diagnose::kOpRange, name, shape.text())});
  const Ceilings ceilings = ceilings_of(row.trace);
  row.timeline = trace::timeline(row.trace, ceilings.costs);
  // Nothing runs beside anything here: what an op loses, the whole loses.
  const WhatIf what_if = [&row](const Change& change) {
    double saved_ns = 0;
    for (const auto& [op, new_ns] : change.op_ns)
      saved_ns += double(row.trace.ops[op].duration_ns() - new_ns);
    const double seconds = saved_ns * 1e-9;
    return Saved{seconds, row.timeline.seconds > 0 ? seconds / row.timeline.seconds : 0};
  };
  row.diagnosis = diagnose::diagnose(
      {.trace = row.trace, .timeline = row.timeline, .what_if = what_if, .roofs = ceilings.roofs});
  for (Finding& finding : row.diagnosis.findings) {
    finding.verify = fmt::format("fulcrum bench {} --shape {} --backend cuda --diagnose", name, shape.text());
  }
  return row;
}

KernelDiagnoses diagnose_kernels(const BenchPlan& plan, const measure::Config& config, Context& context) {
  KernelDiagnoses out{.json = Json::array()};
  for (const Row& row : rows_of(plan)) {
    if (interrupted()) break;
    const std::string title = fmt::format("{} at {}", row.kernel->name(), row.group->shape.text());
    context.progress("tracing " + title);
    Result<GpuTrace> traced = traced_worker(row, config);
    out.text += out.text.empty() ? "" : "\n";
    if (!traced.ok()) {
      out.text += fmt::format("{}: not diagnosed: {}\n", title, traced.error().message);
      out.json.push_back(Json{{"row", title}, {"error", traced.error().message}});
      continue;
    }
    const KernelDiagnosis found = diagnose_row(std::move(*traced), row.group->op->name, row.group->shape);
    out.text += text_of(found, title, context);
    out.json.push_back(Json{{"row", title}, {"diagnosis", to_json(found.diagnosis)}});
  }
  return out;
}

}  // namespace fulcrum::cli
