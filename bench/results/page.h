// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// The page of measured figures, made from the result files: machines, rows beside their peers and the CPU, and which
// rows were measured with a kernel that has changed since.
#pragma once

#include <fulcrum/core.h>
#include <fulcrum/executor/regret.h>

#include <map>

namespace fulcrum::results {

/// The hash of the file that a kernel is built from now; empty: not known.
using SourceHash = std::string (*)(std::string_view backend, std::string_view op);
std::string present_source_hash(std::string_view backend, std::string_view op);

/// One row of another project's library, with the same op, shape and type as ours.
struct Peer {
  std::string name;  // "torch 2.11.0"
  std::string op, precision, regime, cache;
  Shape shape;
  bool bias = false;                       // a matmul with one
  Estimate seconds;                        // of a call as seen by the host
  std::optional<Estimate> device_seconds;  // inside a graph
};

/// Flag that the reader puts on rows of files named *-bias.json: the optional input is not part of a row's shape.
inline constexpr std::string_view kWithBias = "with_bias";
bool with_bias(const Measurement& row);

/// One set of calls on which the executor's choices were scored.
struct RegretSet {
  std::string file;               // below results/
  std::string build;              // the commit that its program was built from
  executor::RegretReport report;  // without rows
};

/// What one folder below results/ holds.
struct Folder {
  std::string name;    // "h200"
  std::string device;  // "NVIDIA H200", or the CPU where there is no GPU
  std::string driver, measured_utc;
  std::vector<std::string> commits;
  std::vector<Measurement> rows;
  std::vector<Measurement> calibrated;  // swept for the model, or to check it (suites of bench/device)
  /// By backend and op: the kernel that the newest of those suites measured, and which suite that was.
  std::map<std::string, std::pair<std::size_t, std::string>> newest_kernel;
  std::vector<Peer> peers;
  std::vector<Json> breakevens;     // documents fulcrum.breakeven/1
  std::vector<Json> ledger_checks;  // documents fulcrum.ledger_check/1
  std::vector<Json> turns;          // documents fulcrum.beside/1
  std::vector<RegretSet> regrets;   // documents fulcrum.regret/3
  std::vector<Json>
      suites;  // documents fulcrum.bench/1 of a suite; their rows, on inputs of their own, are not in `rows`
};

/// Reads every JSON file below `results`, one folder a machine. Documents of other kinds are left alone.
Result<std::vector<Folder>> read_folders(const std::filesystem::path& results);
std::string page(const std::vector<Folder>& folders, SourceHash source_hash);
/// A few rows of each machine with a GPU, for README: between its lines "<!-- results -->" and "<!-- /results -->".
std::string summary(const std::vector<Folder>& folders, SourceHash source_hash);
/// Every row, without those of a kernel that has changed since where there are newer ones of it.
std::vector<Measurement> current(const Folder& folder);
/// The document in share/measured: the fastest variant of every op, shape, precision and regime.
std::string measured(const Folder& folder);
/// docs/predictions.md: how far the model is off on the machines whose profile is shipped.
Result<std::string> predictions(const std::vector<Folder>& folders, const std::filesystem::path& root);
/// docs/regret.md: what the executor's choices cost, set by set.
std::string regrets(const std::vector<Folder>& folders);
/// An error where the document is of another version: a set must not be missing from the page in silence.
Result<RegretSet> regret_set(const Json& json, const std::string& file);
/// Where the GPU begins to win: said from the shipped profile, and measured; nothing where none was measured.
std::string breakeven_table(const Folder& folder);
/// A shape as users type it, completed as the op says.
Result<Shape> shape_from(const std::string& op, const std::string& text, const std::string& dtype);
/// Where the time of traced calls went, and round trips by the way that the data takes; nothing where none were measured.
std::string ledger_table(const Folder& folder);
std::string trip_table(const Folder& folder);
/// Batches of independent calls beside the same calls one after the other, and rows of suites beside their budgets.
std::string overlap_table(const Folder& folder);
std::string suite_tables(const Folder& folder);
/// Ours and theirs in one process; nothing where none were measured.
std::string turn_table(const Folder& folder, SourceHash source_hash);
/// "12 us [11 us, 13 us]".
std::string shown(const Estimate& seconds);

}  // namespace fulcrum::results
