// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// One JSON file a profile, named by the machine's fingerprint or the device. A file that is not right is reported,
// never passed over: a decision must not rest on a machine that was silently taken for another.
#include "machine/store.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

namespace fulcrum::machine {
namespace fs = std::filesystem;
namespace {

bool is_name(std::string_view name) {
  constexpr std::string_view kAllowed = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";
  return !name.empty() && name.front() != '.' && name.find_first_not_of(kAllowed) == std::string_view::npos;
}

std::string describe(const Result<Machine>& machine) {
  if (!machine.ok()) return "unreadable: " + machine.error().message;
  const std::string when = machine->measured_utc.empty() ? "" : ", " + machine->measured_utc;
  if (machine->gpus.empty()) return machine->name + when;
  if (machine->gpus.front().name == machine->name)
    return machine->name + (when.empty() ? ", datasheet" : when);
  return fmt::format("{} with {}{}", machine->name, machine->gpus.front().name, when);
}

}  // namespace

Result<Machine> load_file(const fs::path& path) {
  FULCRUM_TRY(const std::string text, read_file(path));
  FULCRUM_TRY(const Json json, json_parse(text, path.string()));
  return machine_from_json(json, path.string());
}

fs::path ProfileFolder::path_of(std::string_view name) const {
  return folder_ / fmt::format("{}.json", name);
}

bool ProfileFolder::has(std::string_view name) const {
  std::error_code ignored;
  return is_name(name) && fs::exists(path_of(name), ignored);
}

std::vector<StoredProfile> ProfileFolder::list() const {
  std::vector<StoredProfile> profiles;
  std::error_code error;
  for (fs::directory_iterator it(folder_, error), end; !error && it != end; it.increment(error)) {
    const fs::path& path = it->path();
    if (path.extension() != ".json" || !is_name(path.stem().string())) continue;
    profiles.push_back(StoredProfile{.name = path.stem().string(),
                                     .path = path.string(),
                                     .description = describe(load_file(path)),
                                     .shipped = shipped_});
  }
  std::sort(profiles.begin(), profiles.end(),
            [](const StoredProfile& a, const StoredProfile& b) { return a.name < b.name; });
  return profiles;
}

Result<Machine> ProfileFolder::load(std::string_view name) const {
  if (!is_name(name)) {
    return Error{Code::usage, fmt::format("'{}' is no name of a machine profile", name),
                 "names are letters, digits, '-', '_' and '.'"};
  }
  return load_file(path_of(name));
}

Result<fs::path> ProfileFolder::save(const Machine& machine) const {
  if (!is_name(machine.id)) {
    return Error{Code::invalid_argument,
                 fmt::format("'{}' cannot be the id of a machine profile", machine.id),
                 "ids are letters, digits, '-', '_' and '.'"};
  }
  std::error_code error;
  fs::create_directories(folder_, error);
  if (error) {
    return Error{Code::environment,
                 fmt::format("cannot make the folder {}: {}", folder_.string(), error.message()),
                 "set FULCRUM_DATA to a folder that can be written"};
  }
  const fs::path path = path_of(machine.id);
  FULCRUM_CHECK(write_file(path, json_text(to_json(machine), 2) + "\n"));
  return path;
}

}  // namespace fulcrum::machine
