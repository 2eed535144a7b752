// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// What the program prints, word for word, against tests/golden; numbers that differ from run to run are tokens.
// FULCRUM_UPDATE_GOLDEN=1 rewrites the files: look at the difference before committing it.
#include <cstdlib>
#include <regex>

#include "cli/program.h"

namespace fulcrum::cli {
namespace {

struct Token {
  const char* pattern;
  const char* name;
};

// In this order: the more specific first.
constexpr Token kTokens[] = {
    {R"(\x1b\[[0-9;]*m)", ""},
    {R"([0-9.]+x \[[0-9.]+, [0-9.]+\])", "<speedup>"},
    {R"(<?[0-9.]+ %)", "<percent>"},
    {R"([0-9.]+ [kMGT]?B/s)", "<rate>"},
    {R"([0-9.]+ [kMGT]?FLOP/s)", "<rate>"},
    {R"([0-9.]+ (ns|us|ms|s)\b)", "<time>"},
    {R"(quality (stable|fair|noisy|unstable))", "quality <quality>"},
    {R"(stopped by (precision|budget: \w+))", "stopped by <reason>"},
    {R"( [0-9]+\n)", " <count>\n"},
    {R"([^ ]*/runs/[^ ]+\.jsonl)", "<record>"},
    {R"(  -  )", "  <percent>  "},  // too few samples for an interval
    {R"(: the same within <percent>|: unresolved, the interval holds both faster and slower)", ""},
};

/// The first lines name the machine; notes on flags come and go with the noise.
std::string without_weather(const std::string& text) {
  static const std::regex note(
      R"(^(heavy_tail|multimodal|interrupted|correlated|low_n|too_few_samples|warmup_unsettled|first_run_outlier|fast_command)\b.*)");
  static const std::regex machine(R"(^.*, [0-9]+ threads\b.*$)");
  std::string result;
  bool in_note = false;
  for (const std::string& line : lines_of(text)) {
    in_note = std::regex_match(line, note) || (in_note && line.rfind("  ", 0) == 0);
    if (in_note) continue;
    result += (std::regex_match(line, machine) ? "<machine>" : line) + "\n";
  }
  return result;
}

std::string normalised(const std::string& text) {
  std::string result = without_weather(text);
  for (const Token& token : kTokens)
    result = std::regex_replace(result, std::regex(token.pattern), token.name);
  result = std::regex_replace(result, std::regex(" {2,}"), "  ");  // columns move with the width of numbers
  result = std::regex_replace(result, std::regex("\n{3,}"), "\n\n");
  return result;
}

// The scalar backend is the same everywhere; simd differs by instruction set, cpulib by what is installed.
const Variables kScalar = {{"FULCRUM_FORCE_BACKEND", "scalar"}};

TEST(Golden, Overview) { expect_golden("help/overview.txt", fulcrum({"--help"}).output); }
TEST(Golden, BenchHelp) {
  expect_golden("help/bench.txt", fulcrum({"bench", "--help"}, {{"COLUMNS", "80"}}).output);
}
TEST(Golden, TheHelpCommandSaysTheSameAsTheOption) {
  EXPECT_EQ(fulcrum({"help", "machine"}).output, fulcrum({"machine", "--help"}).output);
}
TEST(Golden, OpsMatrix) { expect_golden("ops/matrix.txt", fulcrum({"ops"}, kScalar).output); }
TEST(Golden, OpInDetail) { expect_golden("ops/softmax.txt", fulcrum({"ops", "softmax"}, kScalar).output); }
TEST(Golden, UnknownOption) {
  expect_golden("errors/unknown_option.txt", fulcrum({"bench", "dot", "--shpae", "n=1"}).error);
}

TEST(Golden, OneRow) {
  expect_golden("bench/one_row.txt", normalised(fulcrum(quick_bench(), {{"COLUMNS", "200"}}).output));
}

TEST(BenchOutput, SaysHowARowStandsAgainstItsBaseline) {
  const Outcome outcome = fulcrum({"bench", "relu", "--shape", "n=5000", "--backend", "simd", "--variant",
                                   "default", "--vs", "scalar", "--budget", "0.2", "--json", "/dev/null"});
  EXPECT_EQ(outcome.code, 0) << outcome.error;
  EXPECT_NE(outcome.output.find("simd/default is "), std::string::npos) << outcome.output;
  EXPECT_NE(outcome.output.find("the speed of scalar/default"), std::string::npos) << outcome.output;
}

TEST(BenchOutput, ComparesTwoCommands) {
  const Outcome outcome =
      fulcrum({"bench", "--budget", "0.3", "--", "sleep", "0.001", "--", "sleep", "0.02"});
  EXPECT_EQ(outcome.code, 0) << outcome.error;
  EXPECT_NE(outcome.output.find("sleep 0.001 is "), std::string::npos) << outcome.output;
}

TEST(Output, HasColourOnlyWhereATerminalIs) {
  EXPECT_EQ(fulcrum({"ops"}).output.find('\x1b'), std::string::npos);
  // script(1) gives the program a terminal.
  const auto on_terminal = [](const Variables& variables) {
    ProcessOptions options{.environment = variables};
    const auto result = run_process({"script", "-qec", FULCRUM_PROGRAM " ops", "/dev/null"}, options);
    return result.ok() && result->exit_code == 0 ? result->standard_output : std::string();
  };
  const std::string coloured = on_terminal({{"TERM", "xterm"}, {"NO_COLOR", ""}});
  if (coloured.empty()) GTEST_SKIP() << "there is no script(1) to make a terminal with";
  EXPECT_NE(coloured.find('\x1b'), std::string::npos);
  EXPECT_EQ(on_terminal({{"TERM", "xterm"}, {"NO_COLOR", "1"}}).find('\x1b'), std::string::npos);
  EXPECT_EQ(on_terminal({{"TERM", "dumb"}}).find('\x1b'), std::string::npos);
}

TEST(Welcome, NamesThreeCommands) {
  const Outcome outcome = fulcrum({});
  EXPECT_EQ(outcome.code, 0);
  std::size_t commands = 0;
  for (const std::string& line : lines_of(outcome.output))
    commands += line.rfind("  fulcrum ", 0) == 0 ? 1 : 0;
  EXPECT_EQ(commands, 3u) << outcome.output;
  EXPECT_NE(outcome.output.find("fulcrum machine"), std::string::npos)
      << "no profile yet: measuring comes first";
}

}  // namespace
}  // namespace fulcrum::cli
