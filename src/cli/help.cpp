// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
#include "cli/help.h"

#include <fmt/format.h>
#include <fulcrum/report.h>

#include <algorithm>

namespace fulcrum::cli {
namespace {

constexpr std::string_view kSentence =
    "Finds the point where work tips from the CPU to the GPU, and measures honestly on the way there.";

struct ExitMeaning {
  int code;
  std::string_view meaning;
};
constexpr ExitMeaning kExits[] = {
    {0, "fine"},
    {1, "a finding or a regression, only where a gate was asked for"},
    {2, "usage: the command line is wrong"},
    {3, "environment: a file, a permission, a library or a device is missing"},
    {4, "inconclusive"},
    {5, "invalid: a result was wrong or impossible"},
    {130, "interrupted; what was measured is in the run record"},
};

bool shows_user_command(const Command& command) {
  return !command.user_command.empty() && !command.user_command_hidden;
}

std::string usage_of(const Positional& slot) {
  const std::string name = std::string(slot.name) + (slot.repeat ? "..." : "");
  return slot.required ? name : "[" + name + "]";
}

std::vector<std::string> usages(const Command& command, std::string_view program) {
  std::string line = fmt::format("{} {}", program, command.name);
  std::vector<std::string> lines;
  std::string positionals;
  for (const Positional& slot : command.positionals) positionals += " " + usage_of(slot);
  lines.push_back(line + positionals + " [options]");
  if (shows_user_command(command)) lines.push_back(line + " [options] -- COMMAND ARGUMENTS...");
  return lines;
}

std::string option_head(const Option& option) {
  return option.value.empty() ? fmt::format("--{}", option.name)
                              : fmt::format("--{} {}", option.name, option.value);
}

std::string option_text(const Option& option) {
  std::string text(option.help);
  if (option.list) text += "; may repeat or be a list a,b";
  if (option.repeat) text += "; may repeat";
  if (!option.fallback.empty()) text += fmt::format(" (default {})", option.fallback);
  return text;
}

/// Two columns: what is typed, and what it means, wrapped beside it.
std::string entries(const std::vector<std::pair<std::string, std::string>>& rows, int width) {
  std::size_t left = 0;
  for (const auto& [head, text] : rows) left = std::max(left, std::min<std::size_t>(head.size(), 26));
  const int indent = static_cast<int>(left) + 4;
  std::string result;
  for (const auto& [head, text] : rows) {
    std::string wrapped = report::wrap(text, width - indent, 0);
    for (std::size_t at = wrapped.find('\n'); at != std::string::npos; at = wrapped.find('\n', at + 1)) {
      wrapped.insert(at + 1, std::string(static_cast<std::size_t>(indent), ' '));
    }
    const bool beside = head.size() <= left;
    result += "  " + head +
              (beside ? std::string(left - head.size() + 2, ' ')
                      : "\n" + std::string(static_cast<std::size_t>(indent), ' '));
    result += wrapped + "\n";
  }
  return result;
}

std::vector<std::pair<std::string, std::string>> option_entries(const Command& command) {
  std::vector<std::pair<std::string, std::string>> rows;
  for (const Option& option : command.options) {
    if (!option.hidden) rows.emplace_back(option_head(option), option_text(option));
  }
  return rows;
}

std::string escaped(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (c == '|' || c == '<') result += '\\';
    result += c;
  }
  return result;
}

std::string markdown_section(const Command& command) {
  std::string text = fmt::format("\n## {}\n\n{}.\n\n```\n", command.name, command.summary);
  for (const std::string& line : usages(command, "fulcrum")) text += line + "\n";
  text += "```\n";
  if (!command.details.empty()) text += "\n" + report::wrap(command.details, 116, 0) + "\n";
  text += "\n| argument | meaning |\n|---|---|\n";
  for (const Positional& slot : command.positionals)
    text += fmt::format("| `{}` | {} |\n", slot.name, escaped(slot.help));
  if (shows_user_command(command))
    text += fmt::format("| `-- COMMAND` | {} |\n", escaped(command.user_command));
  for (const auto& [head, meaning] : option_entries(command))
    text += fmt::format("| `{}` | {} |\n", escaped(head), escaped(meaning));
  if (command.examples.empty()) return text;
  text += "\n```sh\n";
  for (const Example& example : command.examples)
    text += fmt::format("{:<58}  # {}\n", example.line, example.meaning);
  return text + "```\n";
}

}  // namespace

std::string overview(const HelpStyle& style) {
  std::string text = report::wrap(kSentence, style.width, 0) + "\n\n";
  text += fmt::format("usage: {} COMMAND [options]\n\n", style.program);
  std::vector<std::pair<std::string, std::string>> rows;
  for (const Command& command : commands()) rows.emplace_back(command.name, command.summary);
  text += entries(rows, style.width);
  return text +
         fmt::format("\n`{} COMMAND --help` explains one; `{} doctor` says what works on this machine.\n",
                     style.program, style.program);
}

std::string command_help(const Command& command, const HelpStyle& style) {
  std::string text = report::wrap(fmt::format("{}.", command.summary), style.width, 0) + "\n\n";
  std::string head = "usage: ";
  for (const std::string& line : usages(command, style.program)) {
    text += head + line + "\n";
    head = "       ";
  }
  if (!command.details.empty()) text += "\n" + report::wrap(command.details, style.width, 0) + "\n";
  std::vector<std::pair<std::string, std::string>> rows;
  for (const Positional& slot : command.positionals) rows.emplace_back(slot.name, slot.help);
  if (shows_user_command(command)) rows.emplace_back("-- COMMAND", command.user_command);
  if (!rows.empty())
    text += "\n" + report::paint("arguments", report::Tone::strong, style.colour) + "\n" +
            entries(rows, style.width);
  text += "\n" + report::paint("options", report::Tone::strong, style.colour) + "\n" +
          entries(option_entries(command), style.width);
  if (command.examples.empty()) return text;
  text += "\n" + report::paint("examples", report::Tone::strong, style.colour) + "\n";
  for (const Example& example : command.examples) {
    std::string line(example.line);
    if (line.rfind("fulcrum", 0) == 0) line.replace(0, 7, style.program);
    text += fmt::format("  {}\n", line) +
            fmt::format("      {}\n", report::wrap(example.meaning, style.width - 6, 6));
  }
  return text;
}

std::string markdown_reference() {
  std::string text =
      "<!-- Written by `fulcrum help --markdown`; a test compares. -->\n"
      "# The command line\n\n"
      "Options are long and spelled out, things are named by position, `--` starts a command of yours.\n"
      "Progress and errors go to standard error; an error is one line that says what is wrong and one that\n"
      "says what to do.\n\n"
      "| command | does |\n|---|---|\n";
  for (const Command& command : commands()) {
    text += fmt::format("| [`{}`](#{}) | {} |\n", command.name, command.name, escaped(command.summary));
  }
  text += "\n| exit code | meaning |\n|---|---|\n";
  for (const ExitMeaning& exit : kExits) text += fmt::format("| {} | {} |\n", exit.code, exit.meaning);
  text += "\n| environment variable | meaning |\n|---|---|\n";
  for (const EnvironmentVariable& variable : environment_variables()) {
    text += fmt::format("| `{}` | {} |\n", variable.name, escaped(variable.meaning));
  }
  for (const Command& command : commands()) text += markdown_section(command);
  return text;
}

}  // namespace fulcrum::cli
