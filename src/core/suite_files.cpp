// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Where suites are: beside the program, or where the user says.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <fulcrum/core/suite.h>

#include <algorithm>
#include <nlohmann/json.hpp>

namespace fulcrum {
namespace fs = std::filesystem;
namespace {

/// Upwards from the program: prefix/bin has prefix/share/fulcrum, a build folder has a link to the source tree's share.
fs::path shipped_folder() {
  constexpr int kLevels = 4;
  std::error_code error;
  fs::path folder = fs::read_symlink("/proc/self/exe", error).parent_path();
  for (int i = 0; i < kLevels && folder.has_relative_path(); ++i, folder = folder.parent_path()) {
    for (const char* place : {"share/fulcrum/suites", "share/suites"}) {
      if (fs::is_directory(folder / place, error)) return folder / place;
    }
  }
  return {};
}

Result<Suite> load_file(const fs::path& path) {
  FULCRUM_TRY(const std::string text, read_file(path));
  FULCRUM_TRY(const Json json, json_parse(text, path.string()));
  return suite_from_json(json, path.string());
}

}  // namespace

bool is_suite_path(std::string_view text) {
  return text.find('/') != std::string_view::npos || text.ends_with(".json");
}

std::vector<std::string> shipped_suites() {
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(shipped_folder(), error)) {
    if (entry.path().extension() == ".json") names.push_back(entry.path().stem().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

Result<Suite> load_suite(std::string_view name_or_path) {
  if (is_suite_path(name_or_path)) return load_file(fs::path(name_or_path));
  const std::vector<std::string> known = shipped_suites();
  const std::string name(name_or_path);
  if (std::find(known.begin(), known.end(), name) != known.end())
    return load_file(shipped_folder() / (name + ".json"));
  const std::string near = nearest_name(name, known);
  return Error{Code::not_found, fmt::format("unknown suite '{}'", name),
               fmt::format("{}known: {}; a file is given with its path, as in ./{}.json",
                           near.empty() ? "" : fmt::format("did you mean '{}'? ", near),
                           fmt::join(known, ", "), name)};
}

}  // namespace fulcrum
