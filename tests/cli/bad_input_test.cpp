// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Bad input gets an exit code, one clear line and a hint, before anything is measured, and leaves every file as it
// was.
#include <fmt/format.h>

#include "cli/program.h"

namespace fulcrum::cli {
namespace {

struct Bad {
  std::vector<std::string> arguments;
  int code;
  std::string message, hint;  // parts that must appear
};

void expect_refused(const Bad& bad, const Outcome& outcome) {
  const std::string line = fmt::format("{}", fmt::join(bad.arguments, " "));
  EXPECT_EQ(outcome.code, bad.code) << line << "\n" << outcome.error;
  EXPECT_EQ(outcome.output, "") << line;
  const auto lines = lines_of(outcome.error);
  ASSERT_EQ(lines.size(), 2u) << line << "\n" << outcome.error;
  EXPECT_EQ(lines[0].rfind("fulcrum: error: ", 0), 0u) << line << "\n" << outcome.error;
  EXPECT_NE(lines[0].find(bad.message), std::string::npos) << line << "\n" << outcome.error;
  EXPECT_EQ(lines[1].rfind("hint: ", 0), 0u) << line << "\n" << outcome.error;
  EXPECT_NE(lines[1].find(bad.hint), std::string::npos) << line << "\n" << outcome.error;
}

TEST(BadInput, IsRefusedInOneLineWithAHint) {
  const Bad table[] = {
      {{"benhc"}, 2, "unknown command 'benhc'", "bench"},
      {{"xyzzy"}, 2, "unknown command 'xyzzy'", "known: doctor"},
      {{"--nonsense"}, 2, "unknown command", ""},
      {{"bench"}, 2, "nothing to measure", "name an op"},
      {{"bench", "sigmiod"}, 2, "unknown op 'sigmiod'", "did you mean 'sigmoid'?"},
      {{"bench", "sigmoid", "n=1000"}, 2, "unknown op 'n=1000'", "--shape n=1000"},
      {{"bench", "sigmoid", "--shap", "n=1"}, 2, "no option '--shap'", "did you mean '--shape'?"},
      {{"bench", "sigmoid", "--backend", "smid"}, 2, "unknown backend 'smid'", "simd"},
      {{"bench", "sigmoid", "--variant", "nope"}, 2, "unknown variant 'nope'", ""},
      {{"bench", "sigmoid", "--regime", "resident"}, 2, "regime 'resident'", "host"},
      {{"bench", "sigmoid", "--regime", "nowhere"}, 2, "unknown regime 'nowhere'", ""},
      {{"bench", "sigmoid", "--cache", "tepid"}, 2, "unknown cache state 'tepid'", "warm, cold"},
      {{"bench", "sigmoid", "--shape", "m=5"}, 2, "m", "n"},
      {{"bench", "sigmoid", "--shape", "n"}, 2, "n", ""},
      {{"bench", "sigmoid", "--shape", "n=many"}, 2, "integer", "n=1000"},
      {{"bench", "sigmoid", "--shape", "n=0"}, 2, "nothing to measure", "at least 1"},
      {{"bench", "sigmoid", "--shape", "n=-5"}, 2, "-5", ""},
      {{"bench", "sigmoid", "--shape", "n=99999999999999999999"}, 2, "99999999999999999999", ""},
      {{"bench", "matmul", "--shape", "M=4G,N=4G,K=4G"}, 2, "matmul", ""},
      {{"bench", "sigmoid", "--shape", "n=1e15"}, 3, "and this machine has", "smaller"},
      {{"bench", "sigmoid", "--vs", "nobody"}, 2, "nobody", "fulcrum ops sigmoid"},
      {{"bench", "sigmoid", "--vs", "simd/nope"}, 2, "nope", ""},
      {{"bench", "sigmoid", "--suite", "all"}, 2, "exclude each other", ""},
      {{"bench", "--suite", "nope"}, 2, "unknown suite 'nope'", "all"},
      {{"bench", "sigmoid", "--budget", "0"}, 2, "--budget", "above 0"},
      {{"bench", "sigmoid", "--budget", "soon"}, 2, "--budget", "number"},
      {{"bench", "sigmoid", "--precision", "-1"}, 2, "--precision", ""},
      {{"bench", "sigmoid", "--processes", "1.5"}, 2, "--processes", "whole number"},
      {{"bench", "sigmoid", "--format", "xml"}, 2, "unknown format 'xml'", "csv"},
      {{"bench", "sigmoid", "--format", "csv", "--json", "-"}, 2, "standard output", ""},
      {{"bench", "sigmoid", "--ledger"}, 3, "--ledger", "doctor"},
      {{"bench", "sigmoid", "--scaling", "--shape", "n=10"}, 2, "--scaling", "--shape"},
      {{"bench", "sigmoid", "--warmup", "3"}, 2, "--warmup is for commands", "-- COMMAND"},
      {{"bench", "--shape", "n=1", "--", "true"}, 2, "--shape is for ops", ""},
      {{"bench", "sigmoid", "--", "true"}, 2, "either ops or a command", "sigmoid"},
      {{"bench", "--"}, 2, "no command after --", ""},
      {{"bench", "--parameter-scan", "n", "1", "3", "--", "true"}, 2, "{n} stands nowhere", "{NAME}"},
      {{"bench", "--parameter-scan", "n", "3", "1", "--", "echo", "{n}"}, 2, "MAX is below MIN", ""},
      {{"bench", "--parameter-scan", "n", "1", "x", "--", "echo", "{n}"}, 2, "'x' is no number", ""},
      {{"bench", "--parameter-scan", "n", "0", "1", "0", "--", "echo", "{n}"}, 2, "STEP", ""},
      {{"bench", "sigmoid", "--resume", "/nonexistent/run.jsonl"}, 3, "/nonexistent/run.jsonl", ""},
      {{"bench", "sigmoid", "--resume", "a", "--record", "b"}, 2, "exclude each other", "--resume"},
      {{"bench", "sigmoid", "--record", "/nonexistent/run.jsonl"}, 3, "/nonexistent/run.jsonl", ""},
      {{"bench", "sigmoid", "--json", "/nonexistent/out.json"}, 3, "/nonexistent/out.json", "folder"},
      {{"bench", "sigmoid", "--json", "/"}, 3, "folder", "file"},
      {{"bench", "sigmoid", "--json", "/proc/self/nothing"}, 3, "/proc/self/nothing", ""},
      {{"bench", "--regret", "--vs", "scalar"}, 2, "--vs does not go with --regret", "leave it away"},
      {{"bench", "--regret", "--shape", "n=5"}, 2, "--shape does not go with --regret", ""},
      {{"bench", "relu", "--regret", "--backend", "simd"}, 2, "--backend does not go with --regret", ""},
      {{"bench", "--regret", "--precision", "0.1"}, 2, "--precision does not go with --regret", ""},
      {{"bench", "--regret", "--format", "csv"}, 2, "--format does not go with --regret", ""},
      {{"bench", "--regret", "--warmup", "3"}, 2, "--warmup does not go with --regret", ""},
      {{"bench", "--regret", "--resume", "a"}, 2, "--resume does not go with --regret", ""},
      {{"bench", "--regret", "--self-test"}, 2, "--regret does not go with --self-test", ""},
      {{"bench", "--regret", "--", "true"}, 2, "a command does not go with --regret", "--"},
      {{"bench", "--self-test", "--vs", "scalar"}, 2, "--vs does not go with --self-test", ""},
      {{"bench", "--self-test", "relu"}, 2, "'relu' does not go with --self-test", ""},
      {{"bench", "relu", "--seed", "5"}, 2, "--seed goes with --regret", "add --regret"},
      {{"ops", "nothing"}, 2, "unknown op 'nothing'", ""},
      {{"ops", "dot", "relu"}, 2, "unexpected argument 'relu'", "--help"},
      {{"machine", "--show", "nobody"}, 2, "nobody", ""},
      {{"machine", "--list", "--show", "this"}, 2, "exclude each other", ""},
      {{"machine", "--compare", "a"}, 2, "--compare needs A B", ""},
      {{"completion", "tcsh"}, 2, "unknown shell 'tcsh'", "bash"},
      {{"completion"}, 2, "SHELL is missing", ""},
      {{"help", "benhc"}, 2, "unknown command 'benhc'", "bench"},
      {{"doctor", "--", "ls"}, 2, "runs no command of yours", ""},
  };
  for (const Bad& bad : table) expect_refused(bad, fulcrum(bad.arguments));
}

TEST(BadInput, ForcedNamesThatDoNotExistAreErrorsThatListTheKnownOnes) {
  const Bad backend{{"bench", "sigmoid"}, 2, "warp", "scalar"};
  expect_refused(backend, fulcrum(backend.arguments, {{"FULCRUM_FORCE_BACKEND", "warp"}}));
  const Bad isa{{"bench", "sigmoid"}, 2, "avx9", ""};
  expect_refused(isa, fulcrum(isa.arguments, {{"FULCRUM_FORCE_ISA", "avx9"}}));
}

TEST(BadInput, IsRefusedBeforeThisMachineIsMeasured) {
  const Folder files;
  const std::string suite = put(files, "tiny.json", R"({
    "schema": "fulcrum.suite/1", "name": "tiny", "system": "a test", "summary": "one small op",
    "rows": [{"name": "squash", "op": "gelu", "shape": "n=4096", "share": 0.6}]})");
  const std::string profile = put(files, "folded.txt", "main;work 900\nmain;rest 100\n");
  const std::string text = put(files, "notes.txt", "precious\n"), page = files / "page.html";
  const Bad table[] = {
      {{"plan", "--gpu", "h300"}, 2, "no machine profile 'h300'", "h200"},
      {{"plan", "--gpu", "h200,h300"}, 2, "no machine profile 'h300'", "h200"},
      {{"plan", "--suite", suite, "--regime", "foo"}, 2, "unknown regime 'foo'", "resident"},
      {{"plan", "--suite", suite, "--regime", "host"}, 2, "a plan has no regime 'host'", "resident"},
      {{"plan", "--suite", suite, "--explain", "squush"}, 2, "no row 'squush'", "did you mean 'squash'?"},
      {{"plan", "--suite", suite, "--predictions", "/nonexistent/l"}, 3, "cannot write /nonexistent/l", ""},
      {{"plan", "--suite", suite, "--predictions", text}, 3, "no document of this kind", "another name"},
      {{"plan", "--suite", suite, "--html", text}, 3, "no document of this kind", "another name"},
      {{"plan", "--", "./nope"}, 3, "cannot run './nope': No such file", "check the spelling"},
      {{"plan", "--", "no-such-program-anywhere"}, 3, "cannot run 'no-such-program-anywhere'", "PATH"},
      {{"plan", "--", "/"}, 3, "cannot run '/': Permission denied", "chmod +x"},
      {{"plan", "--", text}, 3, "Permission denied", "chmod +x"},
      {{"plan", "--gpu", "h300", "--", "true"}, 2, "no machine profile 'h300'", "h200"},
      {{"plan", "--profile", "/nonexistent/p"}, 3, "cannot read /nonexistent/p", "check the spelling"},
      {{"plan", "--profile", profile, "--explain", "wark"}, 2, "no row 'wark'", "did you mean 'work'?"},
      {{"report", "--suite", suite, "--gpu", "h300", "--output", page}, 2, "no machine profile 'h300'", ""},
      {{"report", "--profile", "/nonexistent/p", "--output", page}, 3, "cannot read /nonexistent/p", ""},
      {{"batch", "lstm_cell", "--gpu", "h300"}, 2, "no machine profile 'h300'", "h200"},
      {{"batch", "lstm_cell", "--regime", "foo"}, 2, "unknown regime 'foo'", "resident"},
      {{"batch", "lstm_cell", "--regime", "host"}, 2, "a batch has no regime 'host'", "resident"},
      {{"batch", "lstm_cell", "--shape", "B=1,I=16,H=0"}, 2, "H=0 of lstm_cell", "one hidden unit"},
      {{"breakeven", "gelu", "--gpu", "h300"}, 2, "no machine profile 'h300'", "h200"},
      {{"breakeven", "gelu", "--gpu", "none"}, 2, "a break-even needs a GPU", "leave --gpu none away"},
      {{"breakeven", "gelu", "--from", "100", "--to", "10"}, 2, "100 to 10 are no range", "larger end"},
      {{"breakeven", "lstm_cell", "--shape", "B=1,I=16,H=0"}, 2, "H=0 of lstm_cell", "one hidden unit"},
      {{"roofline", "gelu", "--gpu", "h300"}, 2, "no machine profile 'h300'", "h200"},
      {{"roofline", "gelu", "--shape", "n=0"}, 2, "nothing to measure", "at least 1"},
      {{"roofline", "gelu", "--shape", "n=1e15"}, 3, "and this machine has", "smaller"},
  };
  for (const Bad& bad : table) {
    const Folder data;
    expect_refused(bad, fulcrum_in(data, bad.arguments));
    EXPECT_TRUE(std::filesystem::is_empty(data.path())) << fmt::format("{}", fmt::join(bad.arguments, " "));
  }
  EXPECT_EQ(content(text), "precious\n");
}

TEST(BadInput, TheGpuOfThisMachineIsMissedBeforeItIsMeasured) {
  for (const std::vector<std::string>& arguments : std::vector<std::vector<std::string>>{
           {"plan", "--gpu", "this"}, {"batch", "lstm_cell", "--gpu", "this"}}) {
    const Folder data;
    const Bad bad{arguments, 3, "no GPU that the program can use", "fulcrum doctor"};
    expect_refused(bad, fulcrum_in(data, arguments, {{"CUDA_VISIBLE_DEVICES", ""}}));
    EXPECT_TRUE(std::filesystem::is_empty(data.path()));
  }
}

TEST(BadInput, ABenchmarkProgramTakesNoOptionForAFileOrANumber) {
  int found = 0;
  for (const char* name : {"dispatch_cost", "batching_check", "expression_check", "harness_check",
                           "ceiling_check", "pipeline_check"}) {
    const std::string program = fmt::format("{}/bench/{}", FULCRUM_BINARY_DIR, name);
    if (!std::filesystem::exists(program)) continue;
    ++found;
    const Folder folder;
    const std::string script = fmt::format("cd {} && exec {} --help", folder.path().string(), program);
    const auto result = run_process({"/bin/sh", "-c", script}, {});
    ASSERT_TRUE(result.ok());
    EXPECT_EQ(result->exit_code, 2) << name;
    EXPECT_NE(result->standard_error.find(fmt::format("{} [", name)), std::string::npos)
        << result->standard_error;
    EXPECT_TRUE(std::filesystem::is_empty(folder.path())) << name;
  }
  if (found == 0) GTEST_SKIP() << "SKIPPED: no program of bench/ is built";
}

TEST(BadInput, LeavesNoRecordBehind) {
  const Folder data;
  fulcrum_in(data, {"bench", "sigmoid", "--shape", "n=0"});
  EXPECT_FALSE(std::filesystem::exists(data / "runs"));
}

TEST(BadInput, NeverReplacesAFileThatIsNoDocumentOfOurs) {
  const Folder data;
  std::ofstream(data / "notes.txt") << "precious\n";
  const Outcome outcome = fulcrum_in(data, quick_bench({"--json", data / "notes.txt"}));
  EXPECT_EQ(outcome.code, 3);
  EXPECT_EQ(content(data / "notes.txt"), "precious\n");
}

TEST(BadInput, NeverReplacesARunRecord) {
  const Folder data;
  ASSERT_EQ(fulcrum_in(data, quick_bench({"--record", data / "run.jsonl"})).code, 0);
  const std::string before = content(data / "run.jsonl");
  EXPECT_EQ(fulcrum_in(data, quick_bench({"--record", data / "run.jsonl"})).code, 3);
  EXPECT_EQ(fulcrum_in(data, quick_bench({"--json", data / "run.jsonl"})).code, 3);
  EXPECT_EQ(content(data / "run.jsonl"), before);
}

TEST(BadInput, AFullDiskIsAnErrorAndNotACrash) {
  const Outcome json = fulcrum(quick_bench({"--json", "/dev/full"}));
  EXPECT_EQ(json.code, 3) << json.error;
  EXPECT_NE(json.error.find("/dev/full"), std::string::npos) << json.error;
  const auto output = run_process({"/bin/sh", "-c", FULCRUM_PROGRAM " help > /dev/full"});
  ASSERT_TRUE(output.ok());
  EXPECT_EQ(output->exit_code, 3);
  EXPECT_NE(output->standard_error.find("standard output"), std::string::npos) << output->standard_error;
}

TEST(BadInput, ARecordThatCannotGrowStopsTheRunAndWhatWasMeasuredIsShown) {
  const Folder data;
  // A file size limit stands for the full disk: one block of 512 bytes is too small even for the first line, six
  // are enough for that and not for the samples of a case.
  for (const auto& [blocks, shown] : {std::pair{"1", false}, std::pair{"6", true}}) {
    const std::string script = fmt::format(
        "ulimit -f {}; exec {} bench relu --shape n=1000 --backend scalar --budget 0.3 --precision 1e-9 "
        "--record {}",
        blocks, FULCRUM_PROGRAM, (data / fmt::format("{}.jsonl", blocks)).string());
    const auto result =
        run_process({"/bin/sh", "-c", script}, {.environment = {{"FULCRUM_DATA", data.path()}}});
    ASSERT_TRUE(result.ok());
    EXPECT_EQ(result->exit_code, 3) << result->standard_error;
    EXPECT_NE(result->standard_error.find("fulcrum: error: "), std::string::npos) << result->standard_error;
    EXPECT_EQ(result->standard_output.find("every sample is in") != std::string::npos, shown) << blocks;
  }
}

TEST(BadInput, AClosedPipeEndsQuietly) {
  // The reader is gone before the first byte is written.
  const auto result = run_process({"/bin/bash", "-c",
                                   "{ sleep 0.3; " FULCRUM_PROGRAM
                                   " help --markdown; echo $? >&2; } | true; exit ${PIPESTATUS[0]}"});
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result->standard_error, "0\n");
}

}  // namespace
}  // namespace fulcrum::cli
