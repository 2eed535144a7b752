// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// The source tree as the structure tests read it.
#pragma once

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

namespace fulcrum::structure {

inline std::filesystem::path root() { return FULCRUM_SOURCE_DIR; }

/// Content of a file, its path given from the root of the tree.
inline std::string content(const std::string& file) {
  std::ifstream stream(root() / file, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(stream), {});
}

/// Files below `folder` with one of the extensions, as sorted paths from the root; none when it is absent.
inline std::vector<std::string> files_below(const std::string& folder,
                                            const std::vector<std::string>& extensions) {
  std::vector<std::string> files;
  if (!std::filesystem::exists(root() / folder)) return files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(root() / folder)) {
    const std::string extension = entry.path().extension();
    if (entry.is_regular_file() &&
        std::find(extensions.begin(), extensions.end(), extension) != extensions.end()) {
      files.push_back(std::filesystem::relative(entry.path(), root()));
    }
  }
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace fulcrum::structure
