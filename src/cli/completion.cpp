// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
#include "cli/completion.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

namespace fulcrum::cli {
namespace {

constexpr std::string_view kBash = R"sh(# bash completion for {0}: eval "$({0} completion bash)"
_{1}_complete() {{
  local words=("${{COMP_WORDS[@]:1:COMP_CWORD}}")
  local IFS=$'\n'
  COMPREPLY=($("${{COMP_WORDS[0]}}" completion words -- "${{words[@]:-}}" 2>/dev/null | cut -f1))
}}
complete -o default -F _{1}_complete {0}
)sh";

constexpr std::string_view kZsh = R"sh(#compdef {0}
# zsh completion for {0}: eval "$({0} completion zsh)"
_{1}_complete() {{
  local -a found
  local word meaning
  while IFS=$'\t' read -r word meaning; do
    found+=("${{word//:/\\:}}:${{meaning}}")
  done < <("${{words[1]}}" completion words -- "${{(@)words[2,CURRENT]}}" 2>/dev/null)
  if (( ${{#found}} )); then _describe '{0}' found; else _files; fi
}}
compdef _{1}_complete {0}
)sh";

constexpr std::string_view kFish = R"sh(# fish completion for {0}: {0} completion fish | source
function __{1}_complete
  set -l words (commandline -opc) (commandline -ct)
  $words[1] completion words -- $words[2..-1] 2>/dev/null
end
complete -c {0} -f -a '(__{1}_complete)'
)sh";

bool begins(std::string_view text, std::string_view start) { return text.substr(0, start.size()) == start; }

const Option* option_named(const Command& command, std::string_view dashed) {
  for (const Option& option : command.options) {
    if (!option.hidden && dashed == fmt::format("--{}", option.name)) return &option;
  }
  return nullptr;
}

void add_matching(std::vector<Candidate>& list, const Names& names, std::string_view start) {
  for (const std::string& name : names) {
    if (begins(name, start)) list.push_back({name, ""});
  }
}

/// Values of the option whose argument is being typed; in a list only the part after the last comma counts.
std::vector<Candidate> option_values(const Option& option, const std::string& typed) {
  std::vector<Candidate> list;
  if (!option.choices) return list;
  const std::size_t comma = option.list ? typed.rfind(',') : std::string::npos;
  const std::string done = comma == std::string::npos ? "" : typed.substr(0, comma + 1);
  add_matching(list, option.choices(), typed.substr(done.size()));
  for (Candidate& candidate : list) candidate.word = done + candidate.word;
  return list;
}

std::vector<Candidate> command_candidates(std::string_view start) {
  std::vector<Candidate> list;
  for (const Command& command : commands()) {
    if (begins(command.name, start))
      list.push_back({std::string(command.name), std::string(command.summary)});
  }
  for (const std::string_view option : {"--help", "--version"}) {
    if (!start.empty() && begins(option, start)) list.push_back({std::string(option), ""});
  }
  return list;
}

}  // namespace

std::vector<Candidate> candidates(const std::vector<std::string>& words) {
  if (words.size() < 2) return command_candidates(words.empty() ? "" : words[0]);
  const auto command = find_command(words[0]);
  if (!command.ok()) return {};
  const std::string& typed = words.back();
  std::size_t positionals = 0;
  const Option* pending = nullptr;
  for (std::size_t i = 1; i + 1 < words.size(); ++i) {
    if (words[i] == "--") return {};  // a command of the user's: the shell knows better
    if (pending) {
      pending = nullptr;
    } else if (const Option* option = option_named(**command, words[i])) {
      pending = option->kind == Kind::flag ? nullptr : option;
    } else if (!begins(words[i], "-")) {
      ++positionals;
    }
  }
  if (pending) return option_values(*pending, typed);
  std::vector<Candidate> list;
  if (begins(typed, "-")) {
    for (const Option& option : (*command)->options) {
      const std::string name = fmt::format("--{}", option.name);
      if (!option.hidden && begins(name, typed)) list.push_back({name, std::string(option.help)});
    }
    return list;
  }
  const auto& slots = (*command)->positionals;
  if (slots.empty() || (positionals >= slots.size() && !slots.back().repeat)) return list;
  const Positional& slot = slots[std::min(positionals, slots.size() - 1)];
  if (slot.choices) add_matching(list, slot.choices(), typed);
  return list;
}

std::string completion_script(const std::string& shell, const std::string& program) {
  std::string function = program;
  std::replace_if(
      function.begin(), function.end(), [](unsigned char c) { return !std::isalnum(c); }, '_');
  const std::string_view script = shell == "bash" ? kBash : shell == "zsh" ? kZsh : kFish;
  return fmt::format(fmt::runtime(script), program, function);
}

}  // namespace fulcrum::cli
