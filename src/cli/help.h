// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Help for people and docs/cli.md, both made from the descriptors.
#pragma once

#include <string>

#include "cli/command.h"

namespace fulcrum::cli {

struct HelpStyle {
  std::string program = "fulcrum";
  int width = 100;
  bool colour = false;
};

/// `fulcrum --help`: every command with its summary.
std::string overview(const HelpStyle& style);
/// `fulcrum bench --help`.
std::string command_help(const Command& command, const HelpStyle& style);
/// docs/cli.md.
std::string markdown_reference();

}  // namespace fulcrum::cli
