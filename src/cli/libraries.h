// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// The libraries that backends found, as their descriptions tell.
#pragma once

#include <fulcrum/core.h>

#include <string>
#include <vector>

namespace fulcrum::cli {

struct Library {
  std::string backend, name;  // as the backend spells it: "openblas"
  bool loaded = false;
  std::string why_not;
  std::string version;
  std::string core;      // kernels in use: a core type or an instruction set
  std::string detected;  // what the library would have chosen by itself, where that was corrected
};

std::vector<Library> libraries();

}  // namespace fulcrum::cli
