// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
#include "cli/libraries.h"

#include <fulcrum/backends.h>

#include <nlohmann/json.hpp>

namespace fulcrum::cli {
namespace {

std::string text_of(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

}  // namespace

std::vector<Library> libraries() {
  std::vector<Library> list;
  for (const backends::Backend* backend : backends::all()) {
    const Json description = backend->describe();
    for (const auto& [name, entry] : description.items()) {
      if (!entry.is_object() || !entry.contains("loaded")) continue;
      Library library{.backend = std::string(backend->name()), .name = name};
      library.loaded = entry["loaded"].is_boolean() && entry["loaded"].get<bool>();
      library.why_not = text_of(entry, "why_not");
      library.version = text_of(entry, "version");
      library.core = entry.contains("core") ? text_of(entry, "core") : text_of(entry, "isa");
      const std::string detected = text_of(entry, "core_detected");
      if (detected != library.core) library.detected = detected;
      list.push_back(std::move(library));
    }
  }
  return list;
}

}  // namespace fulcrum::cli
