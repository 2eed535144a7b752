// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// What a command is: one descriptor from which parsing, --help, docs/cli.md and shell completion are made. A command
// is one file in src/cli/commands and one line in list.def.
#pragma once

#include <fulcrum/core.h>

#include <string>
#include <string_view>
#include <vector>

namespace fulcrum::cli {

class Options;
class Context;

enum class Exit : int {
  ok = 0,
  finding = 1,
  usage = 2,
  environment = 3,
  inconclusive = 4,
  invalid = 5,
  interrupted = 130,
};

enum class Kind : std::uint8_t { flag, text, number, count, file };

using Names = std::vector<std::string>;

struct Option {
  std::string_view name;   // without the dashes
  std::string_view value;  // how help spells the value; empty for flags
  std::string_view help;
  Kind kind = Kind::text;
  std::string_view fallback = {};  // value when the option is absent
  double at_least = 0;             // numbers and counts
  bool above = false;              // at_least itself is refused
  bool list = false;               // may repeat, and takes a,b,c
  bool repeat = false;             // may repeat, commas belong to the value
  int values = 1;                  // how many arguments follow
  int optional_values = 0;         // and how many more may
  Names (*choices)() = nullptr;    // known values, for completion and for refusing others
  std::string_view what = {};      // what a choice is called in an error: "backend"
  bool open = false;               // choices are suggestions only
  bool hidden = false;
};

struct Positional {
  std::string_view name;  // "OP"
  std::string_view help;
  bool required = false;
  bool repeat = false;
  Names (*choices)() = nullptr;
  std::string_view what = {};
};

struct Example {
  std::string_view line, meaning;
};

struct Command {
  std::string_view name;
  std::string_view summary;  // one line, no full stop
  std::string_view details = {};
  std::vector<Positional> positionals = {};
  std::vector<Option> options = {};
  std::string_view user_command = {};  // help for `-- CMD ...`; empty: not taken
  bool user_command_hidden = false;
  std::vector<Example> examples = {};
  Result<Exit> (*run)(const Options&, Context&) = nullptr;
};

/// Every command in the order of list.def, each with --json and --help.
const std::vector<Command>& commands();
/// An unknown name is an error with the nearest one as hint.
Result<const Command*> find_command(std::string_view name);

/// "did you mean 'x'?" or "known: a, b, c".
std::string suggestion(std::string_view wanted, const Names& known);

// What several commands complete and check.
Names op_names();
Names backend_names();

}  // namespace fulcrum::cli
