// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// A small trace with something of every kind in it, and how two traces are compared.
#pragma once

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "support/profiles.h"
#include "support/trace_builder.h"

namespace fulcrum::test {

/// Two processes; figures that a float holds exactly, since some are stored as such.
inline GpuTrace every_record() {
  TraceBuilder t;
  t.module_load(5'000'000, "lazy load").alloc(1 << 20).range_begin("step \"1\"\n");
  t.addresses(0xffff'0000'1234'5678, 0x7000'0000'0000, 0xdead'beef'dead'beef);
  t.copy_h2d(1 << 20, MemoryKind::pageable, false).launch("scale(float*, float, long)", 132, 256, 90'000);
  t.counters_of_last_op(40'000, {.sm_active = 0.5,
                                 .tensor_active = 0.25,
                                 .warps_active = 0.75,
                                 .instructions = 1.5,
                                 .dram_read = 0.125,
                                 .dram = 0.375,
                                 .l2_hit = 0.625,
                                 .l1_hit = 0.875,
                                 .pcie_read_bytes = 4096,
                                 .pcie_write_bytes = 512,
                                 .sm_throughput = 0.5});
  t.stream().record_event(1).memset(4096).graph_launch({{"node<4>(int)", 66, 128, 7'000}}, 3);
  t.stream_wait(1).event_sync(1).copy_d2h(64).query().range_end();
  t.clock(1'000'000, 1980, 4, {77, 0}).clock(2'000'000, 1500).fault(10, 20, 65536, true);
  t.drops(3).zero_stamps(2).device_sync();
  t.process("./worker --fast").thread("loader").host_work(5'000'000'000).at(100);
  t.launch("scale(float*, float, long)", 132, 256, 1'000).record_event(2).device_sync();
  t.raw().calls.push_back({.kind = CallKind::device_sync,
                           .begin_ns = 1'000'000'000,
                           .end_ns = 6'000'000'000,  // longer than 32 bits hold
                           .thread = t.current_thread(),
                           .per_thread_stream = true});
  GpuTrace trace = t.trace();
  for (GpuTrace::Call& call : trace.calls) {
    // Numbers of events carry that of their process.
    if (call.event != 0) call.event |= std::uint64_t{trace.threads[call.thread].process} << 48;
  }
  trace.begin_ns = 123'456'789'012'345;
  trace.machine_id = "m-1";
  trace.exit_code = 130;
  trace.counters_refused = "error 35";
  trace.notes = {"one note", "another note"};
  trace.cpu = sample_profile();
  trace.cpu_offset_seconds = 0.25;
  trace.ops.push_back({.kind = GpuOpKind::graph,
                       .begin_ns = trace.ops.back().begin_ns + 1,
                       .end_ns = trace.ops.back().begin_ns + 5,
                       .correlation = 9,
                       .graph = 4});
  trace.shapes[0].cluster[0] = 2;
  trace.shapes[0].static_shared = 1024;
  trace.shapes[0].dynamic_shared = 2048;
  trace.shapes[0].local_bytes = 16;
  trace.windows = {{.process = 0, .begin_ns = 5, .end_ns = 100}, {.process = 1, .begin_ns = 7, .end_ns = 90}};
  trace.totals = {
      {.shape = 0, .stream = 0, .count = 9, .sum_ns = 99, .min_ns = 1, .max_ns = 20, .histogram = {{4, 9}}}};
  trace.kernel_counters = {
      {.shape = 1, .origin = "a.csv", .launches = 2, .metrics = {{"dram__bytes.sum", 1e9}}}};
  trace.binaries = {{"/home/me/app", "abcdef", 1'700'000'000'000'000'000, "/home/me/app.cu", 5}};
  trace.processes[0].refused = {"ENVIRONMENT (14)"};
  trace.processes[0].overhead_seconds = 0.125;
  trace.processes[0].full_overhead_share = 0.5;
  trace.processes[1].begin_ns = 50;
  return trace;
}

/// As text; sizes of files depend on who wrote them.
inline std::string text_of(GpuTrace trace) {
  for (GpuTrace::Process& process : trace.processes) process.file_bytes = 0;
  return json_text(to_json(trace), 1);
}

/// The place where two traces begin to differ; empty: nowhere.
inline std::string difference_of(const GpuTrace& a, const GpuTrace& b) {
  const std::string left = text_of(a), right = text_of(b);
  if (left == right) return "";
  const auto at = std::mismatch(left.begin(), left.end(), right.begin(), right.end());
  const auto begin = static_cast<std::size_t>(std::max<std::ptrdiff_t>(0, at.first - left.begin() - 200));
  return left.substr(begin, 400) + "\n--- and not ---\n" + right.substr(begin, 400);
}

}  // namespace fulcrum::test
