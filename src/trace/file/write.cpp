// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// A whole trace as one file: a section a process, the first of them with what is known of the run. What was read from
// the files of the processes and written here is read again as the same trace.
#include <fulcrum/trace.h>

#include <nlohmann/json.hpp>

#include "trace/file/names.h"
#include "trace/file/process_writer.h"

namespace fulcrum::trace {
namespace {

using file::ProcessWriter;
using file::SectionWriter;

/// Stamps are positive, and 0 says that there is none; a trace that came without a clock gets one.
constexpr std::int64_t kOwnBase = std::int64_t{1} << 40;
// Of a machine that has just started; what is no clock at all (0, or an importer's small number) lies below.
constexpr std::int64_t kEarliestBase = 1'000'000'000;

/// When the run began, unless some stamp would then be none.
std::int64_t stamp_of_begin(const GpuTrace& trace) {
  std::int64_t earliest = 0, latest = 0;
  const auto look = [&](const auto& rows) {
    for (const auto& row : rows) {
      earliest = std::min(earliest, row.begin_ns);
      latest = std::max(latest, row.end_ns);
    }
  };
  look(trace.ops);
  look(trace.calls);
  look(trace.ranges);
  const bool usable = trace.begin_ns >= kEarliestBase && trace.begin_ns + earliest > 0 &&
                      trace.begin_ns + latest < file::kLatestStamp;
  return usable ? trace.begin_ns : kOwnBase - earliest;
}

std::string kernel_counters(const GpuTrace& trace) {
  if (trace.kernel_counters.empty()) return "";
  Json list = Json::array();
  for (const GpuTrace::KernelCounters& counters : trace.kernel_counters) {
    Json metrics = Json::object();
    for (const auto& [name, value] : counters.metrics) metrics[name] = value;
    list.push_back(Json{{"shape", ProcessWriter::id_of(counters.shape)},
                        {"origin", counters.origin},
                        {"launches", static_cast<unsigned>(std::max(0, counters.launches))},
                        {"metrics", std::move(metrics)}});
  }
  return json_text(list);
}

void write_run(const GpuTrace& trace, std::int64_t base_ns, SectionWriter& out) {
  namespace p = file::property;
  out.property(p::kRunCommand, trace.command);
  out.property(p::kCreated, trace.created_utc);
  out.property(p::kMachine, trace.machine_id);
  out.property(p::kProgram, trace.program);
  out.property(p::kOrigin, trace.origin);
  out.property(p::kBaseNs, std::to_string(base_ns));
  out.property(p::kBeginNs, std::to_string(trace.begin_ns));
  out.property(p::kWallNs, std::to_string(trace.wall_ns));
  out.property(p::kExitCode, double(trace.exit_code));
  out.property(p::kCountersRefused, trace.counters_refused);
  for (const std::string& note : trace.notes) out.property(p::kNote, note);
  if (trace.cpu) {
    out.property(p::kCpuProfile, json_text(to_json(*trace.cpu)));
    out.property(p::kCpuOffset, trace.cpu_offset_seconds);
  }
  out.property(p::kKernelCounters, kernel_counters(trace));
}

void write_process(const GpuTrace::Process& process, std::int64_t base_ns, SectionWriter& out) {
  namespace p = file::property;
  out.property(p::kCommand, process.command);
  out.property(p::kProfiler, process.profiler);
  out.property(p::kCuptiVersion, double(process.cupti_version));
  out.property(p::kDriverVersion, double(process.driver_version));
  for (const std::string& kind : process.kinds) out.property(p::kKind, kind);
  for (const std::string& kind : process.refused) out.property(p::kRefused, kind);
  out.property(p::kFullOverheadShare, process.full_overhead_share);
  out.property(p::kOverheadSeconds, process.overhead_seconds);
  if (!process.complete) {
    out.property(p::kEnd, process.end);
    out.property(p::kEndNs, std::to_string(base_ns + process.end_ns));
  }
}

std::string section(const GpuTrace& trace, std::uint32_t number, std::int64_t base_ns) {
  const GpuTrace::Process process =
      number < trace.processes.size() ? trace.processes[number] : GpuTrace::Process{.complete = true};
  SectionWriter out(process.pid, process.parent, base_ns + process.begin_ns, 0);
  if (number == 0) write_run(trace, base_ns, out);
  write_process(process, base_ns, out);
  out.write_properties();
  ProcessWriter records(trace, number, base_ns, out);
  records.definitions();
  records.work();
  if (number == 0) records.shared_samples();
  // Without reasons: they are notes of the run already.
  if (process.dropped > 0 || process.zero_stamps > 0)
    out.records(file::Kind::drop,
                std::vector<file::Drop>{{base_ns, process.dropped, process.zero_stamps, 0, 0}});
  if (process.complete) {
    const file::Footer footer{base_ns + process.end_ns, out.text(process.end), 0, process.overhead_seconds};
    out.records(file::Kind::footer, std::vector{footer});
  }
  return out.take();
}

}  // namespace

std::string bytes_of(const GpuTrace& trace) {
  const std::int64_t base_ns = stamp_of_begin(trace);
  std::string bytes = section(trace, 0, base_ns);
  for (std::uint32_t i = 1; i < trace.processes.size(); ++i) bytes += section(trace, i, base_ns);
  return bytes;
}

}  // namespace fulcrum::trace
