// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// A trace as text, document and page: word for word in a narrow and a wide terminal, and what must never be claimed.
#include <fulcrum/report/trace.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/program.h"

namespace fulcrum::report {
namespace {

constexpr std::int64_t kStepNs = 2'000'000;
constexpr int kSteps = 30, kKernels = 10;

LaunchShape shape(std::string name, std::int64_t blocks, std::string limiter) {
  LaunchShape made;
  made.name = std::move(name);
  made.grid[0] = blocks;
  made.block[0] = 256;
  made.registers = 64;
  made.blocks_per_sm = 4;
  made.occupancy = 0.5;
  made.limiter = std::move(limiter);
  return made;
}

/// A loop of one upload and ten short kernels that wait for the host.
GpuTrace loop() {
  GpuTrace trace;
  trace.command = "python train.py --epochs 3";
  trace.created_utc = "2026-01-31T12:00:00Z";
  trace.program = "fulcrum 0";
  trace.devices.push_back({.id = 0, .name = "NVIDIA H200", .sms = 132});
  GpuTrace::Process process;
  process.pid = 4711;
  process.end_ns = kSteps * kStepNs;
  process.overhead_seconds = 0.002;
  process.full_overhead_share = 0.07;
  trace.processes.push_back(process);
  trace.streams.push_back({.process = 0, .device = 0, .id = 7, .legacy_default = true});
  trace.threads.push_back({.process = 0, .tid = 4711, .name = "python"});
  trace.shapes = {
      shape("void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, "
            "std::array<char*, 3ul> >(int, at::native::CUDAFunctor_add<float>)",
            256, "registers"),
      shape("(anonymous namespace)::softmax_rows(float const*, float*, int)", 2, "")};
  for (int step = 0; step < kSteps; ++step) {
    const std::int64_t begin = step * kStepNs;
    trace.calls.push_back({.kind = CallKind::copy, .begin_ns = begin, .end_ns = begin + 300'000});
    trace.ops.push_back({.kind = GpuOpKind::copy,
                         .begin_ns = begin + 10'000,
                         .end_ns = begin + 290'000,
                         .bytes = 4 << 20,
                         .copy = CopyKind::h2d,
                         .from = MemoryKind::pageable,
                         .to = MemoryKind::device});
    for (int i = 0; i < kKernels; ++i) {
      const std::int64_t at = begin + 400'000 + i * 100'000;
      trace.calls.push_back({.kind = CallKind::launch, .begin_ns = at, .end_ns = at + 5'000});
      trace.ops.push_back({.begin_ns = at + 8'000,
                           .end_ns = at + 8'000 + (i == 0 ? 60'000 : 20'000),
                           .shape = i == 0 ? 1U : 0U});
    }
  }
  trace.windows = {{.process = 0, .begin_ns = 0, .end_ns = 20 * kStepNs},
                   {.process = 0, .begin_ns = 25 * kStepNs, .end_ns = kSteps * kStepNs}};
  trace.notes = {"kind ENVIRONMENT was refused (14): clocks come from NVML"};
  return trace;
}

Timeline timeline_of(const GpuTrace& trace) {
  Timeline made;
  made.end_ns = kSteps * kStepNs;
  made.seconds = static_cast<double>(made.end_ns) * 1e-9;
  Timeline::Device device{.busy_seconds = 0.0162, .kernel_seconds = 0.0072, .copy_seconds = 0.0084};
  device.exposed_copy_seconds = 0.0084;
  made.devices = {device};
  made.kernels.resize(2);
  for (std::uint32_t i = 0; i < trace.ops.size(); ++i) {
    if (trace.ops[i].kind == GpuOpKind::kernel) made.kernels[trace.ops[i].shape].ops.push_back(i);
  }
  const double nanoseconds[] = {20'000, 60'000};
  for (std::uint32_t i = 0; i < 2; ++i) {
    Timeline::Kernel& kernel = made.kernels[i];
    kernel.shape = i;
    kernel.seconds = static_cast<double>(kernel.ops.size()) * nanoseconds[i] * 1e-9;
    kernel.share = kernel.seconds / made.seconds;
    kernel.median_ns = nanoseconds[i];
    kernel.low_ns = 0.98 * nanoseconds[i];
    kernel.high_ns = 1.1 * nanoseconds[i];
    kernel.waves = trace.shapes[i].blocks() / (4 * 132);
  }
  made.kernels[0].dram_share = 0.31;
  for (int step = 0; step <= kSteps; ++step) made.iterations.begins_ns.push_back(step * kStepNs);
  made.iterations.how = "11 ops that repeat";
  made.iterations.median_seconds = 0.002;
  made.iterations.low_seconds = 0.00195;
  made.iterations.high_seconds = 0.00221;
  for (int step = 0; step < kSteps; ++step) {
    const std::int64_t begin = step * kStepNs;
    made.gaps.push_back({.begin_ns = begin + 290'000,
                         .end_ns = begin + 408'000,
                         .cause = GapCause::host,
                         .function = "step (adam.py)"});
    made.gaps.push_back({.begin_ns = begin + 1'400'000, .end_ns = begin + kStepNs, .cause = GapCause::sync});
  }
  made.simulated = true;
  made.model_error = 0.012;
  return made;
}

Diagnosis diagnosis() {
  Diagnosis made;
  made.verdict = "the GPU is busy 27 % of the time and waits mostly for the host";
  Finding launch;
  launch.id = "launch_bound";
  launch.severity = Severity::fix;
  launch.claim = "The GPU waits for the host in 58 % to 64 % of each iteration";
  launch.evidence = {"10 kernels an iteration, median 20.0 us",
                     "in 9 of 10 gaps the launch call comes after the GPU went idle"};
  launch.next_step = "capture the iteration as a CUDA graph, or fuse the optimizer";
  launch.saved_low = 0.33;
  launch.saved_high = 0.55;
  launch.verify = "fulcrum trace --diff before.ftrace after.ftrace";
  launch.change.host_scale = 0.5;
  launch.ops = {11 * 20 + 1, 11 * 20 + 2};  // of iteration 20
  Finding small;
  small.id = "small_grid";
  small.severity = Severity::consider;
  small.grade = Evidence::bounded;
  small.claim = "softmax_rows keeps 2 of 132 SMs busy: fix parallelism first; 6 checks wait";
  small.evidence = {"2 blocks of 256 threads"};
  small.next_step = "give each row more than one block";
  small.saved_high = 0.028;
  Finding stale;
  stale.id = "stale_build";
  stale.claim = "train.cu is newer than the program that was traced";
  made.findings = {launch, small, stale};
  Finding waits = small;
  waits.id = "low_occupancy";
  waits.subject = "softmax_rows(float const*, float*, int)";
  waits.blocked_by = "small_grid";
  made.waiting = {waits};
  made.fine = {"alloc_in_loop", "throttle", "redundant_copy"};
  made.not_checked = {{"sol", "no counters", "add --counters"},
                      {"roofline", "no counters", "add --counters"},
                      {"managed_faults", "the kind was refused (14)", ""}};
  made.together_low = 0.34;
  made.together_high = 0.57;
  return made;
}

std::string text_of(int width, const Diagnosis& found = diagnosis()) {
  const GpuTrace trace = loop();
  return trace_text(trace, timeline_of(trace), found, 8, false, width);
}

int longest_line(const std::string& text) {
  int most = 0;
  for (const std::string& line : cli::lines_of(text)) most = std::max(most, display_width(line));
  return most;
}

/// The page's document.
Json document_of(const std::string& html) {
  const std::string mark = "<script type=\"application/json\" id=\"report\">";
  const std::size_t begin = html.find(mark) + mark.size();
  return json_parse(html.substr(begin, html.find("</script>", begin) - begin), "page").value();
}

TEST(TraceText, ReadsTheSameInANarrowAndAWideTerminal) {
  cli::expect_golden("trace/narrow.txt", text_of(80));
  cli::expect_golden("trace/wide.txt", text_of(120));
  EXPECT_LE(longest_line(text_of(80)), 80);
  EXPECT_LE(longest_line(text_of(120)), 120);
}

TEST(TraceText, SaysSoWhenNothingWasFound) {
  Diagnosis clean;
  clean.verdict = "the GPU is busy 97 % of the time";
  clean.not_checked = {{"sol", "no counters", "add --counters"}};
  const std::string text = text_of(100, clean);
  EXPECT_NE(text.find("No finding"), std::string::npos) << text;
  EXPECT_NE(text.find("Not checked: sol (no counters; add --counters)"), std::string::npos) << text;
  EXPECT_EQ(text.find("fine"), std::string::npos) << "nothing was checked and fine: " << text;
}

TEST(TraceText, ClaimsNoGainWithoutASimulation) {
  const GpuTrace trace = loop();
  Timeline timeline = timeline_of(trace);
  timeline.simulated = false;
  timeline.why_not = "the trace has no API records";
  const std::string text = trace_text(trace, timeline, diagnosis(), 8, false, 200);
  EXPECT_NE(text.find("not simulated: the trace has no API records"), std::string::npos) << text;
  EXPECT_EQ(text.find("re-simulated"), std::string::npos) << text;
  EXPECT_EQ(text.find("model error"), std::string::npos) << text;
}

TEST(TraceText, MarksARunWhoseRecordsAreMissing) {
  Diagnosis doubtful = diagnosis();
  doubtful.unreliable = true;
  EXPECT_NE(text_of(100, doubtful).find("Unreliable"), std::string::npos);
  EXPECT_EQ(text_of(100).find("Unreliable"), std::string::npos);
}

TEST(TraceText, PromisesNobodyAFactorOfFifty) {
  Diagnosis bold = diagnosis();
  bold.findings[0].saved_high = 0.98;
  const std::string text = text_of(120, bold);
  EXPECT_NE(text.find("33 % to 98 % of the time, 1.49x to more than 20x end to end"), std::string::npos)
      << text;
}

TEST(TraceText, CutsReasonsThatWouldBuryTheRest) {
  Diagnosis wordy = diagnosis();
  const std::string metrics(100, 'm');
  wordy.not_checked = {{"divergence", "no counters", "give the file of ncu with " + metrics + "1"},
                       {"issue_slots", "no counters", "give the file of ncu with " + metrics + "2"},
                       {"warp_stall", "the file of ncu has no " + metrics, ""}};
  const std::string text = text_of(200, wordy);
  EXPECT_NE(text.find("Not checked: divergence, issue_slots (no counters; --json says what); warp_stall"),
            std::string::npos)
      << text;
  EXPECT_EQ(text.find("mmmm"), std::string::npos) << text;
}

TEST(TraceText, TellsHowToVerifyOnce) {
  Diagnosis twice = diagnosis();
  twice.findings[1].verify = twice.findings[0].verify;
  const std::string text = text_of(100, twice);
  EXPECT_NE(text.find("verify"), std::string::npos);
  EXPECT_EQ(text.find("verify"), text.rfind("verify")) << text;
}

TEST(KernelTable, ShowsWhatTellsLongNamesApart) {
  GpuTrace trace = loop();
  trace.shapes[0].name = "sm90_xmma_gemm_f32f32_tf32f32_f32_tn_n_tilesize128x128x32_cublas";
  trace.shapes[1].name = "sm90_xmma_gemm_f32f32_tf32f32_f32_nt_n_tilesize128x128x32_cublas";
  const std::string text = kernel_table(trace, timeline_of(trace), 8, 80).text(false);
  EXPECT_NE(text.find("tn_n"), std::string::npos) << text;
  EXPECT_NE(text.find("nt_n"), std::string::npos) << text;
}

TEST(KernelTable, IsOfTheWholeRunWhereOnlyWindowsWereTraced) {
  GpuTrace trace = loop();
  trace.totals.push_back({.shape = 0, .stream = 0, .count = 54321, .sum_ns = 7'650'000'000, .histogram = {}});
  const std::string text = kernel_table(trace, timeline_of(trace), 8, 80).text(false);
  EXPECT_NE(text.find("54,321"), std::string::npos) << text;
  EXPECT_NE(text.find("7.65 s"), std::string::npos) << text;
  GpuTrace all_of_it = trace;
  all_of_it.windows.clear();
  const std::string steady = kernel_table(all_of_it, timeline_of(all_of_it), 8, 80).text(false);
  EXPECT_EQ(steady.find("54,321"), std::string::npos) << steady;
  const auto document = findings_json(trace, timeline_of(trace), diagnosis());
  for (const auto& kernel : document["kernels"]) {
    if (kernel["name"] != trace.shapes[0].name) continue;
    EXPECT_EQ(kernel["total_calls"], 54321);
    EXPECT_LT(kernel["calls"], 54321);
  }
}

TEST(KernelName, LosesArgumentsAndNamespacesFirstThenItsMiddle) {
  EXPECT_EQ(kernel_name("void ns::work<int, ns::Add<float> >(int, float*)", 60), "work<int, Add<float>>");
  EXPECT_EQ(kernel_name("(anonymous namespace)::softmax(float*)", 60), "softmax");
  EXPECT_EQ(kernel_name("void f<(ns::Kind)2>(int)", 60), "f<(Kind)2>");
  EXPECT_EQ(kernel_name("sm90_xmma_gemm_f32f32_tf32f32_f32_tn_n_tilesize128x128x32_cublas", 24),
            "sm90_xmma_gemm_f..cublas");
  EXPECT_EQ(kernel_name("(odd)", 60), "(odd)");
}

TEST(TraceFacts, TakesOverheadFromTheProcessThatSuffersMost) {
  GpuTrace trace = loop();
  const Timeline timeline = timeline_of(trace);
  EXPECT_NEAR(trace_facts(trace, timeline).overhead_share, 0.002 / 0.058, 1e-9);
  GpuTrace::Process worker = trace.processes[0];
  worker.overhead_seconds = 0.006;
  trace.processes.push_back(worker);
  EXPECT_NEAR(trace_facts(trace, timeline).overhead_share, 0.006 / 0.054, 1e-9);
  trace.processes.clear();
  EXPECT_LT(trace_facts(trace, timeline).overhead_share, 0) << "not known is not none";
}

TEST(TraceFacts, AddsIdleTimeByCauseOfTheBusiestDevice) {
  const GpuTrace trace = loop();
  Timeline timeline = timeline_of(trace);
  timeline.gaps.push_back({.device = 1, .begin_ns = 0, .end_ns = 1'000'000'000, .cause = GapCause::alloc});
  Timeline::Gap once{.begin_ns = 0, .end_ns = 1'000'000'000, .cause = GapCause::module_load};
  once.steady = false;
  timeline.gaps.push_back(once);
  const TraceFacts facts = trace_facts(trace, timeline);
  ASSERT_EQ(facts.idle.size(), 2U);
  EXPECT_EQ(facts.idle[0].cause, GapCause::sync);
  EXPECT_NEAR(facts.idle[0].share, 0.3, 1e-9);
  EXPECT_EQ(facts.idle[1].function, "step (adam.py)");
  EXPECT_NEAR(facts.idle[1].function_share, 1, 1e-9);
}

TEST(TraceJson, HoldsFindingsFactsAndKernels) {
  const GpuTrace trace = loop();
  const Json json = findings_json(trace, timeline_of(trace), diagnosis());
  EXPECT_EQ(json["schema"], "fulcrum.findings/1");
  EXPECT_EQ(json["command"], trace.command);
  EXPECT_EQ(json["findings"][0]["id"], "launch_bound");
  EXPECT_EQ(json["waiting"][0]["blocked_by"], "small_grid");
  EXPECT_EQ(json["facts"]["windows"], 2);
  EXPECT_NEAR(json["facts"]["model_error"].get<double>(), 0.012, 1e-12);
  EXPECT_EQ(json["kernels"].size(), 2U);
  EXPECT_TRUE(json["kernels"][1]["dram_share"].is_null()) << "not known is not zero";
  EXPECT_EQ(json["not_checked"].size(), 3U);
}

TEST(TracePage, HoldsThreeIterationsEventByEvent) {
  const GpuTrace trace = loop();
  const std::string page = trace_html(trace, timeline_of(trace), diagnosis(), {.title = "a <b> title"});
  EXPECT_EQ(page.find("/*REPORT*/"), std::string::npos);
  const Json document = document_of(page);
  EXPECT_EQ(document["title"], "a <b> title");
  const Json& stretch = document["trace"]["stretch"];
  EXPECT_EQ(stretch["whole_iterations"], 3);
  EXPECT_EQ(stretch["begin_ns"], 20 * kStepNs) << "where the first finding is";
  EXPECT_EQ(stretch["length_ns"], 3 * kStepNs);
  ASSERT_EQ(stretch["lanes"].size(), 2U);
  EXPECT_EQ(stretch["lanes"][0]["begin"].size(), 3U * (kKernels + 1));
  std::int64_t at = 0;
  for (const Json& step : stretch["lanes"][0]["begin"]) at += step.get<std::int64_t>();
  EXPECT_EQ(at, 2 * kStepNs + 400'000 + 900'000 + 8'000) << "begins are differences";
  EXPECT_EQ(stretch["iterations"], (Json{0, kStepNs, 2 * kStepNs, 3 * kStepNs}));
  EXPECT_EQ(document["trace"]["findings"][0]["marks"].size(), 2U);
  EXPECT_FALSE(document["trace"]["findings"][0].contains("ops")) << "numbers that mean nothing there";
}

TEST(TracePage, ShowsHowBusyTheWholeRunWasAndWhatWasNotTraced) {
  const GpuTrace trace = loop();
  const Json density =
      document_of(trace_html(trace, timeline_of(trace), diagnosis(), {}))["trace"]["density"];
  const Json& busy = density["devices"][0]["busy"];
  ASSERT_EQ(busy.size(), 600U);
  double sum = 0;
  for (const Json& percent : busy) sum += percent.get<double>() / 100;
  const double run = density["length_ns"].get<double>();
  EXPECT_NEAR(sum / 600 * run, 30 * (280'000 + 60'000 + 9 * 20'000), 0.02 * run);
  int untraced = 0;
  for (const Json& percent : density["traced"]) untraced += percent.get<int>() < 50 ? 1 : 0;
  EXPECT_NEAR(untraced, 100, 3) << "five of thirty iterations";
}

TEST(TracePage, StaysSmallWhateverTheRunHolds) {
  GpuTrace trace = loop();
  Timeline timeline = timeline_of(trace);
  for (int i = 0; i < 300'000; ++i) {
    trace.ops.push_back(
        {.begin_ns = kSteps * kStepNs + i * 20, .end_ns = kSteps * kStepNs + i * 20 + 10, .shape = 0});
  }
  timeline.iterations = {};
  const std::string page = trace_html(trace, timeline, diagnosis(), {});
  EXPECT_LT(page.size(), 3'000'000U);
  const Json stretch = document_of(page)["trace"]["stretch"];
  EXPECT_EQ(stretch["whole_iterations"], 0);
  EXPECT_GT(stretch["items"].get<int>(), 5'000);
  EXPECT_LE(stretch["items"].get<int>(), 20'000);
}

TEST(TracePage, EscapesWhatWouldEndTheScriptElement) {
  GpuTrace trace = loop();
  trace.shapes[0].name = "</script><script>alert(1)</script>";
  const std::string page = trace_html(trace, timeline_of(trace), diagnosis(), {});
  EXPECT_EQ(page.find("alert(1)</script>"), std::string::npos);
}

}  // namespace
}  // namespace fulcrum::report
