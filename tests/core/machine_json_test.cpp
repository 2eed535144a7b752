// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// The JSON of machine profiles.
#include <nlohmann/json.hpp>

#include "core_support.h"

namespace fulcrum {
namespace {

using test::contains;
using test::error_text;

Machine sample_machine() {
  Machine m;
  m.id = "0123";
  m.name = "desk";
  m.kernel = "6.1";
  m.measured_utc = "2026-01-31T12:00:00Z";
  m.topology.model = "CPU";
  m.topology.vendor = "V";
  m.topology.microcode = "0x1";
  m.topology.governor = "performance";
  m.topology.cores = 1;
  m.topology.threads = 2;
  m.topology.usable_threads = 2;
  m.topology.sockets = 1;
  m.topology.numa_nodes = 1;
  m.topology.smt = true;
  m.topology.turbo = "on";
  m.topology.transparent_huge_pages = "madvise";
  m.topology.nominal_hz = 2.5e9;
  m.topology.memory_bytes = 1024;
  m.topology.isa = {"avx3", "avx2"};
  m.cpu.threads = 2;
  MemoryLevel l1;
  l1.name = "L1";
  l1.capacity_bytes = 49152;
  l1.shared_by_threads = 2;
  l1.one_thread["read"] = Quantity{4, 3, 5, Source::measured};
  l1.latency_seconds = Quantity{1e-9, 1e-9, 2e-9, Source::measured};
  MemoryLevel dram;
  dram.name = "DRAM";
  dram.all_threads["copy"] = Quantity{2, 1, 3, Source::assumed};
  m.cpu.levels = {l1, dram};
  m.cpu.flops_one_thread["avx3"] = Quantity{8, 7, 9, Source::measured};
  return m;
}

Machine with_gpu() {
  Machine m = sample_machine();
  m.driver = "555.1";
  GpuCeilings gpu;
  gpu.name = "G";
  gpu.compute_capability = "9.0";
  gpu.driver = "555.1";
  gpu.max_sm_hz = 1.98e9;
  gpu.sms = 132;
  gpu.l2_bytes = 50;
  gpu.memory_bytes = 100;
  gpu.rates["hbm_read"] = Quantity{4, 3, 5, Source::datasheet};
  gpu.flops["fp32"] = Quantity{6, 6, 6, Source::datasheet};
  gpu.latencies["launch"] = Quantity{1, 1, 1, Source::measured};
  gpu.link["pinned_h2d"] = {{1024, Quantity{1, 1, 2, Source::measured}},
                            {4096, Quantity{3, 2, 4, Source::measured}}};
  gpu.tables["read_by_ctas"] = {{1, Quantity{2, 1, 3, Source::measured}},
                                {132, Quantity{4, 4, 5, Source::measured}}};
  m.gpus = {gpu};
  m.written_by = "fulcrum 0.1.0 (abc)";
  m.notes = {"windows of DRAM copy are in two groups"};
  return m;
}

constexpr std::string_view kGolden =
    R"({"schema":"fulcrum.machine/1","id":"0123","name":"desk","kernel":"6.1","driver":null,)"
    R"("measured_utc":"2026-01-31T12:00:00Z","written_by":null,"topology":{"model":"CPU","vendor":"V","microcode":"0x1",)"
    R"("governor":"performance","cores":1,"threads":2,"usable_threads":2,"sockets":1,"numa_nodes":1,"smt":true,)"
    R"("virtualised":false,"turbo":"on","transparent_huge_pages":"madvise","nominal_hz":2500000000.0,)"
    R"("memory_bytes":1024,"isa":["avx3","avx2"]},"cpu":{"threads":2,"levels":[{"name":"L1","capacity_bytes":49152,)"
    R"("shared_by_threads":2,"one_thread":{"read":{"value":4.0,"low":3.0,"high":5.0,"source":"measured"}},)"
    R"("all_threads":{},"latency_seconds":{"value":1e-09,"low":1e-09,"high":2e-09,"source":"measured"}},)"
    R"({"name":"DRAM","capacity_bytes":0,"shared_by_threads":1,"one_thread":{},)"
    R"("all_threads":{"copy":{"value":2.0,"low":1.0,"high":3.0,"source":"assumed"}},"latency_seconds":null}],)"
    R"("flops_one_thread":{"avx3":{"value":8.0,"low":7.0,"high":9.0,"source":"measured"}},"flops_all_threads":{},)"
    R"("fork_join_seconds":{"value":0.0,"low":0.0,"high":0.0,"source":"measured"},)"
    R"("clock_resolution_seconds":{"value":0.0,"low":0.0,"high":0.0,"source":"measured"},)"
    R"("clock_read_seconds":{"value":0.0,"low":0.0,"high":0.0,"source":"measured"}},"gpus":[],"notes":[]})";

TEST(MachineJson, HasTheShapeOfTheSchema) { EXPECT_EQ(json_text(to_json(sample_machine())), kGolden); }

TEST(MachineJson, LinkTablesAreListsOfBytesAndSeconds) {
  EXPECT_EQ(
      json_text(to_json(with_gpu())["gpus"][0]["link"]),
      R"({"pinned_h2d":[{"bytes":1024,"seconds":{"value":1.0,"low":1.0,"high":2.0,"source":"measured"}},)"
      R"({"bytes":4096,"seconds":{"value":3.0,"low":2.0,"high":4.0,"source":"measured"}}]})");
}

TEST(MachineJson, ReadsBackWhatItWrote) {
  for (const Machine& machine : {sample_machine(), with_gpu()}) {
    const std::string text = json_text(to_json(machine), 2);
    const Machine back = machine_from_json(json_parse(text, "x").value(), "x").value();
    EXPECT_EQ(json_text(to_json(back), 2), text);
    EXPECT_EQ(back.driver, machine.driver);
    EXPECT_EQ(back.written_by, machine.written_by);
    EXPECT_EQ(back.notes, machine.notes);
  }
}

TEST(MachineJson, OtherTablesAreListsOfKeysAndRates) {
  const Json gpu = to_json(with_gpu())["gpus"][0];
  EXPECT_EQ(json_text(gpu["tables"]["read_by_ctas"][1]),
            R"({"key":132,"rate":{"value":4.0,"low":4.0,"high":5.0,"source":"measured"}})");
  EXPECT_EQ(gpu["compute_capability"], "9.0");
  EXPECT_EQ(gpu["max_sm_hz"], 1.98e9);
}

TEST(MachineJson, AProfileOfAnOlderProgramIsStillRead) {
  Json old = to_json(with_gpu());
  for (const char* key : {"written_by", "notes"}) old.erase(key);
  for (const char* key : {"compute_capability", "driver", "max_sm_hz", "tables"}) old["gpus"][0].erase(key);
  const auto back = machine_from_json(old, "m.json");
  ASSERT_TRUE(back.ok()) << back.error().message;
  EXPECT_TRUE(back->written_by.empty());
  EXPECT_TRUE(back->gpus[0].tables.empty());
  EXPECT_EQ(back->gpus[0].link.at("pinned_h2d").size(), 2u);
}

TEST(MachineJson, DamageIsReportedWithItsPath) {
  Json bad = to_json(with_gpu());
  bad["cpu"]["levels"][0]["one_thread"]["read"]["value"] = "4";
  EXPECT_EQ(machine_from_json(bad, "m.json").error().message,
            "m.json: cpu.levels[0].one_thread.read.value must be a number, but is of type string");
  bad = to_json(with_gpu());
  bad["gpus"][0]["link"]["pinned_h2d"][1].erase("bytes");
  EXPECT_EQ(machine_from_json(bad, "m.json").error().message,
            "m.json: gpus[0].link.pinned_h2d[1].bytes is missing");
  bad = to_json(with_gpu());
  bad["cpu"]["levels"][1]["all_threads"]["copy"]["source"] = "guessed";
  EXPECT_TRUE(contains(error_text(machine_from_json(bad, "m.json")),
                       "cpu.levels[1].all_threads.copy.source unknown word 'guessed'"));
  bad = to_json(with_gpu());
  bad["topology"]["smt"] = 1;
  EXPECT_TRUE(contains(error_text(machine_from_json(bad, "m.json")), "topology.smt must be true or false"));
  bad["schema"] = "fulcrum.bench/1";
  EXPECT_TRUE(contains(error_text(machine_from_json(bad, "m.json")), "schema is fulcrum.bench/1"));
}

}  // namespace
}  // namespace fulcrum
