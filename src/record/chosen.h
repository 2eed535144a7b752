// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Names for code that a library chooses when it is loaded: `pow` or `memcpy` for this CPU. Its symbol table names only the
// chooser, and a stripped library names nothing else; but the library that this process has loaded has chosen too.
#pragma once

#include "record/modules.h"
#include "record/symbol_index.h"

namespace fulcrum::record {

/// ELF addresses of functions that were chosen, with the shortest name each goes by. Empty unless this process has loaded
/// the same file.
std::map<std::uint64_t, std::string> chosen_functions(const Module&, const SymbolIndex&);

}  // namespace fulcrum::record
