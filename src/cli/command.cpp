// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// The list of commands and the names they share.
#include "cli/command.h"

#include <fmt/format.h>
#include <fulcrum/backends.h>
#include <fulcrum/ops.h>

namespace fulcrum::cli {

#define FULCRUM_COMMAND(name) Command name();
#include "cli/commands/list.def"
#undef FULCRUM_COMMAND

const std::vector<Command>& commands() {
  static const std::vector<Command> list = [] {
    std::vector<Command> built = {
#define FULCRUM_COMMAND(name) name(),
#include "cli/commands/list.def"
#undef FULCRUM_COMMAND
    };
    for (Command& command : built) {
      command.options.push_back(Option{.name = "json",
                                       .value = "FILE",
                                       .help = "also write the result as JSON; - for standard "
                                               "output, which then carries nothing else",
                                       .kind = Kind::file});
      command.options.push_back(Option{.name = "help", .help = "show this help", .kind = Kind::flag});
    }
    return built;
  }();
  return list;
}

Result<const Command*> find_command(std::string_view name) {
  Names known;
  for (const Command& command : commands()) {
    if (command.name == name) return &command;
    known.emplace_back(command.name);
  }
  return Error{Code::usage, fmt::format("unknown command '{}'", name), suggestion(name, known)};
}

std::string suggestion(std::string_view wanted, const Names& known) {
  const std::string nearest = nearest_name(wanted, known);
  if (!nearest.empty()) return fmt::format("did you mean '{}'?", nearest);
  return fmt::format("known: {}", fmt::join(known, ", "));
}

Names op_names() {
  Names names;
  for (const ops::Op* op : ops::all()) {
    if (!op->is_probe()) names.emplace_back(op->name);  // probes belong to `fulcrum machine`
  }
  return names;
}

Names backend_names() {
  Names names;
  for (const backends::Backend* backend : backends::all()) names.emplace_back(backend->name());
  return names;
}

}  // namespace fulcrum::cli
