// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// The include rules of docs/architecture.md: its two tables as data, and the verdict on one #include. Works on
// strings, so that a planted violation needs no file.
#pragma once

#include <algorithm>
#include <map>
#include <optional>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

namespace fulcrum::structure {

struct Module {
  std::string name;
  std::set<std::string> may_include;  // "all" stands for every module
};

struct Place {
  std::vector<std::string> headers;  // "hwy/*": a star at the end is a prefix
  std::vector<std::string> folders;
};

struct Law {
  std::vector<Module> modules;  // bottom to top
  std::vector<Place> places;

  const Module* find(const std::string& name) const {
    const auto it =
        std::find_if(modules.begin(), modules.end(), [&](const Module& m) { return m.name == name; });
    return it == modules.end() ? nullptr : &*it;
  }
};

inline std::vector<std::string> words(std::string text) {
  std::replace(text.begin(), text.end(), '`', ' ');
  std::istringstream stream(text);
  std::vector<std::string> result;
  for (std::string word; stream >> word;) result.push_back(word);
  return result;
}

inline std::vector<std::string> lines_of(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

/// Rows of the first Markdown table whose header starts with `first_column`, as cells.
inline std::vector<std::vector<std::string>> table(const std::string& markdown,
                                                   const std::string& first_column) {
  std::vector<std::vector<std::string>> rows;
  bool inside = false;
  for (const std::string& line : lines_of(markdown)) {
    if (line.rfind("| " + first_column + " |", 0) == 0) {
      inside = true;
    } else if (inside && line.rfind('|', 0) != 0) {
      break;
    } else if (inside && line.rfind("|-", 0) != 0) {
      std::vector<std::string> cells;
      std::istringstream stream(line.substr(1));
      for (std::string cell; std::getline(stream, cell, '|');) cells.push_back(cell);
      rows.push_back(cells);
    }
  }
  return rows;
}

inline Law read_law(const std::string& markdown) {
  Law law;
  for (const auto& row : table(markdown, "module")) {
    if (row.size() != 3) continue;
    Module module{.name = words(row[0]).at(0)};
    for (const std::string& name : words(row[2])) {
      if (name != "-") module.may_include.insert(name);
    }
    law.modules.push_back(module);
  }
  for (const auto& row : table(markdown, "headers")) {
    if (row.size() == 2) law.places.push_back(Place{words(row[0]), words(row[1])});
  }
  return law;
}

struct Include {
  std::size_t line = 0;
  std::string path;
  bool quoted = false;
};

inline std::vector<Include> includes_of(const std::string& source) {
  static const std::regex pattern(R"re(^\s*#\s*include\s*([<"])([^>"]+)[>"])re");
  std::vector<Include> includes;
  const auto lines = lines_of(source);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    std::smatch match;
    if (std::regex_search(lines[i], match, pattern))
      includes.push_back(Include{i + 1, match[2], match[1] == "\""});
  }
  return includes;
}

inline bool begins_with(const std::string& text, const std::string& prefix) {
  return text.rfind(prefix, 0) == 0;
}

inline bool matches(const std::string& header, const std::string& pattern) {
  if (pattern.back() == '*') return begins_with(header, pattern.substr(0, pattern.size() - 1));
  return header == pattern;
}

/// "include/fulcrum/ops.h", "include/fulcrum/ops/dot.h" and "src/ops/relu.cpp" belong to ops; so do the header names
/// "ops.h" and "ops/dot.h".
inline std::string module_of(const std::string& file) {
  static const std::regex private_file("^src/([^/]+)/.*");
  static const std::regex public_file(R"(^(?:include/fulcrum/)?([^/.]+)(?:\.h|/[^/]+\.h)$)");
  std::smatch match;
  if (std::regex_match(file, match, private_file)) return match[1];
  if (!std::regex_match(file, match, public_file)) return "";
  if (match[1] == "abi") return "core";
  if (match[1] == "fulcrum_c") return "executor";
  if (match[1] == "region") return "record";
  return match[1];
}

inline std::optional<std::string> public_violation(const Law& law, const Module& self,
                                                   const std::string& header) {
  const std::string other = module_of(header);
  const bool everything = self.may_include.count("all") > 0;
  if (other == "fulcrum") {
    if (everything) return std::nullopt;
    return self.name + " may not include fulcrum.h, which includes every module";
  }
  if (!law.find(other)) return "fulcrum/" + header + " belongs to no module of the table";
  if (everything || other == self.name || self.may_include.count(other) > 0) return std::nullopt;
  return self.name + " may not include " + other;
}

/// What is wrong with `include` in `file` (path from the root of the tree); nothing when it is allowed.
inline std::optional<std::string> violation(const Law& law, const std::string& file, const Include& include) {
  const std::string& path = include.path;
  for (const Place& place : law.places) {
    const bool concerned = std::any_of(place.headers.begin(), place.headers.end(),
                                       [&](const std::string& pattern) { return matches(path, pattern); });
    const bool inside =
        std::any_of(place.folders.begin(), place.folders.end(),
                    [&](const std::string& folder) { return begins_with(file, folder + "/"); });
    if (concerned && !inside) return path + " may not be included here";
  }

  if (file == "include/fulcrum/fulcrum.h") return std::nullopt;
  const Module* self = law.find(module_of(file));
  if (!self) return "the file belongs to no module of the table";
  if (begins_with(path, "fulcrum/")) return public_violation(law, *self, path.substr(8));
  if (begins_with(path, "generated/")) return std::nullopt;

  const std::string first = path.substr(0, path.find('/'));
  if (path.find('/') != std::string::npos && law.find(first)) {
    if (begins_with(file, "include/")) return "a public header includes the private header " + path;
    if (first == self->name) return std::nullopt;
    return self->name + " includes the private header " + path + " of " + first;
  }
  if (include.quoted && (path.find('/') == std::string::npos || path.find("..") != std::string::npos)) {
    return "private headers are written from src/: \"" + self->name + "/...\" instead of \"" + path + "\"";
  }
  return std::nullopt;
}

}  // namespace fulcrum::structure
