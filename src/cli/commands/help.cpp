// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
#include "cli/help.h"

#include "cli/context.h"
#include "cli/options.h"

#include <nlohmann/json.hpp>

namespace fulcrum::cli {
namespace {

Names command_names() {
  Names names;
  for (const Command& command : commands()) names.emplace_back(command.name);
  return names;
}

Json reference() {
  Json list = Json::array();
  for (const Command& command : commands()) {
    Json options = Json::array();
    for (const Option& option : command.options) {
      if (!option.hidden)
        options.push_back(Json{{"name", option.name}, {"value", option.value}, {"help", option.help}});
    }
    list.push_back(Json{{"name", command.name}, {"summary", command.summary}, {"options", options}});
  }
  return Json{{"schema", "fulcrum.commands/1"}, {"commands", list}};
}

Result<Exit> run_help(const Options& options, Context& context) {
  FULCRUM_CHECK(context.write_json(reference()));
  if (options.has("markdown")) {
    context.print(markdown_reference());
    return Exit::ok;
  }
  const HelpStyle style{context.program(), context.width(), context.colour()};
  if (options.positionals().empty()) {
    context.print(overview(style));
    return Exit::ok;
  }
  FULCRUM_TRY(const Command* command, find_command(options.positionals()[0]));
  context.print(command_help(*command, style));
  return Exit::ok;
}

}  // namespace

Command help() {
  return Command{
      .name = "help",
      .summary = "Show all commands, or explain one",
      .positionals = {{.name = "COMMAND",
                       .help = "the command to explain",
                       .choices = command_names,
                       .what = "command"}},
      .options = {{.name = "markdown",
                   .help = "the whole reference as Markdown: docs/cli.md",
                   .kind = Kind::flag,
                   .hidden = true}},
      .run = run_help,
  };
}

}  // namespace fulcrum::cli
