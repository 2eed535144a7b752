// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// How single values are read from JSON, and how a wrong one is reported.
#include "core/json_fields.h"

namespace fulcrum {

void ReadState::fail(std::string_view path, std::string_view problem) {
  if (error_) return;
  error_ = Error{Code::corrupt,
                 fmt::format("{}{}{} {}", origin_, origin_.empty() ? "" : ": ",
                             path.empty() ? "the document" : path, problem),
                 "the file is damaged, edited, or was not written by fulcrum"};
}

void ReadState::wrong_type(std::string_view path, std::string_view wanted, const Json& found) {
  fail(path, fmt::format("must be {}, but is {}", wanted,
                         found.is_null() ? "null" : fmt::format("of type {}", found.type_name())));
}

void decode(ReadState& state, const Json& json, const std::string& path, double& value) {
  if (!json.is_number()) return state.wrong_type(path, "a number", json);
  value = json.get<double>();
}

void decode(ReadState& state, const Json& json, const std::string& path, std::int64_t& value) {
  if (!json.is_number_integer()) return state.wrong_type(path, "a whole number", json);
  if (json.is_number_unsigned() &&
      json.get<std::uint64_t>() > std::uint64_t{std::numeric_limits<std::int64_t>::max()}) {
    return state.fail(path, "does not fit in 64 bits");
  }
  value = json.get<std::int64_t>();
}

void decode(ReadState& state, const Json& json, const std::string& path, int& value) {
  std::int64_t wide = value;
  decode(state, json, path, wide);
  if (wide < std::numeric_limits<int>::min() || wide > std::numeric_limits<int>::max()) {
    return state.fail(path, "does not fit in 32 bits");
  }
  value = static_cast<int>(wide);
}

void decode(ReadState& state, const Json& json, const std::string& path, std::uint64_t& value) {
  if (!json.is_number_unsigned()) return state.wrong_type(path, "a whole number that is not negative", json);
  value = json.get<std::uint64_t>();
}

void decode(ReadState& state, const Json& json, const std::string& path, std::uint32_t& value) {
  std::uint64_t wide = value;
  decode(state, json, path, wide);
  if (wide > std::numeric_limits<std::uint32_t>::max()) return state.fail(path, "does not fit in 32 bits");
  value = static_cast<std::uint32_t>(wide);
}

void decode(ReadState& state, const Json& json, const std::string& path, std::int64_t (&values)[3]) {
  if (!json.is_array() || json.size() != 3) return state.wrong_type(path, "an array of three", json);
  for (std::size_t i = 0; i < 3; ++i) decode(state, json[i], fmt::format("{}[{}]", path, i), values[i]);
}

Json encode(const std::map<int, std::int64_t>& values) {
  Json object = Json::object();
  for (const auto& [key, value] : values) object[std::to_string(key)] = value;
  return object;
}

void decode(ReadState& state, const Json& json, const std::string& path,
            std::map<int, std::int64_t>& values) {
  if (!json.is_object()) return state.wrong_type(path, "an object", json);
  values.clear();
  for (const auto& [key, item] : json.items()) {
    const std::string item_path = fmt::format("{}.{}", path, key);
    if (key.empty() || key.size() > 5 || key.find_first_not_of("0123456789") != std::string::npos) {
      return state.fail(item_path, "has no number as its key");
    }
    decode(state, item, item_path, values[std::stoi(key)]);
  }
}

void decode(ReadState& state, const Json& json, const std::string& path, bool& value) {
  if (!json.is_boolean()) return state.wrong_type(path, "true or false", json);
  value = json.get<bool>();
}

void decode(ReadState& state, const Json& json, const std::string& path, std::string& value) {
  if (!json.is_string()) return state.wrong_type(path, "a text", json);
  value = json.get<std::string>();
}

void decode(ReadState& state, const Json& json, const std::string& path, Shape& shape) {
  if (!json.is_object()) return state.wrong_type(path, "an object", json);
  shape.fields.clear();
  for (const auto& [key, item] : json.items()) {
    const std::string item_path = fmt::format("{}.{}", path, key);
    Shape::Value value;
    if (item.is_string()) {
      value = item.get<std::string>();
    } else if (item.is_number_float()) {
      value = item.get<double>();
    } else if (item.is_number_integer()) {
      decode(state, item, item_path, value.emplace<std::int64_t>());
    } else {
      return state.wrong_type(item_path, "a number or a word", item);
    }
    shape.fields.emplace_back(key, std::move(value));
  }
}

}  // namespace fulcrum
