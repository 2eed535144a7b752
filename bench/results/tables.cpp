// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// The tables about trips: which way is how fast, and where the time of a traced call goes.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "page.h"

namespace fulcrum::results {
namespace {

struct Phase {
  std::string_view name;
  double Ledger::*seconds;
};
constexpr Phase kPhases[] = {{"alloc", &Ledger::alloc},     {"pin", &Ledger::pin},
                             {"h2d", &Ledger::h2d},         {"launch", &Ledger::launch},
                             {"queue", &Ledger::queue},     {"kernel", &Ledger::kernel},
                             {"sync", &Ledger::sync},       {"d2h", &Ledger::d2h},
                             {"migrate", &Ledger::migrate}, {"free", &Ledger::free}};

/// Those that took at least a hundredth of the call, longest first.
std::string phases_of(const Ledger& ledger) {
  std::vector<Phase> list(std::begin(kPhases), std::end(kPhases));
  std::sort(list.begin(), list.end(),
            [&](const Phase& a, const Phase& b) { return ledger.*a.seconds > ledger.*b.seconds; });
  std::string text;
  for (const Phase& phase : list) {
    if (ledger.*phase.seconds < 0.01 * ledger.end_to_end_instrumented) break;
    text +=
        fmt::format("{}{} {}", text.empty() ? "" : ", ", phase.name, human_seconds(ledger.*phase.seconds));
  }
  return text;
}

const Peer* pinned_peer(const Folder& folder, const Measurement& row) {
  for (const Peer& peer : folder.peers) {
    if (peer.op == row.op && peer.regime == "roundtrip" && peer.shape == row.shape) return &peer;
  }
  return nullptr;
}

}  // namespace

std::string ledger_table(const Folder& folder) {
  std::string rows;
  for (const Measurement& row : folder.rows) {
    if (!row.ledger) continue;
    const Ledger& ledger = *row.ledger;
    rows += fmt::format("| {} | {} | {}{}{} | {} | {} | {} | {} ({:.1f} %) | {:+.1f} % |\n", row.op,
                        row.shape.text(), to_string(row.regime), row.path.empty() ? "" : ", ", row.path,
                        human_seconds(ledger.end_to_end_bare), human_seconds(ledger.end_to_end_instrumented),
                        phases_of(ledger), human_seconds(ledger.unattributed), 100 * ledger.residual(),
                        100 * ledger.perturbation());
  }
  if (rows.empty()) return {};
  return "\nWhere the time of a call goes. *bare* is the call without a tracer, *traced* the one whose "
         "phases add up; "
         "*residual* is what no phase explains, *perturbation* what tracing adds to the call.\n\n"
         "| op | shape | regime | bare | traced | phases | residual | perturbation "
         "|\n|---|---|---|---|---|---|---|---|\n" +
         rows;
}

std::string trip_table(const Folder& folder) {
  struct Line {
    const Measurement* first = nullptr;
    std::map<std::string, const Measurement*> by_path;
  };
  std::vector<Line> lines;
  std::vector<std::string> paths;
  for (const Measurement& row : folder.rows) {
    if (row.regime != Regime::roundtrip && row.regime != Regime::managed) continue;
    if (row.ledger || row.stop_reason == StopReason::invalid) continue;
    auto line = std::find_if(lines.begin(), lines.end(), [&](const Line& known) {
      return known.first->op == row.op && known.first->shape == row.shape;
    });
    if (line == lines.end()) line = lines.insert(lines.end(), Line{.first = &row});
    const Measurement*& best = line->by_path[row.path];
    if (!best || row.seconds.median < best->seconds.median) best = &row;
    if (std::find(paths.begin(), paths.end(), row.path) == paths.end()) paths.push_back(row.path);
  }
  if (lines.empty()) return {};
  std::string text =
      "\nRound trips from and to the host's memory, by the way that the data takes:\n\n| op | shape |";
  for (const std::string& path : paths) text += fmt::format(" {} |", path);
  text += " peer, pinned copies |\n|---|---|";
  for (std::size_t i = 0; i <= paths.size(); ++i) text += "---|";
  text += "\n";
  for (const Line& line : lines) {
    text += fmt::format("| {} | {} |", line.first->op, line.first->shape.text());
    for (const std::string& path : paths) {
      const auto found = line.by_path.find(path);
      text += fmt::format(" {} |", found == line.by_path.end() ? "" : shown(found->second->seconds));
    }
    const Peer* peer = pinned_peer(folder, *line.first);
    text += fmt::format(" {} |\n", peer ? fmt::format("{} {}", peer->name, shown(peer->seconds)) : "");
  }
  return text;
}

}  // namespace fulcrum::results
