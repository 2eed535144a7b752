// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// The command line of one command, parsed and checked against its descriptor.
#pragma once

#include <fulcrum/core.h>

#include <map>

#include "cli/command.h"

namespace fulcrum::cli {

class Options {
 public:
  explicit Options(const Command& command) : command_(&command) {}

  bool has(std::string_view name) const { return given_.find(name) != given_.end(); }
  /// The last value given, else the option's fallback.
  std::string text(std::string_view name) const;
  double number(std::string_view name) const;
  std::int64_t count(std::string_view name) const;
  /// Every value of a repeatable option, lists taken apart.
  std::vector<std::string> list(std::string_view name) const;
  const std::vector<std::string>& positionals() const { return positionals_; }
  /// What follows `--`: one user's command, or several with `--` between them.
  const std::vector<std::vector<std::string>>& user_commands() const { return user_commands_; }
  const Command& command() const { return *command_; }

 private:
  friend class Parser;
  const Option& option(std::string_view name) const;
  const Command* command_;
  std::map<std::string, std::vector<std::string>, std::less<>> given_;
  std::vector<std::string> positionals_;
  std::vector<std::vector<std::string>> user_commands_;
};

/// `arguments` without program and command name. After --help nothing is required any more.
Result<Options> parse(const Command& command, const std::vector<std::string>& arguments);

}  // namespace fulcrum::cli
