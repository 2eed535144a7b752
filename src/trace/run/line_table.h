// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// The sources that a binary says it was compiled from.
#pragma once

#include <fulcrum/core.h>

namespace fulcrum::trace {

/// Absolute paths from the file tables of .debug_line; empty without debug information, or where it is compressed.
std::vector<std::string> sources_of(std::string_view elf);

}  // namespace fulcrum::trace
