// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Files of other tools, made up by hand: traces of torch.profiler, tables of ncu, and what is exported for Chrome.
#include <fulcrum/trace.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>
#include <tuple>

#include "support/trace_builder.h"
#include "trace/every_record.h"
#include "trace/import/csv.h"
#include "trace/import/names.h"

namespace fulcrum::trace {
namespace {

bool import_notes(const GpuTrace& trace, std::string_view words) {
  return std::any_of(trace.notes.begin(), trace.notes.end(),
                     [&](const std::string& note) { return note.find(words) != note.npos; });
}

// Kineto.

constexpr std::string_view kKineto = R"json({
  "schemaVersion": 1,
  "deviceProperties": [
    {"id": 0, "name": "NVIDIA H200", "totalGlobalMem": 150000000000, "computeMajor": 9, "computeMinor": 0,
     "maxThreadsPerMultiprocessor": 2048, "regsPerMultiprocessor": 65536, "warpSize": 32,
     "sharedMemPerMultiprocessor": 233472, "numSms": 132}],
  "cupti_version": 26, "cuda_driver_version": 13000,
  "baseTimeNanoseconds": 1767225600000000000,
  "distributedInfo": {"rank": 0, "backend": "nccl"},
  "traceEvents": [
    {"ph": "M", "name": "thread_name", "pid": 500, "tid": 501, "ts": 0, "args": {"name": "trainer"}},
    {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 500, "tid": 501, "ts": 100.0, "dur": 50.0, "args": {}},
    {"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#3", "pid": 500, "tid": 501, "ts": 90.5, "dur": 400},
    {"ph": "X", "cat": "cuda_runtime", "name": "cudaMemcpyAsync", "pid": 500, "tid": 501, "ts": 101.25, "dur": 5,
     "args": {"cbid": 41, "correlation": 10}},
    {"ph": "X", "cat": "gpu_memcpy", "name": "Memcpy HtoD (Pageable -> Device)",
                           "pid" : 0, "tid" : 7, "ts" : 110, "dur" : 20.125, "args" : {
  "device" : 0, "context" : 1, "stream" : 7, "correlation" : 10, "bytes" : 65536,
      "memory bandwidth (GB/s)" : 3.2
}
},
    {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernelExC", "pid": 500, "tid": 501, "ts": 120, "dur": 4.5,
     "args": {"correlation": 11}},
    {"ph": "X", "cat": "kernel", "name": "gemm<256>(float*, \"x\")", "pid": 0, "tid": 7, "ts": 140.001, "dur": 30.5,
     "args": {"External id": 5, "queued": 0, "device": 0, "context": 1, "stream": 7, "correlation": 11,
     "registers per thread": 128, "shared memory": 49152, "blocks per SM": 0.5, "warps per SM": 4,
     "grid": [66, 2, 1], "block": [256, 1, 1], "est. achieved occupancy %": 25, "graph id": 2, "graph node id": 9}},
    {"ph": "X", "cat": "gpu_memset", "name": "Memset (Device)", "pid": 0, "tid": 20, "ts": 180, "dur": 1,
     "args": {"device": 0, "stream": 20, "correlation": 12, "bytes": 512}},
    {"ph": "X", "cat": "cuda_driver", "name": "cuEventRecord", "pid": 500, "tid": 501, "ts": 190, "dur": 1,
     "args": {"correlation": 13}},
    {"ph": "X", "cat": "cuda_runtime", "name": "cudaStreamWaitEvent", "pid": 500, "tid": 501, "ts": 192, "dur": 1,
     "args": {"correlation": 14}},
    {"ph": "X", "cat": "cuda_sync", "name": "Stream Wait Event", "pid": 0, "tid": 20, "ts": 192, "dur": 1,
     "args": {"correlation": 14, "device": 0, "stream": 20, "wait_on_stream": 7, "wait_on_cuda_event_record_corr_id": 13}},
    {"ph": "X", "cat": "overhead", "name": "Runtime Triggered Module Loading", "pid": -1, "tid": 0, "ts": 95, "dur": 2},
    {"ph": "s", "id": 11, "pid": 500, "tid": 501, "ts": 120, "cat": "ac2g", "name": "ac2g"},
    {"ph": "X", "cat": "kernel", "name": "timeless", "pid": 0, "tid": 7, "args": {"stream": 7}}
  ],
  "traceName": "run.json"
})json";

TEST(Kineto, WorkCallsAndAnnotationsAreRead) {
  const auto read = from_kineto(kKineto, "run.json");
  ASSERT_TRUE(read.ok()) << read.error().message;
  const GpuTrace& trace = *read;
  EXPECT_EQ(trace.origin, "kineto");
  EXPECT_EQ(trace.created_utc, "2026-01-01T00:00:00Z");
  ASSERT_EQ(trace.devices.size(), 1u);
  EXPECT_EQ(trace.devices[0].sms, 132);
  EXPECT_EQ(trace.processes.at(0).pid, 500);

  // Instants are relative to the earliest, which is that of the step.
  ASSERT_EQ(trace.ops.size(), 3u);
  const GpuTrace::Op &copy = trace.ops[0], &kernel = trace.ops[1], &memset = trace.ops[2];
  EXPECT_EQ(copy.kind, GpuOpKind::copy);
  EXPECT_EQ(copy.begin_ns, 19'500);
  EXPECT_EQ(copy.duration_ns(), 20'125);
  EXPECT_EQ(copy.copy, CopyKind::h2d);
  EXPECT_EQ(copy.from, MemoryKind::pageable);
  EXPECT_EQ(copy.to, MemoryKind::device);
  EXPECT_EQ(copy.bytes, 65536);
  EXPECT_TRUE(copy.async);
  EXPECT_EQ(kernel.begin_ns, 49'501);
  EXPECT_EQ(kernel.graph, 2u);
  EXPECT_EQ(kernel.graph_node, 9u);
  EXPECT_EQ(kernel.correlation, 11u);
  EXPECT_EQ(memset.kind, GpuOpKind::memset);
  EXPECT_TRUE(trace.streams.at(kernel.stream).legacy_default);
  EXPECT_FALSE(trace.streams.at(memset.stream).legacy_default);
  EXPECT_TRUE(import_notes(trace, "1 events without a usable time"));

  const LaunchShape& shape = trace.shapes.at(kernel.shape);
  EXPECT_EQ(shape.name, "gemm<256>(float*, \"x\")");
  EXPECT_EQ(shape.blocks(), 132);
  EXPECT_EQ(shape.registers, 128);
  // 128 registers: 16 warps an SM, two blocks of eight.
  EXPECT_EQ(shape.blocks_per_sm, 2);
  EXPECT_DOUBLE_EQ(shape.occupancy, 0.25);
  EXPECT_EQ(shape.limiter, "registers");

  ASSERT_EQ(trace.ranges.size(), 1u);
  EXPECT_EQ(trace.ranges[0].name, "ProfilerStep");
  EXPECT_EQ(trace.ranges[0].end_ns, 400'000);
  EXPECT_EQ(trace.threads.at(trace.ranges[0].thread).name, "trainer");
  ASSERT_EQ(trace.overheads.size(), 1u);
  EXPECT_EQ(trace.overheads[0].what, "module load");
}

TEST(Kineto, CallsKnowTheirStreamsAndEvents) {
  const auto trace = from_kineto(kKineto, "x");
  ASSERT_TRUE(trace.ok());
  ASSERT_EQ(trace->calls.size(), 4u);
  EXPECT_EQ(trace->calls[0].kind, CallKind::copy);
  EXPECT_EQ(trace->calls[1].kind, CallKind::launch);
  EXPECT_EQ(trace->calls[1].stream, trace->ops[1].stream);
  EXPECT_EQ(trace->calls[2].kind, CallKind::event_record);
  EXPECT_EQ(trace->calls[3].kind, CallKind::stream_wait);
  EXPECT_EQ(trace->calls[3].event, trace->calls[2].event);
  EXPECT_NE(trace->calls[3].event, 0u);
  EXPECT_EQ(trace->calls[3].stream, trace->ops[2].stream);
  EXPECT_TRUE(trace_from_json(to_json(*trace), "x").ok());
}

TEST(Kineto, KernelsOfAGraphLaunchBelongToAGraph) {
  const auto trace = from_kineto(
      R"([{"ph":"X","cat":"cuda_runtime","name":"cudaGraphLaunch","ts":1,"dur":2,"args":{"correlation":5}},
          {"ph":"X","cat":"kernel","name":"a","ts":5,"dur":2,"args":{"stream":7,"correlation":5}},
          {"ph":"X","cat":"kernel","name":"b","ts":8,"dur":2,"args":{"stream":7,"correlation":6}}])",
      "x");
  ASSERT_TRUE(trace.ok()) << trace.error().message;
  EXPECT_NE(trace->ops.at(0).graph, 0u);
  EXPECT_EQ(trace->ops.at(1).graph, 0u);
}

TEST(Kineto, ABareListOfEventsIsReadToo) {
  const auto trace = from_kineto(
      R"([{"ph":"X","cat":"Kernel","name":"k","ts":"1700000000000000.250","dur":2,"args":{"device":3,"stream":9}}])",
      "x");
  ASSERT_TRUE(trace.ok()) << trace.error().message;
  ASSERT_EQ(trace->ops.size(), 1u);
  EXPECT_EQ(trace->ops[0].end_ns, 2'000);
  ASSERT_EQ(trace->devices.size(), 1u) << "one that the file does not describe";
  EXPECT_EQ(trace->devices[0].id, 3);
}

TEST(Kineto, CutOffItIsReadAsFarAsItGoes) {
  for (std::size_t size = 0; size < kKineto.size(); ++size) {
    const auto trace = from_kineto(kKineto.substr(0, size), "x");
    if (!trace.ok()) {
      ASSERT_FALSE(trace.error().hint.empty());
      continue;
    }
    ASSERT_TRUE(import_notes(*trace, "no JSON from byte")) << size;
    ASSERT_TRUE(trace_from_json(to_json(*trace), "x").ok()) << size;
  }
}

TEST(Kineto, DamagedItGivesATraceOrAnError) {
  std::mt19937 random(11);
  int read = 0;
  for (int i = 0; i < 5'000; ++i) {
    std::string damaged(kKineto);
    damaged[random() % damaged.size()] = static_cast<char>(random());
    const auto trace = from_kineto(damaged, "x");
    if (!trace.ok()) continue;
    ++read;
    ASSERT_TRUE(trace_from_json(to_json(*trace), "x").ok()) << damaged;
  }
  EXPECT_GT(read, 1'000);
}

TEST(Kineto, WhatIsNoTraceOfAGpuIsAnError) {
  EXPECT_EQ(from_kineto("", "x").error().code, Code::corrupt);
  EXPECT_EQ(from_kineto("{\"a\": [1, 2]}", "x").error().code, Code::not_found);
  EXPECT_EQ(from_kineto("\x1f\x8b\x08", "x").error().code, Code::unsupported);
}

TEST(Names, CallsOfBothLayersAreRecognised) {
  EXPECT_EQ(call_kind("cudaLaunchKernel"), CallKind::launch);
  EXPECT_EQ(call_kind("cuLaunchKernelEx"), CallKind::launch);
  EXPECT_EQ(call_kind("cudaLaunchHostFunc"), CallKind::other);
  EXPECT_EQ(call_kind("cudaGraphLaunch"), CallKind::graph_launch);
  EXPECT_EQ(call_kind("cuMemcpyHtoDAsync_v2"), CallKind::copy);
  EXPECT_EQ(call_kind("cudaMallocAsync"), CallKind::pool_alloc);
  EXPECT_EQ(call_kind("cudaMalloc"), CallKind::alloc);
  EXPECT_EQ(call_kind("cudaMallocHost"), CallKind::host_alloc);
  EXPECT_EQ(call_kind("cudaFreeHost"), CallKind::host_free);
  EXPECT_EQ(call_kind("cuModuleLoadDataEx"), CallKind::module_load);
  EXPECT_EQ(call_kind("cudaGetDevice"), CallKind::other);
  EXPECT_EQ(call_kind("aten::mm"), CallKind::other);
}

// ncu.

GpuTrace traced() {
  test::TraceBuilder t;
  t.launch("void scale<4>(float*, float const*, long)", 132, 256, 1'000);
  t.launch("void scale<4>(float*, float const*, long)", 264, 256, 1'000);
  t.launch("ns::dot(float const*)", 10, 128, 1'000);
  return t.trace();
}

constexpr std::string_view kLong = R"csv(==PROF== Connected to process 77
the program's own line, with a comma
"ID","Process ID","Process Name","Host Name","Kernel Name","Context","Stream","Block Size","Grid Size","Device","CC","Section Name","Metric Name","Metric Unit","Metric Value"
"0","77","app","127.0.0.1","void scale<4>(float *, const float *, long)","1","7","(256, 1, 1)","(132, 1, 1)","0","9.0","GPU Speed Of Light","DRAM Throughput","%","61.50"
"0","77","app","127.0.0.1","void scale<4>(float *, const float *, long)","1","7","(256, 1, 1)","(132, 1, 1)","0","9.0","x","dram__bytes.sum","Mbyte","1,234.50"
"1","77","app","127.0.0.1","void scale<4>(float *, const float *, long)","1","7","(256, 1, 1)","(132, 1, 1)","0","9.0","x","dram__bytes.sum","Mbyte","1,234.70"
"1","77","app","127.0.0.1","void scale<4>(float *, const float *, long)","1","7","(256, 1, 1)","(132, 1, 1)","0","9.0","x","Duration","usecond","12.5"
"1","77","app","127.0.0.1","void scale<4>(float *, const float *, long)","1","7","(256, 1, 1)","(132, 1, 1)","0","9.0","x","Memory Throughput","Tbyte/s","1.5"
"1","77","app","127.0.0.1","void scale<4>(float *, const float *, long)","1","7","(256, 1, 1)","(132, 1, 1)","0","9.0","x","Memory Throughput","%","62"
"2","77","app","127.0.0.1","other(int)","1","7","(32, 1, 1)","(1, 1, 1)","0","9.0","x","Duration","usecond","1"
)csv";

TEST(Ncu, RowsByMetricAreAveragedOverLaunchesInBaseUnits) {
  GpuTrace trace = traced();
  const Status added = add_ncu(trace, kLong, "a.csv");
  ASSERT_TRUE(added.ok()) << added.error().message;
  ASSERT_EQ(trace.kernel_counters.size(), 1u);
  const GpuTrace::KernelCounters& counters = trace.kernel_counters[0];
  EXPECT_EQ(trace.shapes.at(counters.shape).grid[0], 132);
  EXPECT_EQ(counters.origin, "a.csv");
  EXPECT_EQ(counters.launches, 2);
  EXPECT_NEAR(counters.metrics.at("dram__bytes.sum"), 1.2346e9, 1);
  EXPECT_DOUBLE_EQ(counters.metrics.at("gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed"), 61.5);
  EXPECT_DOUBLE_EQ(counters.metrics.at("gpu__time_duration.sum"), 12'500);
  EXPECT_DOUBLE_EQ(counters.metrics.at("Memory Throughput"), 1.5e12) << "not the share of the same name";
  EXPECT_TRUE(import_notes(trace, "1 of 2 kernels are not in the trace"));
}

TEST(Ncu, ColumnsByMetricHaveTheirUnitsInARowOfTheirOwn) {
  GpuTrace trace = traced();
  const Status added = add_ncu(trace,
                               "\"ID\",\"Kernel Name\",\"Block Size\",\"Grid "
                               "Size\",\"dram__bytes.sum\",\"sm__inst.sum\",\"device__x\"\r\n"
                               "\"\",\"\",\"\",\"\",\"Gbyte\",\"inst\",\"\"\r\n"
                               "\"0\",\"dot\",\"(128, 1, 1)\",\"(10, 1, 1)\",\"2.5\",\"1,000,000\",\"7\"\r\n"
                               "\"1\",\"dot\",\"(128, 1, 1)\",\"(10, 1, 1)\",\"n/a\",\"3,000,000\",\"7\"\r\n",
                               "b.csv");
  ASSERT_TRUE(added.ok()) << added.error().message;
  ASSERT_EQ(trace.kernel_counters.size(), 1u);
  EXPECT_DOUBLE_EQ(trace.kernel_counters[0].metrics.at("dram__bytes.sum"), 2.5e9);
  EXPECT_DOUBLE_EQ(trace.kernel_counters[0].metrics.at("sm__inst.sum"), 2e6);
  EXPECT_EQ(trace.kernel_counters[0].metrics.size(), 2u) << "facts about the device are left out";
}

TEST(Ncu, WhatCannotBeJoinedIsAnError) {
  GpuTrace trace = traced();
  EXPECT_EQ(add_ncu(trace, "", "x").error().code, Code::corrupt);
  EXPECT_EQ(add_ncu(trace, "a,b\n1,2\n", "x").error().code, Code::corrupt);
  EXPECT_EQ(add_ncu(trace, "\"ID\",\"Kernel Name\"\n", "x").error().code, Code::corrupt);
  GpuTrace other;
  EXPECT_EQ(add_ncu(other, kLong, "x").error().code, Code::not_found);
  EXPECT_TRUE(other.kernel_counters.empty());
}

TEST(Ncu, DamagedTablesAreReadOrRefused) {
  std::mt19937 random(13);
  for (int i = 0; i < 5'000; ++i) {
    std::string damaged(kLong);
    for (int j = 0; j < 3; ++j) damaged[random() % damaged.size()] = static_cast<char>(random());
    if (i % 2) damaged.resize(random() % damaged.size());
    GpuTrace trace = traced();
    const Status added = add_ncu(trace, damaged, "x");
    ASSERT_TRUE(added.ok() || !added.error().message.empty());
    for (const auto& counters : trace.kernel_counters) ASSERT_LT(counters.shape, trace.shapes.size());
  }
}

TEST(Csv, QuotedFieldsHoldCommasQuotesAndLineEnds) {
  std::string_view rest = "a,\"b,\"\"c\"\"\nd\",\r\n,e";
  CsvRow row;
  ASSERT_TRUE(next_row(rest, row));
  EXPECT_EQ(row, (CsvRow{"a", "b,\"c\"\nd", ""}));
  ASSERT_TRUE(next_row(rest, row));
  EXPECT_EQ(row, (CsvRow{"", "e"}));
  EXPECT_FALSE(next_row(rest, row));
}

// Chrome.

TEST(Chrome, TheExportIsJsonWithEveryKindOfRow) {
  const GpuTrace trace = test::every_record();
  const auto json = json_parse(chrome_trace(trace), "x");
  ASSERT_TRUE(json.ok()) << json.error().message;
  std::map<std::string, int> phases, categories;
  std::set<std::string> names;
  for (const Json& event : (*json)["traceEvents"]) {
    ++phases[event["ph"]];
    if (event.contains("cat")) ++categories[event["cat"]];
    names.insert(event["name"]);
    if (event["ph"] == "X") {
      EXPECT_GE(event["dur"].get<double>(), 0);
    }
  }
  EXPECT_EQ(categories["kernel"], 3);
  EXPECT_EQ(categories["gpu_memcpy"], 2);
  EXPECT_EQ(categories["gpu_memset"], 1);
  EXPECT_EQ(categories["graph"], 1);
  EXPECT_EQ(categories["cuda_runtime"], static_cast<int>(trace.calls.size()));
  EXPECT_EQ(categories["user_annotation"], 1);
  EXPECT_EQ(categories["overhead"], 1);
  EXPECT_EQ(categories["managed"], 1);
  EXPECT_EQ(categories["window"], 2);
  EXPECT_EQ(categories["cpu"] + categories["blocked"], static_cast<int>(trace.cpu->samples.size()));
  EXPECT_EQ(phases["s"], phases["f"]);
  EXPECT_GE(phases["s"], 5);
  EXPECT_GT(phases["C"], 6);
  EXPECT_TRUE(names.count("step \"1\"\n"));
}

TEST(Chrome, ArrowsGoFromTheCallToWhatItLaunched) {
  const GpuTrace trace = traced();
  const auto json = json_parse(chrome_trace(trace), "x");
  ASSERT_TRUE(json.ok()) << json.error().message;
  std::map<std::int64_t, double> begins, ends;
  for (const Json& event : (*json)["traceEvents"]) {
    if (event["ph"] == "s") begins[event["id"]] = event["ts"];
    if (event["ph"] == "f") ends[event["id"]] = event["ts"];
  }
  ASSERT_EQ(begins.size(), 3u);
  for (std::size_t i = 0; i < 3; ++i) {
    const auto id = static_cast<std::int64_t>(trace.ops[i].correlation);
    EXPECT_DOUBLE_EQ(begins.at(id), static_cast<double>(trace.calls[i].begin_ns) / 1000);
    EXPECT_DOUBLE_EQ(ends.at(id), static_cast<double>(trace.ops[i].begin_ns) / 1000);
  }
}

TEST(Chrome, ItsOwnExportCanBeImported) {
  const GpuTrace before = traced();
  const auto after = from_kineto(chrome_trace(before), "x");
  ASSERT_TRUE(after.ok()) << after.error().message;
  ASSERT_EQ(after->ops.size(), before.ops.size());
  for (std::size_t i = 0; i < before.ops.size(); ++i) {
    EXPECT_EQ(after->ops[i].duration_ns(), before.ops[i].duration_ns());
    EXPECT_EQ(after->shapes[after->ops[i].shape].name, before.shapes[before.ops[i].shape].name);
  }
}

TEST(Chrome, CallsAndCopiesHaveTheNamesThatReadersKnow) {
  for (int kind = int(CallKind::launch); kind <= int(CallKind::prefetch); ++kind)
    EXPECT_EQ(call_kind(call_name(CallKind(kind), true)), CallKind(kind)) << kind;
  EXPECT_EQ(call_name(CallKind::copy, true), "cudaMemcpyAsync");
  EXPECT_EQ(call_name(CallKind::copy, false), "cudaMemcpy");
  const GpuTrace::Op up{
      .kind = GpuOpKind::copy, .copy = CopyKind::h2d, .from = MemoryKind::pinned, .to = MemoryKind::device};
  EXPECT_EQ(copy_name(up), "Memcpy HtoD (Pinned -> Device)");
  GpuTrace::Op again{.kind = GpuOpKind::copy};
  read_copy_name(copy_name(up), again);
  EXPECT_EQ(again.copy, up.copy);
  EXPECT_EQ(again.from, up.from);
  EXPECT_EQ(again.to, up.to);
}

TEST(Chrome, WhatFindingsNeedComesBack) {
  test::TraceBuilder t;
  const auto one = t.stream().current_stream(), two = t.stream().current_stream();
  t.on_stream(one).copy_h2d(1 << 20, MemoryKind::pageable, false).launch("work(float*)", 66, 1024, 10'000);
  t.record_event(1).on_stream(two).stream_wait(1).copy_d2h(4096).stream_sync().alloc(4096);
  const GpuTrace before = t.trace();
  const auto read = from_kineto(chrome_trace(before), "x");
  ASSERT_TRUE(read.ok()) << read.error().message;
  const GpuTrace& after = *read;
  EXPECT_EQ(after.devices.front().sms, 132);
  EXPECT_EQ(after.devices.front().name, before.devices.front().name);
  EXPECT_DOUBLE_EQ(after.shapes.front().occupancy, before.shapes.front().occupancy);
  ASSERT_EQ(after.ops.size(), before.ops.size());
  for (std::size_t i = 0; i < before.ops.size(); ++i) {
    const GpuTrace::Op &a = after.ops[i], &b = before.ops[i];
    EXPECT_EQ(std::tuple(a.kind, a.copy, a.from, a.to, a.bytes),
              std::tuple(b.kind, b.copy, b.from, b.to, b.bytes));
    EXPECT_EQ(after.streams[a.stream].id, before.streams[b.stream].id);
    if (b.kind == GpuOpKind::copy) {
      EXPECT_EQ(a.async, b.async);
    }
  }
  ASSERT_EQ(after.calls.size(), before.calls.size());
  for (std::size_t i = 0; i < before.calls.size(); ++i) {
    const GpuTrace::Call &a = after.calls[i], &b = before.calls[i];
    EXPECT_EQ(a.kind, b.kind);
    EXPECT_EQ(a.bytes, b.bytes);
    EXPECT_EQ(a.event != 0, b.event != 0) << i;
    if (b.stream >= 0) {
      EXPECT_EQ(after.streams[std::size_t(a.stream)].id, before.streams[std::size_t(b.stream)].id) << i;
    }
  }
  EXPECT_EQ(after.calls[3].event, after.calls[2].event) << "the wait is for the record";
}

TEST(Chrome, WindowsOfOneProcessAreWindowsAgain) {
  GpuTrace before = traced();
  const std::int64_t end = before.ops.back().end_ns;
  before.windows = {{.process = 0, .begin_ns = 0, .end_ns = end / 2},
                    {.process = 0, .begin_ns = end / 2 + 1000, .end_ns = end}};
  const auto after = from_kineto(chrome_trace(before), "x");
  ASSERT_TRUE(after.ok()) << after.error().message;
  ASSERT_EQ(after->windows.size(), 2u);
  const std::int64_t apart = after->windows[1].begin_ns - after->windows[0].end_ns;
  EXPECT_EQ(apart, 1000);
  EXPECT_EQ(after->windows[1].end_ns - after->windows[1].begin_ns, end - end / 2 - 1000);
}

TEST(Chrome, AnEmptyTraceIsAnEmptyList) {
  const auto json = json_parse(chrome_trace(GpuTrace{}), "x");
  ASSERT_TRUE(json.ok()) << json.error().message;
  EXPECT_TRUE((*json)["traceEvents"].empty());
}

}  // namespace
}  // namespace fulcrum::trace
