// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Calibrations on disk: one file a machine, device and driver, in the data folder; every op in it names the sources of
// its kernels.
#pragma once

#include "executor/points.h"

namespace fulcrum::executor {

/// What a calibration is good for. Two machines, devices or drivers that differ have different keys.
struct TableKey {
  std::string machine;  // fingerprint
  int threads = 1;
  std::string device, compute_capability, driver;  // empty: none
  std::int64_t sms = 0, memory_bytes = 0;
  std::string hardware() const;  // readable, all but the driver
  std::string text() const;      // readable, for the file
  std::string hash() const;      // for its name
};
TableKey key_of(const backends::Backend* device);
Result<std::filesystem::path> table_file(const backends::Backend* device, const Options& options);
/// The driver of a calibration in the folder that is of the same machine and device, but of another driver; empty: none.
std::string other_driver(const TableKey& key, const std::filesystem::path& folder);

/// FNV-1a, as everywhere in files: the same on every machine and in every version.
std::uint64_t hash_text(std::string_view text);

/// What one op's times rest on: changes with any of its kernels' sources and with the libraries behind them.
std::string kernels_hash(std::span<const Candidate> candidates);

/// So many cores in use by others make threads look slower than they are.
inline constexpr double kDisturbingCores = 0.1;

/// A calibration as read. Ops that are not in it have no points.
struct Stored {
  TableData data;
  std::vector<bool> known;  // by position in ops::all()
  std::string measured_utc;
  double other_cores = 0;  // that other programs used meanwhile, of those that this one may use
};
Json to_json(const TableKey& key, const Stored& stored, const backends::Backend* device);
/// An error for a file of another kind, version or machine. Ops whose kernels changed come back as priors: wide sigma,
/// grade C.
Result<Stored> stored_from_json(const Json& json, const TableKey& key, const backends::Backend* device,
                                std::string_view origin);

/// The file of this machine. None: there is no file; one that cannot be used is reported to the log and left out.
std::optional<Stored> load_stored(const backends::Backend* device, const Options& options,
                                  std::string* refused = nullptr);
/// Whole or not at all. Ops that are in the file already and not among the known ones stay as they are, also those whose
/// kernels have changed since.
Status save_stored(const backends::Backend* device, const Options& options, const Stored& stored);
/// Ops that the file has no times of, or those of other kernels; of ops on a graph or an index the latter alone.
std::vector<std::string> ops_to_renew(const backends::Backend* device, const Options& options);

/// What is stored, and the prior for ops that are not in it.
TableData complete_data(const backends::Backend* device, std::optional<Stored> stored);

}  // namespace fulcrum::executor
