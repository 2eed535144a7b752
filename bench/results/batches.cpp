// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// The tables about whole workloads: batches of calls that overlap, and suites beside their budgets.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "page.h"

namespace fulcrum::results {
namespace {

/// The row of the same call in a regime and on a path, traced or not.
const Measurement* like(const Folder& folder, const Measurement& row, Regime regime, std::string_view path,
                        bool traced) {
  for (const Measurement& other : folder.rows) {
    if (other.op == row.op && other.shape == row.shape && other.backend == row.backend &&
        other.variant == row.variant && other.regime == regime && other.path == path &&
        other.ledger.has_value() == traced)
      return &other;
  }
  return nullptr;
}

double busy_of(const Ledger& ledger, const char* phase) {
  const auto found = ledger.busy.find(phase);
  return found == ledger.busy.end() ? 0 : found->second;
}

/// "in 76.1 us, kernel 2.8 us, out 75.9 us; 1.04 x the longest", from a traced batch.
std::string busy_text(const Measurement* traced) {
  if (!traced) return "";
  const Ledger& ledger = *traced->ledger;
  const double in = busy_of(ledger, "h2d"), kernel = busy_of(ledger, "kernel"), out = busy_of(ledger, "d2h");
  const double longest = std::max({in, kernel, out});
  if (longest <= 0) return "";
  return fmt::format("in {}, kernel {}, out {}; {:.2f} x the longest", human_seconds(in),
                     human_seconds(kernel), human_seconds(out), ledger.end_to_end_instrumented / longest);
}

const Json* best_of(const Json& suite_row, const Json& document, std::string_view regime) {
  for (const Json& best : suite_row["best"]) {
    if (best["regime"] == regime) return &document["results"][best["result"].get<std::size_t>()];
  }
  return nullptr;
}

std::string mean_of(const Json* result) {
  return result ? human_seconds((*result)["seconds"]["mean"].get<double>()) : "";
}

std::string suite_row(const Json& row, const Json& document, const std::vector<std::string>& regimes) {
  const bool budgeted = row.contains("budget_seconds");
  const Json* const resident = best_of(row, document, "resident");
  std::string text = fmt::format("| {} | {} |", row["name"].get<std::string>(),
                                 budgeted ? human_seconds(row["budget_seconds"].get<double>()) : "");
  for (const std::string& regime : regimes)
    text += fmt::format(" {} |", mean_of(best_of(row, document, regime)));
  const bool timed =
      resident && resident->contains("device_seconds") && (*resident)["device_seconds"].is_object();
  text +=
      fmt::format(" {} |", timed ? human_seconds((*resident)["device_seconds"]["median"].get<double>()) : "");
  const double share = resident && budgeted ? (*resident)["seconds"]["mean"].get<double>() /
                                                  row["budget_seconds"].get<double>()
                                            : 0;
  return text + fmt::format(" {} |\n", share > 0 ? fmt::format("{:.2f} %", 100 * share) : "");
}

}  // namespace

std::string overlap_table(const Folder& folder) {
  std::string rows;
  for (const Measurement& row : folder.rows) {
    if (row.regime != Regime::overlapped || row.ledger || row.stop_reason == StopReason::invalid) continue;
    const Measurement* const serial = like(folder, row, Regime::roundtrip, "copy", false);
    rows += fmt::format("| {} | {} | {} | {} | {} | {} | {} |\n", row.op, row.shape.text(),
                        serial ? shown(serial->seconds) : "", shown(row.seconds),
                        serial ? fmt::format("{:.2f} x", serial->seconds.median / row.seconds.median) : "",
                        busy_text(like(folder, row, Regime::overlapped, row.path, true)), row.detail);
  }
  if (rows.empty()) return {};
  return "\nIndependent calls on host data, one after the other (path `copy`) and overlapped, per call. "
         "*busy* is what a "
         "traced batch kept each part of the device busy with, per call: the longest is the floor.\n\n"
         "| op | shape | in turn | overlapped | gain | busy | how |\n|---|---|---|---|---|---|---|\n" +
         rows;
}

std::string suite_tables(const Folder& folder) {
  std::string text;
  for (const Json& document : folder.suites) {
    const Json& suite = document["suite"];
    std::vector<std::string> regimes;  // in the order of the enumeration
    for (const std::string_view name : names_of<Regime>()) {
      const auto has = [&](const Json& row) { return best_of(row, document, name) != nullptr; };
      if (std::any_of(suite["rows"].begin(), suite["rows"].end(), has)) regimes.emplace_back(name);
    }
    text += fmt::format("\nSuite `{}` ({}), means of the fastest kernel in each regime:\n\n| row | budget |",
                        suite["name"].get<std::string>(), suite["system"].get<std::string>());
    for (const std::string& regime : regimes) text += fmt::format(" {} |", regime == "host" ? "CPU" : regime);
    text += " device | resident/budget |\n|---|---|";
    for (std::size_t i = 0; i < regimes.size() + 2; ++i) text += "---|";
    text += "\n";
    for (const Json& row : suite["rows"]) {
      if (!row["best"].empty()) text += suite_row(row, document, regimes);
    }
  }
  return text;
}

}  // namespace fulcrum::results
