// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// A bench document as the user asked for it: a table with sentences below, or the text of another tool.
#pragma once

#include <fulcrum/report.h>

#include <nlohmann/json.hpp>

#include "cli/context.h"
#include "cli/options.h"

namespace fulcrum::cli {

Names format_names();
/// --format json is --json -; two things cannot own standard output.
Status check_formats(const Options& options, Context& context);

struct Presentation {
  std::string format;                     // --format
  std::string below_the_table = {};       // what else the table's reader wants to know
  std::string instead_of_tables = {};     // a suite's own tables
  std::string above_markdown = {};        // the same for --format markdown, where it is not instead
  std::string instead_of_csv = {};        // a suite's own columns
  std::map<std::string, Json> more = {};  // what else the document holds
  std::filesystem::path record;           // where the samples are
};
Status show(const report::BenchDocument& document, const Presentation& presentation, Context& context);

/// The exit code that a finished document deserves: wrong results outrank missing ones.
Exit exit_of(const report::BenchDocument& document);

}  // namespace fulcrum::cli
