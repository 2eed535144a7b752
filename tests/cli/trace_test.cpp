// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// `fulcrum trace` as a user meets it, without a GPU: saved traces, other tools' files, comparison, the gate, and every
// mistake with its next step.
#include <fulcrum/trace.h>

#include <cstdlib>

#include "cli/program.h"
#include "cli/trace/calibrate.h"
#include "support/traces.h"

namespace fulcrum::cli {
namespace {

std::string saved(const Folder& folder, const std::string& name, const GpuTrace& trace) {
  return put(folder, name, trace::bytes_of(trace));
}

Json findings_of(const Folder& folder, const std::string& file) {
  const Outcome outcome = fulcrum({"trace", file, "--json", folder / "f.json"});
  EXPECT_EQ(outcome.code, 0) << outcome.error;
  return read(folder / "f.json");
}

TEST(Trace, SaysWhyASavedRunIsSlow) {
  const Folder folder;
  const std::string file = saved(folder, "run.ftrace", test::launch_bound());
  const Outcome outcome = fulcrum({"trace", file});
  ASSERT_EQ(outcome.code, 0) << outcome.error;
  EXPECT_TRUE(has(outcome.output, "GPU busy")) << outcome.output;
  EXPECT_TRUE(has(outcome.output, "1 fix")) << outcome.output;
  EXPECT_TRUE(has(outcome.output, "Not checked:")) << outcome.output;
  const Json found = findings_of(folder, file);
  EXPECT_EQ(found["schema"], "fulcrum.findings/1");
  EXPECT_EQ(found["findings"][0]["id"], "launch_bound");
  EXPECT_LE(found["findings"].size(), 5U);
}

TEST(Trace, ReadsItsOwnFormatsBackWithTheSameFindings) {
  const Folder folder;
  const std::string file = saved(folder, "run.ftrace", test::copy_bound());
  const Json before = findings_of(folder, file);
  for (const char* format : {"ftrace", "json"}) {
    const std::string out = folder / (std::string("again.") + format);
    ASSERT_EQ(fulcrum({"trace", file, "--format", format, "--output", out}).code, 0);
    Json after = findings_of(folder, out);
    EXPECT_EQ(after["findings"], before["findings"]) << format;
  }
  const Outcome printed = fulcrum({"trace", file, "--format", "chrome", "--output", "-"});
  EXPECT_EQ(printed.code, 0) << printed.error;
  EXPECT_TRUE(has(printed.output, "traceEvents")) << printed.output.substr(0, 200);
}

TEST(Trace, ReplacesItsOwnFilesAndNoOthers) {
  const Folder folder;
  const std::string file = saved(folder, "run.ftrace", test::copy_bound());
  for (int twice = 0; twice < 2; ++twice) {
    EXPECT_EQ(fulcrum({"trace", file, "--output", folder / "o.ftrace", "--html", folder / "o.html"}).code, 0);
  }
  const std::string precious = put(folder, "precious.html", "ten years of work");
  EXPECT_EQ(fulcrum({"trace", file, "--html", precious}).code, 3);
  EXPECT_EQ(content(precious), "ten years of work");
}

TEST(Trace, WritesAPage) {
  const Folder folder;
  const std::string file = saved(folder, "run.ftrace", test::launch_bound());
  const Outcome outcome = fulcrum({"trace", file, "--html", folder / "p.html"});
  ASSERT_EQ(outcome.code, 0) << outcome.error;
  EXPECT_TRUE(has(content(folder / "p.html"), "fulcrum.trace_page/1"));
}

TEST(Trace, TheGateIsShutWhileSomethingIsLeftToFix) {
  const Folder folder;
  const std::string slow = saved(folder, "slow.ftrace", test::launch_bound());
  const std::string clean = saved(folder, "clean.ftrace", test::clean_training_step());
  const Outcome shut = fulcrum({"trace", slow, "--gate"});
  EXPECT_EQ(shut.code, 1) << shut.output;
  EXPECT_TRUE(has(shut.error, "launch_bound")) << shut.error;
  EXPECT_EQ(fulcrum({"trace", clean, "--gate"}).code, 0);
  EXPECT_EQ(fulcrum({"trace", slow}).code, 0) << "without it findings are no failure";
}

TEST(Trace, ComparesTwoRuns) {
  const Folder folder;
  const std::string before = saved(folder, "before.ftrace", test::launch_bound(30, 60));
  const std::string after = saved(folder, "after.ftrace", test::launch_bound(30, 30));
  const Outcome outcome = fulcrum({"trace", "--diff", before, after, "--json", folder / "d.json"});
  ASSERT_EQ(outcome.code, 0) << outcome.error;
  const Json json = read(folder / "d.json");
  EXPECT_EQ(json["schema"], "fulcrum.trace_diff/1");
  EXPECT_FALSE(json["rows"].empty());
  const Outcome same = fulcrum({"trace", "--diff", before, before});
  EXPECT_TRUE(has(same.output, "the same within doubt")) << same.output;
}

/// What torch.profiler writes about twenty steps of a launch and a wait.
std::string kineto() {
  Json events = Json::array();
  for (int step = 0; step < 20; ++step) {
    const double at = 1000.0 * step;
    const auto event = [&](const char* kind, const char* name, double begin, double us, Json more) {
      more["correlation"] = step + 1;
      events.push_back(Json{{"ph", "X"},
                            {"cat", kind},
                            {"name", name},
                            {"pid", 5},
                            {"tid", 5},
                            {"ts", at + begin},
                            {"dur", us},
                            {"args", std::move(more)}});
    };
    event("cuda_runtime", "cudaLaunchKernel", 0, 5, {});
    event("kernel", "work(float*)", 10, 100,
          Json{{"device", 0}, {"stream", 7}, {"grid", {2, 1, 1}}, {"block", {128, 1, 1}}});
    event("cuda_runtime", "cudaDeviceSynchronize", 20, 95, {});
  }
  return json_text(Json{{"deviceProperties", {{{"id", 0}, {"name", "NVIDIA H200"}, {"numSms", 132}}}},
                        {"traceEvents", std::move(events)}});
}

TEST(Trace, ReadsWhatTorchProfilerExports) {
  const Folder folder;
  const std::string file = put(folder, "torch.json", kineto());
  const Outcome outcome = fulcrum({"trace", file});
  ASSERT_EQ(outcome.code, 0) << outcome.error;
  EXPECT_TRUE(has(outcome.output, "NVIDIA H200")) << outcome.output;
  const auto packed = run_process({"gzip", file}, {});
  if (!packed.ok() || packed->exit_code != 0) GTEST_SKIP() << "there is no gzip here";
  const Outcome again = fulcrum({"trace", file + ".gz"});
  ASSERT_EQ(again.code, 0) << again.error;
  const auto verdict = [](const std::string& text) { return text.substr(0, text.find("\n\n")); };
  EXPECT_EQ(verdict(again.output), verdict(outcome.output));
}

TEST(Trace, TheReadmeShowsTheExampleThatComesWithTheProgram) {
  const std::string root = FULCRUM_SOURCE_DIR;
  const Outcome outcome = fulcrum({"trace", "--top", "3", root + "/share/traces/training.ftrace"});
  ASSERT_EQ(outcome.code, 0) << outcome.error;
  std::string shown = outcome.output.substr(0, outcome.output.find("\nChecked and fine"));
  while (shown.ends_with('\n')) shown.pop_back();
  EXPECT_TRUE(has(shown, "\n1 fix")) << shown;
  std::string readme = content(root + "/README.md");
  const std::size_t begin = readme.find("\n```\n", readme.find("<!-- trace: ")) + 5;
  const std::size_t end = readme.find("\n```", begin);
  ASSERT_NE(end, std::string::npos);
  if (std::getenv("FULCRUM_UPDATE_GOLDEN")) {
    std::ofstream(root + "/README.md") << readme.replace(begin, end - begin, shown);
    return;
  }
  EXPECT_EQ(readme.substr(begin, end - begin), shown) << "FULCRUM_UPDATE_GOLDEN=1 rewrites it";
}

TEST(TraceCosts, ComeFromWhatTracingAddsToACall) {
  const auto costs = costs_of({.bare = {9e-6, 8e-6, 8.5e-6}, .traced = {9.5e-6, 9.7e-6, 9.4e-6}});
  ASSERT_TRUE(costs.ok()) << costs.error().message;
  EXPECT_NEAR(costs->record_seconds, 0.5e-6, 1e-12);
  EXPECT_NEAR(costs->call_record_seconds, 0.25e-6, 1e-12);
}

TEST(TraceCosts, AreNotMadeUpFromNoise) {
  EXPECT_FALSE(costs_of({.bare = {9e-6, 8e-6, 8.5e-6}, .traced = {8.9e-6, 9.7e-6, 9.4e-6}}).ok());
  EXPECT_FALSE(costs_of({.bare = {9e-6, 9e-6, 9e-6}, .traced = {8e-6, 8e-6, 8e-6}}).ok());
}

struct Mistake {
  const char* what;
  std::vector<std::string> arguments;
  int code;
  const char* says;
};

TEST(Trace, AnswersMistakesWithTheNextStep) {
  const Folder folder;
  const std::string good = saved(folder, "good.ftrace", test::copy_bound());
  const std::string bytes = content(good);
  std::string future = bytes;
  future[8] = 99;  // the version
  const Mistake mistakes[] = {
      {"nothing", {"trace"}, 2, "fulcrum trace -- CMD"},
      {"two things", {"trace", good, "--", "true"}, 2, "more than one"},
      {"an option about running", {"trace", good, "--full"}, 2, "put the program behind --"},
      {"a missing file", {"trace", folder / "none.ftrace"}, 3, "none.ftrace"},
      {"an empty file", {"trace", put(folder, "empty", "")}, 3, "it is empty"},
      {"a text", {"trace", put(folder, "text", "hello")}, 3, "is no trace"},
      {"a damaged head", {"trace", put(folder, "head", bytes.substr(0, 20))}, 3, "head"},
      {"a newer version", {"trace", put(folder, "future", future)}, 2, "version 99"},
      {"JSON of something else", {"trace", put(folder, "o.json", "{\"a\": 1}")}, 2, "no GPU work"},
      {"a profile", {"trace", put(folder, "p.json", R"({"schema": "fulcrum.profile/1"})")}, 3, "p.json"},
      {"an nsys report", {"trace", put(folder, "x.nsys-rep", "abc")}, 3, "Nsight Systems"},
      {"calibration without a GPU", {"trace", "--calibrate"}, 3, "no GPU"},
      {"an unknown format", {"trace", good, "--format", "svg"}, 2, "svg"},
      {"a missing ncu file", {"trace", good, "--ncu", folder / "none.csv"}, 3, "none.csv"},
      {"a difference with one file", {"trace", "--diff", good}, 2, "--diff"},
      {"a program that is not there",
       {"trace", "--output", folder / "o.ftrace", "--", "no-such-program"},
       3,
       ""},
  };
  for (const Mistake& mistake : mistakes) {
    const Outcome outcome = fulcrum(mistake.arguments, {{"CUDA_VISIBLE_DEVICES", ""}});
    EXPECT_EQ(outcome.code, mistake.code) << mistake.what << ": " << outcome.error << outcome.output;
    EXPECT_TRUE(has(outcome.error, mistake.says)) << mistake.what << ": " << outcome.error;
  }
}

TEST(Trace, ReadsAFileThatWasCutOff) {
  const Folder folder;
  const std::string bytes = trace::bytes_of(test::launch_bound());
  const Outcome outcome =
      fulcrum({"trace", put(folder, "cut.ftrace", bytes.substr(0, bytes.size() * 9 / 10))});
  EXPECT_TRUE(outcome.code == 0 || outcome.code == 3) << outcome.error;
  EXPECT_TRUE(has(outcome.code == 0 ? outcome.output : outcome.error, "cut off")) << outcome.output;
}

TEST(Trace, SaysWhenAProgramUsesNoGpuAndLeavesItAlone) {
  const Folder folder;
  const Outcome outcome =
      fulcrum({"trace", "--output", folder / "o.ftrace", "--", "sh", "-c", "echo working; exit 3"});
  if (outcome.code == 3 && has(outcome.error, "libfulcrum_inject.so")) GTEST_SKIP() << outcome.error;
  EXPECT_EQ(outcome.code, 4) << outcome.error;
  EXPECT_TRUE(has(outcome.output, "working\n")) << outcome.output;
  EXPECT_TRUE(has(outcome.error, "exit code 3")) << outcome.error;
  EXPECT_TRUE(has(outcome.error, "fulcrum record")) << outcome.error;
  EXPECT_FALSE(std::filesystem::exists(folder / "o.ftrace"));
}

/// A program that uses a CUPTI that is none: everything but the GPU is real.
class TracedProgram : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists(kPrograms / "injected"))
      GTEST_SKIP() << "the injected library was not built";
  }
  Outcome traced(std::vector<std::string> options, std::vector<std::string> program) const {
    options.insert(options.begin(),
                   {"trace", "--output", folder_ / "o.ftrace", "--json", folder_ / "f.json"});
    options.insert(options.end(), {"--", kPrograms / "injected"});
    options.insert(options.end(), program.begin(), program.end());
    return fulcrum(options, {{"FAKE_CUPTI_PATH", kPrograms / "fake" / "libcupti.so.13"}});
  }
  const std::filesystem::path kPrograms = std::filesystem::path(FULCRUM_BINARY_DIR) / "tests/trace_programs";
  Json read_findings() const { return findings_of(folder_, folder_ / "o.ftrace")["findings"]; }
  Folder folder_;
};

TEST_F(TracedProgram, IsTracedSavedAndReadBack) {
  const Outcome outcome = traced({}, {"400", "return"});
  ASSERT_EQ(outcome.code, 0) << outcome.error;
  EXPECT_TRUE(has(outcome.output, "launched 400\n")) << outcome.output;
  EXPECT_TRUE(has(outcome.output, "Fake GPU")) << outcome.output;
  EXPECT_TRUE(has(outcome.output, "exit code 5")) << "the program's own: " << outcome.output;
  const Json found = read(folder_ / "f.json");
  EXPECT_EQ(found["kernels"].size(), 2U);
  EXPECT_EQ(found["facts"]["exit_code"], 5);
  EXPECT_EQ(read_findings(), found["findings"]);
}

TEST_F(TracedProgram, WithItsHostNamesWhatTheGpuWaitsFor) {
  // 0.4 s of the host's work lie in the gaps: hundreds of samples, so that one more or less decides nothing.
  const Outcome outcome = traced({"--with-cpu"}, {"1", "host"});
  ASSERT_EQ(outcome.code, 0) << outcome.error;
  if (has(outcome.output, "the host was not sampled")) GTEST_SKIP() << outcome.output;
  bool named = false;
  const Json facts = read(folder_ / "f.json")["facts"];
  for (const Json& idle : facts["idle"]) named = named || has(idle["function"], "prepare");
  EXPECT_TRUE(named) << outcome.output << facts["idle"].dump();
}

}  // namespace
}  // namespace fulcrum::cli
