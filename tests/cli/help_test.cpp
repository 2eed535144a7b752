// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Help, reference and completion come from the descriptors, so they agree with them.
#include "cli/help.h"

#include <fmt/format.h>
#include <fulcrum/backends.h>
#include <fulcrum/report.h>

#include <algorithm>

#include "cli/completion.h"
#include "cli/program.h"

namespace fulcrum::cli {
namespace {

std::vector<std::string> words(const std::vector<Candidate>& list) {
  std::vector<std::string> result;
  for (const Candidate& candidate : list) result.push_back(candidate.word);
  return result;
}

bool contains(const std::vector<std::string>& list, const std::string& word) {
  return std::find(list.begin(), list.end(), word) != list.end();
}

TEST(Help, TheReferenceInDocsIsTheOneTheProgramPrints) {
  const std::string printed = fulcrum({"help", "--markdown"}).output;
  EXPECT_FALSE(printed.empty());
  EXPECT_TRUE(content(std::string(FULCRUM_SOURCE_DIR) + "/docs/cli.md") == printed)
      << "run `fulcrum help --markdown > docs/cli.md`";
}

TEST(Help, EveryOptionAndArgumentOfEveryCommandIsExplained) {
  for (const Command& command : commands()) {
    const std::string text = command_help(command, {});
    for (const Option& option : command.options) {
      EXPECT_EQ(text.find(fmt::format("--{}", option.name)) == std::string::npos, option.hidden)
          << command.name << " --" << option.name;
      EXPECT_FALSE(option.help.empty()) << command.name << " --" << option.name;
    }
    for (const Positional& slot : command.positionals)
      EXPECT_NE(text.find(slot.name), std::string::npos) << slot.name;
    EXPECT_NE(overview({}).find(command.summary), std::string::npos) << command.name;
  }
}

TEST(Help, NoLineIsWiderThanTheTerminal) {
  for (const Command& command : commands()) {
    for (const std::string& line : lines_of(command_help(command, {.width = 80}))) {
      // Examples are to be copied whole.
      if (line.rfind("  fulcrum ", 0) == 0 || line.rfind("  eval ", 0) == 0) continue;
      EXPECT_LE(report::display_width(line), 80) << line;
    }
  }
}

TEST(Help, EveryExampleIsUnderstoodByItsOwnParser) {
  for (const Command& command : commands()) {
    for (const Example& example : command.examples) {
      std::string line(example.line);
      line = line.substr(0, line.find(" > "));
      if (line.rfind("fulcrum ", 0) != 0) continue;
      // A build without nvcc has no such backend.
      if (line.find("--backend cuda") != std::string::npos && !backends::find("cuda").ok()) continue;
      std::vector<std::string> arguments;
      std::istringstream stream(line.substr(8));
      for (std::string word; stream >> word;) arguments.push_back(word);
      ASSERT_EQ(arguments.at(0), command.name) << line;
      EXPECT_EQ(fulcrum([&] {
                  auto with_help = arguments;
                  with_help.insert(with_help.begin() + 1, "--help");
                  return with_help;
                }())
                    .code,
                0)
          << line;
    }
  }
}

TEST(Completion, CompletesCommandsOptionsOpsAndBackends) {
  EXPECT_TRUE(contains(words(candidates({"be"})), "bench"));
  EXPECT_TRUE(contains(words(candidates({"bench", "sig"})), "sigmoid"));
  EXPECT_TRUE(contains(words(candidates({"bench", "sigmoid", "--sh"})), "--shape"));
  EXPECT_TRUE(contains(words(candidates({"bench", "sigmoid", "--backend", "si"})), "simd"));
  EXPECT_TRUE(contains(words(candidates({"bench", "--backend", "scalar,si"})), "scalar,simd"));
  EXPECT_TRUE(contains(words(candidates({"bench", "dot", "--format", "goo"})), "google-benchmark"));
  EXPECT_TRUE(contains(words(candidates({"ops", ""})), "matmul"));
}

TEST(Completion, OffersNothingHiddenAndNothingInsideACommandOfTheUser) {
  EXPECT_TRUE(candidates({"bench", "--wor"}).empty());
  EXPECT_TRUE(candidates({"bench", "--", "l"}).empty());
  EXPECT_TRUE(candidates({"nonsense", ""}).empty());
  EXPECT_TRUE(candidates({"ops", "dot", ""}).empty());
}

TEST(Completion, TheProgramAnswersTheScripts) {
  const Outcome outcome = fulcrum({"completion", "words", "--", "bench", "sig"});
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(outcome.output, "sigmoid\t\n");
}

TEST(Completion, EveryScriptIsValidInItsShellWhereThatIsInstalled) {
  for (const std::string shell : {"bash", "zsh", "fish"}) {
    const Outcome script = fulcrum({"completion", shell});
    ASSERT_EQ(script.code, 0) << shell;
    EXPECT_NE(script.output.find("completion words --"), std::string::npos) << shell;
    const auto checked = run_process({shell, "-n", "/dev/stdin"}, {.input = script.output});
    if (!checked.ok()) continue;  // this shell is not installed
    EXPECT_EQ(checked->exit_code, 0) << shell << ": " << checked->standard_error;
  }
}

TEST(Completion, BashCompletesAnOpFromItsFirstLetters) {
  const std::string script = fulcrum({"completion", "bash"}).output;
  const std::string session = script +
                              "COMP_WORDS=(" FULCRUM_PROGRAM
                              " bench soft)\nCOMP_CWORD=2\n_fulcrum_complete\necho ${COMPREPLY[@]}\n";
  const auto result = run_process({"bash", "--norc", "-c", session});
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result->standard_output, "softmax\n") << result->standard_error;
}

}  // namespace
}  // namespace fulcrum::cli
