// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// The page of measured figures, made from the result files: machines, rows beside their peers and the CPU, and which
// rows were measured with a kernel that has changed since.
#pragma once

#include <fulcrum/core.h>

namespace fulcrum::results {

/// The hash of the file that a kernel is built from now; empty: not known.
using SourceHash = std::string (*)(std::string_view backend, std::string_view op);
std::string present_source_hash(std::string_view backend, std::string_view op);

/// One row of another project's library, with the same op, shape and type as ours.
struct Peer {
  std::string name;  // "torch 2.11.0"
  std::string op, precision, regime, cache;
  Shape shape;
  Estimate seconds;                        // of a call as seen by the host
  std::optional<Estimate> device_seconds;  // inside a graph
};

/// What one folder below results/ holds.
struct Folder {
  std::string name;    // "h200"
  std::string device;  // "NVIDIA H200", or the CPU where there is no GPU
  std::string driver, measured_utc;
  std::vector<std::string> commits;
  std::vector<Measurement> rows;
  std::vector<Peer> peers;
  std::vector<Json> ledger_checks;  // documents fulcrum.ledger_check/1
};

/// Reads every JSON file below `results`, one folder a machine. Documents of other kinds are left alone.
Result<std::vector<Folder>> read_folders(const std::filesystem::path& results);
std::string page(const std::vector<Folder>& folders, SourceHash source_hash);

}  // namespace fulcrum::results
