// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// What a trace says about a run beside its findings, and the document that scripts read.
#include <fulcrum/report/trace.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "report/trace_totals.h"

namespace fulcrum::report {
namespace {

const Timeline::Device* busiest(const Timeline& timeline) {
  const auto most =
      std::max_element(timeline.devices.begin(), timeline.devices.end(),
                       [](const auto& a, const auto& b) { return a.busy_seconds < b.busy_seconds; });
  return most == timeline.devices.end() ? nullptr : &*most;
}

std::string device_name(const GpuTrace& trace, int id) {
  for (const GpuTrace::Device& device : trace.devices) {
    if (device.id == id) return device.name;
  }
  return "";
}

/// Of the process that tracing slowed most: the others wait for it or do not.
void add_overhead(const GpuTrace& trace, TraceFacts& facts) {
  for (const GpuTrace::Process& process : trace.processes) {
    const double bare =
        static_cast<double>(process.end_ns - process.begin_ns) * 1e-9 - process.overhead_seconds;
    if (process.overhead_seconds >= 0 && bare > 0)
      facts.overhead_share = std::max(facts.overhead_share, process.overhead_seconds / bare);
    facts.full_overhead_share = std::max(facts.full_overhead_share, process.full_overhead_share);
  }
}

/// Start-up pays for few records, so a share of the whole run flatters: what counts is that of the part that repeats.
double steady_overhead(const Timeline& timeline, const Timeline::Device& device, double traced_share) {
  const double cost = timeline.tracing_per_launch.seconds * device.ops;
  return cost < timeline.seconds ? traced_share * cost / (timeline.seconds - cost) : -1;
}

void add_idle(const Timeline& timeline, int device, TraceFacts& facts) {
  std::map<GapCause, TraceFacts::Idle> by_cause;
  std::map<GapCause, std::map<std::string, double>> functions;
  for (const Timeline::Gap& gap : timeline.gaps) {
    if (gap.device != device || !gap.steady) continue;
    const double seconds = static_cast<double>(gap.end_ns - gap.begin_ns) * 1e-9;
    TraceFacts::Idle& idle = by_cause[gap.cause];
    idle.cause = gap.cause;
    idle.seconds += seconds;
    ++idle.count;
    if (!gap.function.empty()) functions[gap.cause][gap.function] += seconds;
  }
  for (auto& [cause, idle] : by_cause) {
    idle.share = timeline.seconds > 0 ? idle.seconds / timeline.seconds : 0;
    for (const auto& [function, seconds] : functions[cause]) {
      if (idle.seconds > 0 && seconds / idle.seconds > idle.function_share) {
        idle.function = function;
        idle.function_share = seconds / idle.seconds;
      }
    }
    facts.idle.push_back(idle);
  }
  std::stable_sort(facts.idle.begin(), facts.idle.end(),
                   [](const auto& a, const auto& b) { return a.seconds > b.seconds; });
}

Json known(double value) { return value < 0 ? Json(nullptr) : Json(value); }

Json facts_json(const TraceFacts& facts, const GpuTrace& trace, const Timeline& timeline) {
  Json idle = Json::array();
  for (const TraceFacts::Idle& one : facts.idle) {
    idle.push_back(Json{{"cause", to_string(one.cause)},
                        {"seconds", one.seconds},
                        {"share", one.share},
                        {"count", one.count},
                        {"function", one.function},
                        {"function_share", one.function_share}});
  }
  return Json{{"device", facts.device},
              {"seconds", facts.seconds},
              {"busy_share", facts.busy_share},
              {"kernel_share", facts.kernel_share},
              {"copy_share", facts.copy_share},
              {"exposed_copy_share", facts.exposed_copy_share},
              {"idle", std::move(idle)},
              {"iterations", timeline.iterations.count()},
              {"iteration_how", timeline.iterations.how},
              {"iteration_seconds", timeline.iterations.median_seconds},
              {"iteration_low", timeline.iterations.low_seconds},
              {"iteration_high", timeline.iterations.high_seconds},
              {"traced_share", facts.traced_share},
              {"windows", facts.windows},
              {"overhead_share", known(facts.overhead_share)},
              {"full_overhead_share", known(facts.full_overhead_share)},
              {"model_error", known(facts.model_error)},
              {"not_simulated", timeline.why_not},
              {"dropped", facts.dropped},
              {"exit_code", trace.exit_code}};
}

Json kernels_json(const GpuTrace& trace, const Timeline& timeline) {
  constexpr std::size_t kMost = 200;
  Json list = Json::array();
  for (const Timeline::Kernel& kernel : timeline.kernels) {
    if (list.size() >= kMost) break;
    const LaunchShape& shape = trace.shapes[kernel.shape];
    const WholeRun run = whole_run(trace, kernel);
    list.push_back(Json{{"name", shape.name},
                        {"short_name", kernel_name(shape.name, 50)},
                        {"calls", kernel.ops.size()},
                        {"seconds", kernel.seconds},
                        {"total_calls", run.calls},
                        {"total_seconds", run.seconds},
                        {"share", kernel.share},
                        {"median_ns", kernel.median_ns},
                        {"low_ns", kernel.low_ns},
                        {"high_ns", kernel.high_ns},
                        {"grid", shape.grid},
                        {"block", shape.block},
                        {"ctas", shape.blocks()},
                        {"waves", kernel.waves},
                        {"occupancy", shape.occupancy},
                        {"limiter", shape.limiter},
                        {"registers", shape.registers},
                        {"local_bytes", shape.local_bytes},
                        {"dram_share", known(kernel.dram_share)},
                        {"sm_share", known(kernel.sm_share)},
                        {"tensor_share", known(kernel.tensor_share)}});
  }
  return list;
}

}  // namespace

TraceFacts trace_facts(const GpuTrace& trace, const Timeline& timeline) {
  TraceFacts facts;
  facts.command = trace.command;
  facts.seconds = timeline.seconds;
  facts.traced_share = trace.traced_share();
  facts.windows = static_cast<std::int64_t>(trace.windows.size());
  facts.dropped = trace.dropped();
  if (timeline.simulated) facts.model_error = timeline.model_error;
  add_overhead(trace, facts);
  if (const Timeline::Device* device = busiest(timeline)) {
    facts.device = device_name(trace, device->id);
    facts.busy_share = timeline.busy_share();
    if (facts.overhead_share >= 0)
      facts.overhead_share =
          std::max(facts.overhead_share, steady_overhead(timeline, *device, facts.traced_share));
    if (timeline.seconds > 0) {
      facts.kernel_share = device->kernel_seconds / timeline.seconds;
      facts.copy_share = device->copy_seconds / timeline.seconds;
      facts.exposed_copy_share = device->exposed_copy_seconds / timeline.seconds;
    }
    add_idle(timeline, device->id, facts);
  }
  return facts;
}

Json findings_json(const GpuTrace& trace, const Timeline& timeline, const Diagnosis& diagnosis) {
  Json document = to_json(diagnosis);
  document["command"] = trace.command;
  document["created_utc"] = trace.created_utc;
  document["program"] = trace.program;
  document["origin"] = trace.origin;
  document["facts"] = facts_json(trace_facts(trace, timeline), trace, timeline);
  document["kernels"] = kernels_json(trace, timeline);
  Json notes = trace.notes;
  for (const std::string& note : timeline.notes) notes.push_back(note);
  document["notes"] = std::move(notes);
  return document;
}

}  // namespace fulcrum::report
