// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Shell completion: the scripts are three lines of shell that ask the program itself, so they know every option, op
// and backend of the build they belong to.
#pragma once

#include <string>
#include <vector>

#include "cli/command.h"

namespace fulcrum::cli {

struct Candidate {
  std::string word, meaning;
};

/// What may stand in place of the last of `words` (which may be empty). `words` starts after the program's name.
std::vector<Candidate> candidates(const std::vector<std::string>& words);

/// The script for bash, zsh or fish.
std::string completion_script(const std::string& shell, const std::string& program);

}  // namespace fulcrum::cli
