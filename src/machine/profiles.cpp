// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// The profiles of this user and those shipped with the program: in share/fulcrum/machines of the install, or in
// share/machines of the source tree that the program was built in; beside them, in `measured`, the times of the devices
// that were measured.
#include <fmt/format.h>
#include <fulcrum/machine.h>

#include <nlohmann/json.hpp>

#include "machine/discovery.h"
#include "machine/store.h"

namespace fulcrum::machine {
namespace fs = std::filesystem;
namespace {

Result<ProfileFolder> own_profiles() {
  FULCRUM_TRY(const fs::path data, data_folder());
  return ProfileFolder(data / "machines", false);
}

/// Upwards from the program: prefix/bin has prefix/share/fulcrum, build/release/bin has the source tree above it.
std::optional<fs::path> shipped_folder() {
  constexpr int kLevels = 4;
  std::error_code error;
  fs::path folder = fs::read_symlink("/proc/self/exe", error).parent_path();
  for (int i = 0; i < kLevels && !error && folder.has_relative_path(); ++i, folder = folder.parent_path()) {
    for (const char* place : {"share/fulcrum", "share"}) {
      if (fs::is_directory(folder / place / "machines", error)) return folder / place;
      error.clear();
    }
  }
  return {};
}

std::optional<ProfileFolder> shipped_profiles() {
  const std::optional<fs::path> folder = shipped_folder();
  if (!folder) return {};
  return ProfileFolder(*folder / "machines", true);
}

std::string this_fingerprint() {
  return fingerprint(discover_cpu(SystemFiles(), affinity()), discover_levels(SystemFiles(), affinity()));
}

std::string known_names() {
  std::vector<std::string> names;
  for (const StoredProfile& profile : list()) names.push_back(profile.name);
  return names.empty() ? "there are none yet: run fulcrum machine"
                       : fmt::format("known: this, {}", fmt::join(names, ", "));
}

}  // namespace

std::vector<StoredProfile> list() {
  std::vector<StoredProfile> profiles;
  if (const auto own = own_profiles(); own.ok()) profiles = own->list();
  if (const auto shipped = shipped_profiles()) {
    for (StoredProfile& profile : shipped->list()) profiles.push_back(std::move(profile));
  }
  return profiles;
}

Result<Machine> load(std::string_view name) {
  if (name.find('/') != std::string_view::npos) return load_file(fs::path(name));
  const std::string wanted = name == "this" ? this_fingerprint() : std::string(name);
  FULCRUM_TRY(const ProfileFolder own, own_profiles());
  if (own.has(wanted)) return own.load(wanted);
  if (const auto shipped = shipped_profiles(); shipped && shipped->has(wanted)) return shipped->load(wanted);
  if (name == "this") {
    return Error{Code::not_found, fmt::format("this machine ({}) has not been measured", wanted),
                 "run fulcrum machine; it takes less than a minute"};
  }
  return Error{Code::not_found, fmt::format("there is no machine profile '{}'", name), known_names()};
}

std::optional<Machine> known() {
  const auto own = own_profiles();
  const std::string id = this_fingerprint();
  if (!own.ok() || !own->has(id)) return {};
  Result<Machine> machine = own->load(id);
  if (machine.ok()) return std::move(*machine);
  // No profile is a state that callers handle; that there was one must still be said.
  log(LogLevel::warning,
      fmt::format("the profile of this machine cannot be used: {}", machine.error().message));
  return {};
}

Result<fs::path> save(const Machine& machine) {
  FULCRUM_TRY(const ProfileFolder own, own_profiles());
  return own.save(machine);
}

Result<std::vector<Measurement>> measurements(std::string_view name) {
  const std::optional<fs::path> shipped = shipped_folder();
  const fs::path file = shipped.value_or(fs::path("share")) / "measured" / fmt::format("{}.json", name);
  std::error_code error;
  if (!fs::exists(file, error)) {
    return Error{Code::not_found,
                 fmt::format("no times of the machine '{}' are shipped: {}", name, file.string()),
                 "the program's folder share/ is missing or of another version"};
  }
  FULCRUM_TRY(const std::string text, read_file(file));
  FULCRUM_TRY(const Json json, json_parse(text, file.string()));
  FULCRUM_CHECK(json_expect_schema(json, "bench", file.string()));
  return measurements_from_json(json, file.string());
}

}  // namespace fulcrum::machine
