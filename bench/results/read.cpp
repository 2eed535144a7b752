// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Result files into rows.
#include <fmt/format.h>
#include <fulcrum/ops.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "page.h"

namespace fulcrum::results {
namespace {

constexpr std::pair<std::string_view, std::string_view> kSourceHashes[] = {
#define FULCRUM_SOURCE_HASH(backend, op, hash) {#backend "/" #op, hash},
#include "generated/source_hashes.def"
#undef FULCRUM_SOURCE_HASH
};

// Suites of bench/device, in the order in which they were measured. Sizes that were checked once serve the model from
// then on.
constexpr std::string_view kCalibrated[] = {"calibrate", "heldout",     "unseen", "second",
                                            "third",     "recalibrate", "fourth", "fifth"};
// The suite whose rows are calls with a ledger: they stand with the others that have one.
constexpr std::string_view kWithLedgers = "ledger";

std::string text_at(const Json& json, const char* key) {
  return json.is_object() && json.contains(key) && json[key].is_string() ? json[key].get<std::string>() : "";
}

Estimate estimate_from(const Json& json) {
  return Estimate{.median = json.value("median", 0.0),
                  .ci_low = json.value("ci_low", 0.0),
                  .ci_high = json.value("ci_high", 0.0)};
}

Status add_peers(const Json& json, Folder& folder) {
  const std::string name = text_at(json, "peer") + " " + text_at(json, "version");
  for (const Json& row : json["results"]) {
    if (row.contains("error")) continue;
    FULCRUM_TRY(Shape shape, shape_from(text_at(row, "op"), text_at(row, "shape"), text_at(row, "dtype")));
    const std::string variant = text_at(row, "variant");
    Peer peer{.name = variant.empty() || variant == text_at(json, "peer")
                          ? name
                          : fmt::format("{} {}", name, variant),
              .op = text_at(row, "op"),
              .precision = text_at(row, "precision"),
              .regime = text_at(row, "regime"),
              .cache = text_at(row, "cache"),
              .shape = std::move(shape),
              .bias = text_at(row, "inputs") == "bias"};
    if (row.contains("device_seconds")) peer.device_seconds = estimate_from(row["device_seconds"]);
    peer.seconds = estimate_from(row.contains("eager_seconds") ? row["eager_seconds"] : row["seconds"]);
    folder.peers.push_back(std::move(peer));
  }
  return {};
}

Status add_rows(const Json& json, const std::string& origin, Folder& folder) {
  const bool biased = origin.ends_with("-bias.json");
  const std::string commit = text_at(json, "commit");
  if (!commit.empty() &&
      std::find(folder.commits.begin(), folder.commits.end(), commit) == folder.commits.end())
    folder.commits.push_back(commit);
  if (json.contains("machine")) {
    const Json& machine = json["machine"];
    const std::string gpu = text_at(machine, "gpu");
    if (folder.device.empty() || !gpu.empty()) folder.device = gpu.empty() ? text_at(machine, "cpu") : gpu;
    if (folder.driver.empty()) folder.driver = text_at(machine, "driver");
    folder.measured_utc = std::max(folder.measured_utc, text_at(machine, "profile_measured_utc"));
  }
  // Sizes that the model was calibrated on, or checked with, are no results to look up.
  const std::string suite = json.contains("suite") ? text_at(json["suite"], "name") : "";
  const auto* known = std::find(std::begin(kCalibrated), std::end(kCalibrated), suite);
  if (known != std::end(kCalibrated)) {
    FULCRUM_TRY(const std::vector<Measurement> swept, measurements_from_json(json, origin));
    folder.calibrated.insert(folder.calibrated.end(), swept.begin(), swept.end());
    const auto age = static_cast<std::size_t>(known - std::begin(kCalibrated));
    for (const Measurement& row : swept) {
      auto& newest = folder.newest_kernel[row.backend + "/" + row.op];
      if (newest.second.empty() || age > newest.first) newest = {age, row.source_hash};
    }
    return {};
  }
  if (!suite.empty() && suite != kWithLedgers) {
    folder.suites.push_back(json);
    return {};
  }
  for (const Json& row : json["results"]) {
    FULCRUM_TRY(Measurement measured, measurement_from_json(row, origin));
    if (biased) measured.flags.emplace_back(kWithBias);
    folder.rows.push_back(std::move(measured));
  }
  return {};
}

}  // namespace

// Completed, shapes that differ only in what was left away compare equal.
Result<Shape> shape_from(const std::string& op, const std::string& text, const std::string& dtype) {
  FULCRUM_TRY(const ops::Op* known, ops::find(op));
  FULCRUM_TRY(Shape shape, parse_shape(text));
  FULCRUM_TRY(shape.dtype, parse_enum<DType>("dtype", dtype));
  return ops::complete(*known, shape);
}

std::string present_source_hash(std::string_view backend, std::string_view op) {
  // The threads backend runs the SIMD kernels where it has no file of its own.
  for (const std::string_view source : {backend, backend == "threads" ? std::string_view("simd") : backend}) {
    const std::string wanted = fmt::format("{}/{}", source, op);
    for (const auto& [name, hash] : kSourceHashes) {
      if (name == wanted) return std::string(hash);
    }
  }
  return {};
}

Result<std::vector<Folder>> read_folders(const std::filesystem::path& results) {
  std::map<std::string, std::vector<std::filesystem::path>>
      files;  // by machine, both in order of their names
  for (const auto& entry : std::filesystem::recursive_directory_iterator(results)) {
    if (!entry.is_regular_file() || entry.path().extension() != ".json") continue;
    const auto below = std::filesystem::relative(entry.path(), results);
    files[below.begin()->string()].push_back(entry.path());
  }
  std::vector<Folder> folders;
  for (auto& [machine, paths] : files) {
    std::sort(paths.begin(), paths.end());
    Folder folder{.name = machine};
    for (const auto& path : paths) {
      FULCRUM_TRY(const std::string text, read_file(path));
      FULCRUM_TRY(const Json json, json_parse(text, path.string()));
      const std::string schema = text_at(json, "schema");
      if (schema == "fulcrum.bench/1") FULCRUM_CHECK(add_rows(json, path.string(), folder));
      if (schema == "fulcrum.peers/1") FULCRUM_CHECK(add_peers(json, folder));
      if (schema == "fulcrum.breakeven/1") folder.breakevens.push_back(json);
      if (schema == "fulcrum.ledger_check/1") folder.ledger_checks.push_back(json);
      if (schema == "fulcrum.beside/1") folder.turns.push_back(json);
      if (schema.starts_with("fulcrum.regret/")) {
        const std::string file = std::filesystem::relative(path, results).generic_string();
        FULCRUM_TRY(RegretSet set, regret_set(json, file));
        folder.regrets.push_back(std::move(set));
      }
    }
    folders.push_back(std::move(folder));
  }
  return folders;
}

}  // namespace fulcrum::results
