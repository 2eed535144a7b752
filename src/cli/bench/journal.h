// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// The run record of a bench run (fulcrum.run/1): every finished case is on the disk before the next one starts, and
// a record that ends early can be continued. docs/measuring.md describes the lines.
#pragma once

#include <fulcrum/core.h>
#include <fulcrum/report.h>

#include <map>

#include "cli/context.h"
#include "cli/options.h"

namespace fulcrum::cli {

class Journal {
 public:
  /// A new record: --record FILE, or a file named by time in the data folder. Never overwrites one.
  static Result<Journal> create(const Options& options, Context& context);
  /// Continues a record of this machine.
  static Result<Journal> resume(const std::filesystem::path& path, Context& context);

  /// Words after `bench` of the run that began the record.
  const std::vector<std::string>& recorded_arguments() const { return recorded_arguments_; }
  const std::filesystem::path& path() const { return record_.path(); }

  /// What the record holds of a finished row or comparison; null: not measured yet, or interrupted.
  const Measurement* finished(const std::string& row) const;
  const Comparison* compared(const std::string& key) const;
  const report::CommandFacts* facts(const std::string& row) const;
  /// The single processes behind a finished row that has several; empty otherwise.
  std::vector<Measurement> processes(const std::string& row) const;

  /// One case: its description, its samples (of every process), its estimate. On the disk when this returns. `key`
  /// is its name in the record where that is more than the row's.
  Status add(const Measurement& row, const std::vector<Measurement>& processes = {},
             const report::CommandFacts* facts = nullptr, const std::string& key = {});
  Status add(const Comparison& comparison, std::string_view inputs = {});
  Status end(std::string_view status, std::size_t done, std::size_t total, double wall_seconds);

 private:
  explicit Journal(RunRecord record) : record_(std::move(record)) {}
  Status read(const std::vector<Json>& lines);

  RunRecord record_;
  std::vector<std::string> recorded_arguments_;
  std::map<std::string, Measurement> finished_;
  std::map<std::string, Comparison> compared_;
  std::map<std::string, report::CommandFacts> facts_;
  std::map<std::string, std::vector<Measurement>> processes_;
};

/// The lines of one case: also what a worker process hands to the one that started it.
std::vector<Json> case_lines(const Measurement& row, const std::vector<Measurement>& processes);
/// Every batch of one process, from its line; empty when there are several.
std::vector<Sample> samples_from(const std::vector<Json>& sample_lines);
/// The way back, from the lines of a worker.
Result<Measurement> measurement_from_lines(const std::vector<Json>& lines, std::string_view origin);

}  // namespace fulcrum::cli
