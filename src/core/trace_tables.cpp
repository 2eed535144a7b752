// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// The tables of fulcrum.trace/1 that grow with the length of the run, a column a field.
#include "core/trace_tables.h"

#include "core/json_columns.h"

namespace fulcrum {

template <class Io>
static void describe(Io& io, typename Io::template Ref<GpuTrace::Op> o) {
  io.required("kind", o.kind);
  io.required("begin_ns", o.begin_ns);
  io.required("end_ns", o.end_ns);
  io.required("stream", o.stream);
  io.required("shape", o.shape);
  io.required("correlation", o.correlation);
  io.required("graph", o.graph);
  io.required("graph_node", o.graph_node);
  io.required("bytes", o.bytes);
  io.required("copy", o.copy);
  io.required("from", o.from);
  io.required("to", o.to);
  io.required("async", o.async);
  io.required("from_address", o.from_address);
  io.required("to_address", o.to_address);
  io.required("content_hash", o.content_hash);
}

template <class Io>
static void describe(Io& io, typename Io::template Ref<GpuTrace::Call> c) {
  io.required("kind", c.kind);
  io.required("begin_ns", c.begin_ns);
  io.required("end_ns", c.end_ns);
  io.required("thread", c.thread);
  io.required("correlation", c.correlation);
  io.required("stream", c.stream);
  io.required("event", c.event);
  io.required("bytes", c.bytes);
  io.required("address", c.address);
  io.required("per_thread_stream", c.per_thread_stream);
}

template <class Io>
static void describe(Io& io, typename Io::template Ref<GpuTrace::Range> r) {
  io.required("begin_ns", r.begin_ns);
  io.required("end_ns", r.end_ns);
  io.required("thread", r.thread);
  io.required("name", r.name);
}

template <class Io>
static void describe(Io& io, typename Io::template Ref<GpuTrace::Overhead> o) {
  io.required("what", o.what);
  io.required("begin_ns", o.begin_ns);
  io.required("end_ns", o.end_ns);
  io.required("thread", o.thread);
}

template <class Io>
static void describe(Io& io, typename Io::template Ref<GpuTrace::Fault> f) {
  io.required("begin_ns", f.begin_ns);
  io.required("end_ns", f.end_ns);
  io.required("bytes", f.bytes);
  io.required("count", f.count);
  io.required("direction", f.direction);
  io.required("stalled", f.stalled);
  io.required("process", f.process);
  io.required("device", f.device);
}

template <class Io>
static void describe(Io& io, typename Io::template Ref<GpuTrace::Clock> c) {
  io.required("at_ns", c.at_ns);
  io.required("device", c.device);
  io.required("sm_mhz", c.sm_mhz);
  io.required("memory_mhz", c.memory_mhz);
  io.required("watts", c.watts);
  io.required("celsius", c.celsius);
  io.required("reasons", c.reasons);
  io.required("others", c.others);
  io.required("utilisation", c.utilisation);
}

template <class Io>
static void describe(Io& io, typename Io::template Ref<GpuTrace::CounterSample> c) {
  io.required("begin_ns", c.begin_ns);
  io.required("end_ns", c.end_ns);
  io.required("device", c.device);
  io.required("sm_active", c.sm_active);
  io.required("tensor_active", c.tensor_active);
  io.required("warps_active", c.warps_active);
  io.required("instructions", c.instructions);
  io.required("dram_read", c.dram_read);
  io.required("dram", c.dram);
  io.required("l2_hit", c.l2_hit);
  io.required("l1_hit", c.l1_hit);
  io.required("pcie_read_bytes", c.pcie_read_bytes);
  io.required("pcie_write_bytes", c.pcie_write_bytes);
  io.required("sm_throughput", c.sm_throughput);
}

void add_trace_tables(const GpuTrace& trace, Json& json) {
  json["ops"] = write_columns(trace.ops);
  json["calls"] = write_columns(trace.calls);
  json["ranges"] = write_columns(trace.ranges);
  json["overheads"] = write_columns(trace.overheads);
  json["faults"] = write_columns(trace.faults);
  json["clocks"] = write_columns(trace.clocks);
  json["counter_samples"] = write_columns(trace.counter_samples);
}

void read_trace_tables(ReadState& state, const Json& json, GpuTrace& trace) {
  read_columns(state, json, "ops", trace.ops);
  read_columns(state, json, "calls", trace.calls);
  read_columns(state, json, "ranges", trace.ranges);
  read_columns(state, json, "overheads", trace.overheads);
  read_columns(state, json, "faults", trace.faults);
  read_columns(state, json, "clocks", trace.clocks);
  read_columns(state, json, "counter_samples", trace.counter_samples);
}

}  // namespace fulcrum
