// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Rows of fulcrum.beside/1: our kernels and another project's in one process, in turns.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "page.h"

namespace fulcrum::results {
namespace {

/// What is the same work: of several ways of theirs to do it the fastest is shown.
std::string work_of(const Json& row) {
  return fmt::format("{}|{}|{}|{}", row["op"].get<std::string>(), row["shape"].get<std::string>(),
                     row["precision"].get<std::string>(), row.value("inputs", ""));
}

double theirs(const Json& row) { return row["theirs_seconds"]["median"].get<double>(); }

std::vector<const Json*> fastest_of_theirs(const Json& document) {
  std::vector<const Json*> result;
  for (const Json& row : document["results"]) {
    if (!row.contains("advantage")) continue;
    const auto known = std::find_if(result.begin(), result.end(),
                                    [&](const Json* other) { return work_of(*other) == work_of(row); });
    if (known == result.end()) {
      result.push_back(&row);
    } else if (theirs(row) < theirs(**known)) {
      *known = &row;
    }
  }
  return result;
}

std::string line_of(const Json& document, const Json& row, SourceHash source_hash) {
  const auto op = row["op"].get<std::string>();
  const auto estimate = [&](const char* name) {
    return shown(Estimate{.median = row[name]["median"].get<double>(),
                          .ci_low = row[name]["ci_low"].get<double>(),
                          .ci_high = row[name]["ci_high"].get<double>()});
  };
  const std::string measured = document.value(Json::json_pointer("/source_hashes/" + op), "");
  const std::string now = source_hash("cuda", op);
  const bool stale = !measured.empty() && !now.empty() && measured != now;
  const Json& ratio = row["advantage"];
  return fmt::format("| {} | {}{}, {}{} | {}{} {} | {} {} | {:.3f} [{:.3f}, {:.3f}] |\n", op,
                     row["shape"].get<std::string>(), row.contains("inputs") ? ", with bias" : "",
                     row["precision"].get<std::string>(), row["cache"] == "cold" ? ", cold" : "",
                     row["ours"].get<std::string>(), stale ? ", *stale*," : "", estimate("ours_seconds"),
                     row["variant"].get<std::string>(), estimate("theirs_seconds"),
                     ratio["median"].get<double>(), ratio["ci_low"].get<double>(),
                     ratio["ci_high"].get<double>());
}

}  // namespace

std::string turn_table(const Folder& folder, SourceHash source_hash) {
  std::string lines;
  for (const Json& document : folder.turns) {
    for (const Json* row : fastest_of_theirs(document)) lines += line_of(document, *row, source_hash);
  }
  if (lines.empty()) return {};
  const Json& first = folder.turns.front();
  return fmt::format(
      "\nOn the device in one process with {} {}, graphs of calls on the same operands replayed in turns "
      "([peers.md](peers.md)); above 1 ours is faster:\n\n| op | shape | ours | theirs | ratio |\n"
      "|---|---|---|---|---|\n{}",
      first.value("peer", ""), first.value("version", ""), lines);
}

}  // namespace fulcrum::results
