// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
#include "cli/completion.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/context.h"
#include "cli/options.h"

namespace fulcrum::cli {
namespace {

Names shells() { return {"bash", "zsh", "fish"}; }

Result<Exit> run_completion(const Options& options, Context& context) {
  const std::string& shell = options.positionals()[0];
  if (shell == "words") {  // what the scripts call
    const auto& typed = options.user_commands();
    // A second `--` stands before a command of the user's: the shell knows better what may follow.
    if (typed.size() != 1) return Exit::ok;
    for (const Candidate& candidate : candidates(typed[0])) {
      context.print(fmt::format("{}\t{}\n", candidate.word, candidate.meaning));
    }
    return Exit::ok;
  }
  const Names known = shells();
  if (std::find(known.begin(), known.end(), shell) == known.end()) {
    return Error{Code::usage, fmt::format("unknown shell '{}'", shell), suggestion(shell, known)};
  }
  const std::string script = completion_script(shell, context.program());
  context.print(script);
  FULCRUM_CHECK(
      context.write_json(Json{{"schema", "fulcrum.completion/1"}, {"shell", shell}, {"script", script}}));
  return Exit::ok;
}

}  // namespace

Command completion() {
  return Command{
      .name = "completion",
      .summary = "Print the completion script of a shell",
      .details =
          "The script asks the program for commands, options, ops and backends, so it never goes stale.",
      .positionals = {{.name = "SHELL", .help = "bash, zsh or fish", .required = true}},
      .user_command = "the words typed so far, for the scripts",
      .user_command_hidden = true,
      .examples = {{"eval \"$(fulcrum completion bash)\"", "in ~/.bashrc"},
                   {"fulcrum completion fish > ~/.config/fish/completions/fulcrum.fish", "for fish"}},
      .run = run_completion,
  };
}

}  // namespace fulcrum::cli
