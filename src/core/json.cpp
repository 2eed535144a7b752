// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Writing JSON that every strict reader accepts, and the schema line that says what a document is.
#include <fmt/format.h>
#include <fulcrum/core.h>

#include <cmath>
#include <nlohmann/json.hpp>

namespace fulcrum {
namespace {

// Every document kind is in its first version; the number grows when a change is more than an addition.
constexpr int kSchemaMajor = 1;

bool is_unwritable(const Json& json) { return json.is_number_float() && !std::isfinite(json.get<double>()); }

bool has_unwritable(const Json& json) {
  if (!json.is_structured()) return is_unwritable(json);
  for (const auto& child : json) {
    if (has_unwritable(child)) return true;
  }
  return false;
}

/// A copy without the keys that hold NaN or Infinity; array elements become null, so that the others keep
/// their index.
Json writable(const Json& json) {
  if (is_unwritable(json)) return nullptr;
  if (!json.is_structured()) return json;
  if (json.is_array()) {
    Json array = Json::array();
    for (const auto& child : json) array.push_back(writable(child));
    return array;
  }
  Json object = Json::object();
  for (const auto& [key, child] : json.items()) {
    if (!is_unwritable(child)) object.push_back({key, writable(child)});
  }
  return object;
}

}  // namespace

std::string json_text(const Json& json, int indent) {
  // Bytes that are no UTF-8 (a file name, a driver's message) become U+FFFD: writing never fails.
  constexpr auto kReplace = Json::error_handler_t::replace;
  return has_unwritable(json) ? writable(json).dump(indent, ' ', false, kReplace)
                              : json.dump(indent, ' ', false, kReplace);
}

Status json_expect_schema(const Json& json, std::string_view kind, std::string_view origin) {
  const std::string wanted = fmt::format("fulcrum.{}/{}", kind, kSchemaMajor);
  const auto found = json.is_object() ? json.find("schema") : json.end();
  if (!json.is_object() || found == json.end() || !found->is_string()) {
    return Error{Code::corrupt, fmt::format("{}: no schema, expected {}", origin, wanted),
                 "this file was not written by fulcrum"};
  }
  const std::string schema = found->get<std::string>();
  if (schema == wanted) return {};
  const bool same_kind = schema.starts_with(fmt::format("fulcrum.{}/", kind));
  return Error{Code::corrupt, fmt::format("{}: schema is {}, expected {}", origin, schema, wanted),
               same_kind ? "another version of fulcrum wrote this file: read it with that version"
                         : "this is another kind of file"};
}

}  // namespace fulcrum
