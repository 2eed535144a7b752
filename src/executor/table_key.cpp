// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// What a calibration is good for, the name of its file, and files of this machine that are good for it no longer.
#include <fmt/format.h>
#include <fulcrum/machine.h>

#include <nlohmann/json.hpp>

#include "executor/prior_machine.h"
#include "executor/store.h"

namespace fulcrum::executor {
namespace fs = std::filesystem;
namespace {

constexpr std::string_view kDriver = ", driver ";  // between the hardware and the driver of a key's text

/// What a calibration says it is of; empty: the file is none.
std::string subject_of(const fs::path& file) {
  const auto text = read_file(file);
  if (!text.ok()) return {};
  const auto json = json_parse(*text, file.string());
  if (!json.ok() || !json_expect_schema(*json, "calibration", file.string()).ok()) return {};
  const auto of = json->find("of");
  return of != json->end() && of->is_string() ? of->get<std::string>() : std::string();
}

}  // namespace

std::string TableKey::hardware() const {
  std::string text = fmt::format("{}, {} threads", machine, threads);
  if (!device.empty())
    text += fmt::format(", {} ({}, {} SMs, {:.0f} GB)", device, compute_capability, sms,
                        static_cast<double>(memory_bytes) / 1e9);
  return text;
}

std::string TableKey::text() const {
  return device.empty() ? hardware() : fmt::format("{}{}{}", hardware(), kDriver, driver);
}

std::string TableKey::hash() const {
  return fmt::format("{:016x}", hash_text(text() + fmt::format("|{}", memory_bytes)));
}

TableKey key_of(const backends::Backend* device) {
  TableKey key;
  key.machine = machine::fingerprint(machine::discover_cpu(), machine::discover_levels());
  key.threads = backends::usable_threads();
  if (device) {
    const GpuCeilings facts = device_facts(*device);
    key.device = facts.name.empty() ? std::string(device->name()) : facts.name;
    key.compute_capability = facts.compute_capability;
    key.driver = facts.driver;
    key.sms = facts.sms;
    key.memory_bytes = facts.memory_bytes;
  }
  return key;
}

Result<fs::path> table_file(const backends::Backend* device, const Options& options) {
  if (options.table_file) return *options.table_file;
  FULCRUM_TRY(const fs::path data, data_folder());
  return data / "executor" / (key_of(device).hash() + ".json");
}

std::string other_driver(const TableKey& key, const fs::path& folder) {
  if (key.device.empty()) return {};
  const std::string hardware = key.hardware() + std::string(kDriver);
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    if (entry->path().extension() != ".json" || entry->path().stem() == key.hash()) continue;
    const std::string of = subject_of(entry->path());
    if (of.starts_with(hardware)) return of.substr(hardware.size());
  }
  return {};
}

}  // namespace fulcrum::executor
