// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// fulcrum.trace/1: what is said of a trace as a whole and its small tables as objects, what comes in hundreds of
// thousands as columns (trace_tables.h). Addresses and hashes are whole numbers of 64 bits.
#include <fulcrum/core/trace.h>

#include <cmath>

#include "core/json_columns.h"
#include "core/trace_tables.h"

namespace fulcrum {

template <class Io>
static void describe(Io& io, typename Io::template Ref<GpuTrace::Device> d) {
  io.required("id", d.id);
  io.required("name", d.name);
  io.required("sms", d.sms);
  io.required("compute_major", d.compute_major);
  io.required("compute_minor", d.compute_minor);
  io.required("max_threads_per_sm", d.max_threads_per_sm);
  io.required("max_blocks_per_sm", d.max_blocks_per_sm);
  io.required("registers_per_sm", d.registers_per_sm);
  io.required("shared_per_sm", d.shared_per_sm);
  io.required("memory_bytes", d.memory_bytes);
  io.required("memory_bytes_per_second", d.memory_bytes_per_second);
  io.required("max_sm_mhz", d.max_sm_mhz);
}

template <class Io>
static void describe(Io& io, typename Io::template Ref<GpuTrace::Process> p) {
  io.required("pid", p.pid);
  io.required("parent", p.parent);
  io.required("command", p.command);
  io.required("profiler", p.profiler);
  io.required("cupti_version", p.cupti_version);
  io.required("driver_version", p.driver_version);
  io.required("begin_ns", p.begin_ns);
  io.required("end_ns", p.end_ns);
  io.required("complete", p.complete);
  io.required("end", p.end);
  io.required("kinds", p.kinds);
  io.required("refused", p.refused);
  io.required("overhead_seconds", p.overhead_seconds);
  io.required("full_overhead_share", p.full_overhead_share);
  io.required("dropped", p.dropped);
  io.required("zero_stamps", p.zero_stamps);
  io.required("file_bytes", p.file_bytes);
}

template <class Io>
static void describe(Io& io, typename Io::template Ref<GpuTrace::Stream> s) {
  io.required("process", s.process);
  io.required("device", s.device);
  io.required("id", s.id);
  io.required("legacy_default", s.legacy_default);
  io.required("blocking", s.blocking);
}

template <class Io>
static void describe(Io& io, typename Io::template Ref<LaunchShape> s) {
  io.required("name", s.name);
  io.required("grid", s.grid);
  io.required("block", s.block);
  io.required("cluster", s.cluster);
  io.required("registers", s.registers);
  io.required("static_shared", s.static_shared);
  io.required("dynamic_shared", s.dynamic_shared);
  io.required("local_bytes", s.local_bytes);
  io.required("blocks_per_sm", s.blocks_per_sm);
  io.required("occupancy", s.occupancy);
  io.required("limiter", s.limiter);
}

template <class Io>
static void describe(Io& io, typename Io::template Ref<GpuTrace::Thread> t) {
  io.required("process", t.process);
  io.required("tid", t.tid);
  io.required("name", t.name);
}

template <class Io>
static void describe(Io& io, typename Io::template Ref<GpuTrace::Window> w) {
  io.required("process", w.process);
  io.required("begin_ns", w.begin_ns);
  io.required("end_ns", w.end_ns);
}

template <class Io>
static void describe(Io& io, typename Io::template Ref<GpuTrace::Total> t) {
  io.required("shape", t.shape);
  io.required("stream", t.stream);
  io.required("count", t.count);
  io.required("sum_ns", t.sum_ns);
  io.required("min_ns", t.min_ns);
  io.required("max_ns", t.max_ns);
  io.required("histogram", t.histogram);
}

template <class Io>
static void describe(Io& io, typename Io::template Ref<GpuTrace::KernelCounters> k) {
  io.required("shape", k.shape);
  io.required("origin", k.origin);
  io.required("launches", k.launches);
  io.required("metrics", k.metrics);
}

template <class Io>
static void describe(Io& io, typename Io::template Ref<GpuTrace::Binary> b) {
  io.required("path", b.path);
  io.required("build_id", b.build_id);
  io.required("modified_ns", b.modified_ns);
  io.required("newer", b.newer);
  io.required("newer_by_ns", b.newer_by_ns);
}

template <class Io>
static void describe(Io& io, typename Io::template Ref<GpuTrace> t) {
  io.required("command", t.command);
  io.required("created_utc", t.created_utc);
  io.required("machine_id", t.machine_id);
  io.required("program", t.program);
  io.required("origin", t.origin);
  io.required("begin_ns", t.begin_ns);
  io.required("wall_ns", t.wall_ns);
  io.required("exit_code", t.exit_code);
  io.required("notes", t.notes);
  io.required("counters_refused", t.counters_refused);
  io.required("cpu_offset_seconds", t.cpu_offset_seconds);
  io.required("devices", t.devices);
  io.required("processes", t.processes);
  io.required("threads", t.threads);
  io.required("streams", t.streams);
  io.required("windows", t.windows);
  io.required("shapes", t.shapes);
  io.required("totals", t.totals);
  io.required("kernel_counters", t.kernel_counters);
  io.required("binaries", t.binaries);
}

namespace {

/// Figures are finite; a writer leaves out what is no number.
void check_figures(ReadState& state, const GpuTrace& trace) {
  const auto check = [&state](const char* table, std::size_t row, const char* key, double value) {
    if (!std::isfinite(value))
      state.fail(fmt::format("{}[{}].{}", table, row, key), std::isnan(value) ? "is missing" : "is infinite");
  };
  if (!std::isfinite(trace.cpu_offset_seconds)) state.fail("cpu_offset_seconds", "is missing");
  for (std::size_t i = 0; i < trace.devices.size(); ++i) {
    check("devices", i, "memory_bytes_per_second", trace.devices[i].memory_bytes_per_second);
    check("devices", i, "max_sm_mhz", trace.devices[i].max_sm_mhz);
  }
  for (std::size_t i = 0; i < trace.processes.size(); ++i) {
    check("processes", i, "overhead_seconds", trace.processes[i].overhead_seconds);
    check("processes", i, "full_overhead_share", trace.processes[i].full_overhead_share);
  }
  for (std::size_t i = 0; i < trace.shapes.size(); ++i)
    check("shapes", i, "occupancy", trace.shapes[i].occupancy);
}

/// Instants lie within 18 years of the begin, so that sums and differences of two of them fit.
template <class Row>
void check_spans(ReadState& state, const char* table, const std::vector<Row>& rows) {
  for (std::size_t i = 0; i < rows.size() && !state.error(); ++i) {
    constexpr std::int64_t kFarthest = std::int64_t{1} << 59;
    for (const auto& [key, instant] : {std::pair{"begin_ns", rows[i].begin_ns}, {"end_ns", rows[i].end_ns}}) {
      if (instant < -kFarthest || instant > kFarthest)
        state.fail(fmt::format("{}.{}[{}]", table, key, i), "is no instant");
    }
    if (rows[i].end_ns < rows[i].begin_ns)
      state.fail(fmt::format("{}.end_ns[{}]", table, i), "is before its begin");
  }
}

void check_instants(ReadState& state, const GpuTrace& trace) {
  check_spans(state, "ops", trace.ops);
  check_spans(state, "calls", trace.calls);
  check_spans(state, "ranges", trace.ranges);
  check_spans(state, "overheads", trace.overheads);
  check_spans(state, "faults", trace.faults);
  check_spans(state, "counter_samples", trace.counter_samples);
  check_spans(state, "windows", trace.windows);
  check_spans(state, "processes", trace.processes);
  struct Instant {
    std::int64_t begin_ns, end_ns;
  };
  std::vector<Instant> clocks;
  for (const GpuTrace::Clock& clock : trace.clocks) clocks.push_back({clock.at_ns, clock.at_ns});
  check_spans(state, "clocks", clocks);
  if (trace.begin_ns < 0 || trace.begin_ns >= std::int64_t{1} << 61) state.fail("begin_ns", "is no instant");
  check_spans(state, "wall", std::vector<Instant>{{0, trace.wall_ns}});
}

/// Every number names something that is there.
void check_references(ReadState& state, const GpuTrace& trace) {
  const auto check = [&state](const char* table, std::size_t row, const char* key, std::uint64_t number,
                              std::size_t count) {
    if (number >= count)
      state.fail(fmt::format("{}[{}].{}", table, row, key),
                 fmt::format("is {}, but there are {}", number, count));
  };
  const std::size_t processes = trace.processes.size(), streams = trace.streams.size(),
                    threads = trace.threads.size(), shapes = trace.shapes.size();
  for (std::size_t i = 0; i < streams; ++i)
    check("streams", i, "process", trace.streams[i].process, processes);
  for (std::size_t i = 0; i < threads; ++i)
    check("threads", i, "process", trace.threads[i].process, processes);
  for (std::size_t i = 0; i < trace.windows.size(); ++i)
    check("windows", i, "process", trace.windows[i].process, processes);
  for (std::size_t i = 0; i < trace.faults.size(); ++i)
    check("faults", i, "process", trace.faults[i].process, processes);
  for (std::size_t i = 0; i < trace.ops.size(); ++i) {
    check("ops", i, "stream", trace.ops[i].stream, streams);
    if (trace.ops[i].kind == GpuOpKind::kernel) check("ops", i, "shape", trace.ops[i].shape, shapes);
    if (i > 0 && trace.ops[i].begin_ns < trace.ops[i - 1].begin_ns)
      state.fail(fmt::format("ops.begin_ns[{}]", i), "is before that of the op in front of it");
  }
  for (std::size_t i = 0; i < trace.calls.size(); ++i) {
    const GpuTrace::Call& call = trace.calls[i];
    check("calls", i, "thread", call.thread, threads);
    if (call.stream >= 0) check("calls", i, "stream", static_cast<std::uint64_t>(call.stream), streams);
    if (i > 0 && call.begin_ns < trace.calls[i - 1].begin_ns)
      state.fail(fmt::format("calls.begin_ns[{}]", i), "is before that of the call in front of it");
  }
  for (std::size_t i = 0; i < trace.ranges.size(); ++i)
    check("ranges", i, "thread", trace.ranges[i].thread, threads);
  for (std::size_t i = 0; i < trace.overheads.size(); ++i)
    check("overheads", i, "thread", trace.overheads[i].thread, threads);
  for (std::size_t i = 0; i < trace.totals.size(); ++i) {
    check("totals", i, "shape", trace.totals[i].shape, shapes);
    check("totals", i, "stream", trace.totals[i].stream, streams);
  }
  for (std::size_t i = 0; i < trace.kernel_counters.size(); ++i)
    check("kernel_counters", i, "shape", trace.kernel_counters[i].shape, shapes);
}

}  // namespace

Json to_json(const GpuTrace& trace) {
  Json json = Json::object({{"schema", "fulcrum.trace/1"}});
  const Json fields = write_fields(trace);
  for (const auto& [key, field] : fields.items()) json[key] = field;
  add_trace_tables(trace, json);
  json["cpu"] = trace.cpu ? to_json(*trace.cpu) : Json(nullptr);
  return json;
}

Result<GpuTrace> trace_from_json(const Json& json, std::string_view origin) {
  FULCRUM_CHECK(json_expect_schema(json, "trace", origin));
  ReadState state(origin);
  GpuTrace trace;
  decode(state, json, "", trace);
  if (!state.error()) read_trace_tables(state, json, trace);
  if (!state.error()) check_figures(state, trace);
  if (!state.error()) check_instants(state, trace);
  if (!state.error()) check_references(state, trace);
  if (state.error()) return *state.error();
  if (const auto cpu = json.find("cpu"); cpu != json.end() && !cpu->is_null()) {
    FULCRUM_TRY(trace.cpu, profile_from_json(*cpu, origin));
  }
  return trace;
}

}  // namespace fulcrum
