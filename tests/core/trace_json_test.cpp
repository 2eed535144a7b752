// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// fulcrum.trace/1 both ways, what is refused, and what a trace, a timeline and findings say of themselves.
#include <fulcrum/core/finding.h>
#include <gtest/gtest.h>

#include "trace/every_record.h"

namespace fulcrum {
namespace {

using test::every_record;

TEST(TraceJson, EverythingIsReadAsItWasWritten) {
  const GpuTrace before = every_record();
  const auto json = json_parse(json_text(to_json(before)), "x");
  ASSERT_TRUE(json.ok()) << json.error().message;
  const auto after = trace_from_json(*json, "x");
  ASSERT_TRUE(after.ok()) << after.error().message;
  EXPECT_EQ(test::difference_of(before, *after), "");
  EXPECT_EQ(after->ops.at(1).from_address, 0xffff'0000'1234'5678u);
  EXPECT_EQ(after->kernel_counters.at(0).metrics.at("dram__bytes.sum"), 1e9);
  EXPECT_EQ(after->totals.at(0).histogram.at(4), 9);
}

TEST(TraceJson, EveryKeyIsNeeded) {
  const Json whole = to_json(every_record());
  for (const auto& [key, value] : whole.items()) {
    if (key == "cpu") continue;  // null or absent: there is none
    Json lacking = whole;
    lacking.erase(key);
    const auto trace = trace_from_json(lacking, "x");
    ASSERT_FALSE(trace.ok()) << key;
    EXPECT_NE(trace.error().message.find(key), std::string::npos) << trace.error().message;
  }
  for (const char* table : {"ops", "calls", "ranges", "overheads", "faults", "clocks", "counter_samples"}) {
    for (const auto& [key, column] : whole[table].items()) {
      Json lacking = whole, shorter = whole;
      lacking[table].erase(key);
      EXPECT_FALSE(trace_from_json(lacking, "x").ok()) << table << '.' << key;
      shorter[table][key].erase(shorter[table][key].size() - 1);
      EXPECT_FALSE(trace_from_json(shorter, "x").ok()) << table << '.' << key;
    }
  }
}

TEST(TraceJson, NumbersThatNameNothingAreRefused) {
  const Json whole = to_json(every_record());
  const auto refused = [&](const char* words, auto change) {
    Json json = whole;
    change(json);
    const auto trace = trace_from_json(json, "x");
    ASSERT_FALSE(trace.ok()) << words;
    EXPECT_NE(trace.error().message.find(words), std::string::npos) << trace.error().message;
  };
  refused("ops[0].stream is 99", [](Json& j) { j["ops"]["stream"][0] = 99u; });
  refused("ops[0].shape is 99", [](Json& j) { j["ops"]["shape"][0] = 99u; });
  refused("calls[0].thread is 99", [](Json& j) { j["calls"]["thread"][0] = 99u; });
  refused("calls[0].stream is 99", [](Json& j) { j["calls"]["stream"][0] = 99u; });
  refused("streams[0].process is 99", [](Json& j) { j["streams"][0]["process"] = 99u; });
  refused("windows[0].process is 99", [](Json& j) { j["windows"][0]["process"] = 99u; });
  refused("totals[0].shape is 99", [](Json& j) { j["totals"][0]["shape"] = 99u; });
  refused("kernel_counters[0].shape is 99", [](Json& j) { j["kernel_counters"][0]["shape"] = 99u; });
  refused("ops.kind[0]", [](Json& j) { j["ops"]["kind"][0] = "dance"; });
  refused("ops.begin_ns[1] is before", [](Json& j) { j["ops"]["begin_ns"][1] = -5; });
  refused("ops.end_ns[0] is before", [](Json& j) { j["ops"]["end_ns"][0] = -5; });
  refused("ops.correlation[0] does not fit",
          [](Json& j) { j["ops"]["correlation"][0] = std::uint64_t{1} << 40; });
  refused("devices[0].max_sm_mhz is missing", [](Json& j) { j["devices"][0].erase("max_sm_mhz"); });
  refused("totals[0].histogram", [](Json& j) { j["totals"][0]["histogram"] = Json{{"wide", 1}}; });
  refused("shapes[0].grid", [](Json& j) { j["shapes"][0]["grid"] = Json::array({1, 2}); });
  refused("fulcrum.trace", [](Json& j) { j["schema"] = "fulcrum.trace/2"; });
}

TEST(TraceJson, AnEmptyTraceIsATrace) {
  const auto trace = trace_from_json(to_json(GpuTrace{}), "x");
  ASSERT_TRUE(trace.ok()) << trace.error().message;
  EXPECT_EQ(test::difference_of(*trace, GpuTrace{}), "");
}

TEST(Trace, TheTracedShareIsThatOfWindowsFromTheFirstOpToTheEnd) {
  GpuTrace trace;
  EXPECT_EQ(trace.traced_share(), 1);
  trace.processes.resize(2);
  trace.streams = {{.process = 0}, {.process = 1}};
  trace.ops = {{.begin_ns = 100, .end_ns = 200}, {.begin_ns = 1000, .end_ns = 1100}};
  EXPECT_EQ(trace.traced_share(), 1);
  trace.windows = {{.process = 0, .begin_ns = 0, .end_ns = 300},
                   {.process = 0, .begin_ns = 900, .end_ns = 1500}};
  EXPECT_DOUBLE_EQ(trace.traced_share(), 0.4);
  trace.ops.back().stream = 1;  // a second process that was traced all the time
  EXPECT_DOUBLE_EQ(trace.traced_share(), 0.7);
  trace.processes[0].end_ns = 2100;  // it went on where nobody looked: the windows are 200 and 600 of 2000
  EXPECT_DOUBLE_EQ(trace.traced_share(), (0.4 + 1) / 2);
  trace.windows.pop_back();
  EXPECT_DOUBLE_EQ(trace.traced_share(), (0.1 + 1) / 2);
}

TEST(Trace, DropsOfAllProcessesAddUp) {
  GpuTrace trace;
  trace.processes = {{.dropped = 3}, {.dropped = 4}};
  EXPECT_EQ(trace.dropped(), 7);
}

TEST(Timeline, TheBusyShareIsThatOfTheBusiestDevice) {
  Timeline timeline;
  EXPECT_EQ(timeline.busy_share(), 0);
  timeline.seconds = 2;
  timeline.devices = {{.id = 0, .busy_seconds = 0.5}, {.id = 1, .busy_seconds = 1.5}};
  EXPECT_DOUBLE_EQ(timeline.busy_share(), 0.75);
  timeline.gaps = {{.begin_ns = 1, .end_ns = 5, .cause = GapCause::module_load, .function = "main"}};
  timeline.kernels = {{.shape = 2, .ops = {1, 2, 3}, .seconds = 1}};
  const Json json = to_json(timeline);
  EXPECT_EQ(json["busy_share"], 0.75);
  EXPECT_EQ(json["gaps"]["cause"][0], "module_load");
  EXPECT_EQ(json["kernels"][0]["ops"], 3);
}

TEST(Findings, TheDocumentHasEveryFieldOfAFinding) {
  Diagnosis diagnosis;
  diagnosis.verdict = "bound by the host";
  diagnosis.findings = {{.id = "launch_bound",
                         .severity = Severity::fix,
                         .claim = "the GPU waits",
                         .evidence = {"76 kernels"},
                         .next_step = "capture a graph",
                         .saved_low = 0.25,
                         .saved_high = 0.5,
                         .grade = Evidence::bounded,
                         .subject = "host",
                         .ops = {3}}};
  diagnosis.waiting = {{.id = "low_occupancy", .blocked_by = "small_grid"}};
  diagnosis.not_checked = {{"sol", "no counters", "use --counters"}};
  const Json json = to_json(diagnosis);
  EXPECT_EQ(json["schema"], "fulcrum.findings/1");
  const Json& finding = json["findings"][0];
  EXPECT_EQ(finding["severity"], "fix");
  EXPECT_EQ(finding["grade"], "bounded");
  EXPECT_EQ(finding["speedup_high"], 2);
  EXPECT_TRUE(finding["blocked_by"].is_null());
  EXPECT_EQ(json["waiting"][0]["blocked_by"], "small_grid");
  EXPECT_EQ(json["not_checked"][0]["why"], "no counters");
}

}  // namespace
}  // namespace fulcrum
