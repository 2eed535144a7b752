// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// One description of a struct's keys serves its writer and its reader. For a struct S write
//   template <class Io> static void describe(Io& io, typename Io::template Ref<S> s)
// that names each field once; write_fields and read_fields do the rest. A reader never throws: the first
// wrong type or missing key is kept as an Error{corrupt} that names its path.
#pragma once

#include <fmt/format.h>
#include <fulcrum/core.h>

#include <limits>
#include <nlohmann/json.hpp>
#include <type_traits>

namespace fulcrum {

template <class S>
Json write_fields(const S& value);

// Writing.

inline Json encode(double value) { return value; }
inline Json encode(int value) { return value; }
inline Json encode(std::int64_t value) { return value; }
inline Json encode(std::uint64_t value) { return value; }
inline Json encode(std::uint32_t value) { return value; }
inline Json encode(const std::int64_t (&values)[3]) { return {values[0], values[1], values[2]}; }
/// Numbers as keys become texts: that is all JSON has.
Json encode(const std::map<int, std::int64_t>& values);
inline Json encode(bool value) { return value; }
inline Json encode(const std::string& value) { return value; }
inline Json encode(const Shape& value) { return to_json(value); }

template <class T>
Json encode(const std::optional<T>& value);
template <class T>
Json encode(const std::vector<T>& values);
template <class T>
Json encode(const std::map<std::string, T>& values);
template <class T>
Json encode(const T& value) {
  if constexpr (std::is_enum_v<T>) {
    return std::string(to_string(value));
  } else {
    return write_fields(value);
  }
}
template <class T>
Json encode(const std::optional<T>& value) {
  return value ? encode(*value) : Json(nullptr);
}
template <class T>
Json encode(const std::vector<T>& values) {
  Json array = Json::array();
  for (const T& value : values) array.push_back(encode(value));
  return array;
}
template <class T>
Json encode(const std::map<std::string, T>& values) {
  Json object = Json::object();
  for (const auto& [key, value] : values) object[key] = encode(value);
  return object;
}

class FieldWriter {
 public:
  template <class S>
  using Ref = const S&;

  /// There from the first version of the schema on.
  template <class T>
  void required(const char* key, const T& value) {
    json_[key] = encode(value);
  }
  /// Added later: a reader keeps the default when the key is absent.
  template <class T>
  void added(const char* key, const T& value) {
    json_[key] = encode(value);
  }
  /// Follows from other fields: written for people and scripts, not read back.
  void derived(const char* key, double value) { json_[key] = value; }
  /// Text that is null when there is none.
  void nullable(const char* key, const std::string& value) {
    json_[key] = value.empty() ? Json(nullptr) : Json(value);
  }

  Json take() { return std::move(json_); }

 private:
  Json json_ = Json::object();
};

template <class S>
Json write_fields(const S& value) {
  FieldWriter writer;
  describe(writer, value);
  return writer.take();
}

// Reading.

/// Where a reader stands and the first thing that was wrong, shared by the readers of one document.
class ReadState {
 public:
  explicit ReadState(std::string_view origin) : origin_(origin) {}
  void fail(std::string_view path, std::string_view problem);
  void wrong_type(std::string_view path, std::string_view wanted, const Json& found);
  const std::optional<Error>& error() const { return error_; }

 private:
  std::string origin_;
  std::optional<Error> error_;
};

void decode(ReadState&, const Json&, const std::string& path, double&);
void decode(ReadState&, const Json&, const std::string& path, int&);
void decode(ReadState&, const Json&, const std::string& path, std::int64_t&);
void decode(ReadState&, const Json&, const std::string& path, std::uint64_t&);
void decode(ReadState&, const Json&, const std::string& path, std::uint32_t&);
void decode(ReadState&, const Json&, const std::string& path, std::int64_t (&)[3]);
void decode(ReadState&, const Json&, const std::string& path, std::map<int, std::int64_t>&);
void decode(ReadState&, const Json&, const std::string& path, bool&);
void decode(ReadState&, const Json&, const std::string& path, std::string&);
void decode(ReadState&, const Json&, const std::string& path, Shape&);

template <class T>
void decode(ReadState&, const Json&, const std::string& path, std::optional<T>&);
template <class T>
void decode(ReadState&, const Json&, const std::string& path, std::vector<T>&);
template <class T>
void decode(ReadState&, const Json&, const std::string& path, std::map<std::string, T>&);

class FieldReader {
 public:
  template <class S>
  using Ref = S&;

  FieldReader(ReadState& state, const Json& json, std::string path)
      : state_(state), json_(json), path_(std::move(path)) {}

  template <class T>
  void required(const char* key, T& value) {
    if (const auto found = json_.find(key); found != json_.end()) {
      decode(state_, *found, path_of(key), value);
    } else if constexpr (std::is_same_v<T, double>) {
      // The writer leaves a key out when its value is not a number: absent and 0 are not the same.
      value = std::numeric_limits<double>::quiet_NaN();
    } else {
      state_.fail(path_of(key), "is missing");
    }
  }
  template <class T>
  void added(const char* key, T& value) {
    if (const auto found = json_.find(key); found != json_.end()) decode(state_, *found, path_of(key), value);
  }
  void derived(const char*, double) {}
  void nullable(const char* key, std::string& value) {
    const auto found = json_.find(key);
    if (found != json_.end() && !found->is_null()) decode(state_, *found, path_of(key), value);
  }

 private:
  std::string path_of(const char* key) const { return path_.empty() ? key : path_ + "." + key; }

  ReadState& state_;
  const Json& json_;
  std::string path_;
};

template <class T>
void decode(ReadState& state, const Json& json, const std::string& path, T& value) {
  if constexpr (std::is_enum_v<T>) {
    std::string text;
    decode(state, json, path, text);
    if (state.error()) return;
    if (auto parsed = parse_enum<T>("word", text); parsed.ok()) {
      value = *parsed;
    } else {
      state.fail(path, fmt::format("{}, {}", parsed.error().message, parsed.error().hint));
    }
  } else {
    if (!json.is_object()) return state.wrong_type(path, "an object", json);
    FieldReader reader(state, json, path);
    describe(reader, value);
  }
}
template <class T>
void decode(ReadState& state, const Json& json, const std::string& path, std::optional<T>& value) {
  value.reset();
  // Not emplace(): to clang a struct inside a struct that holds it as optional has no default constructor.
  if (!json.is_null()) decode(state, json, path, value.emplace(T{}));
}
template <class T>
void decode(ReadState& state, const Json& json, const std::string& path, std::vector<T>& values) {
  if (!json.is_array()) return state.wrong_type(path, "an array", json);
  values.clear();
  for (const Json& item : json) {
    const std::string item_path = fmt::format("{}[{}]", path, values.size());
    T& value = values.emplace_back();
    // The writer puts null where an element is not a number.
    if constexpr (std::is_same_v<T, double>) {
      if (item.is_null()) {
        value = std::numeric_limits<double>::quiet_NaN();
        continue;
      }
    }
    decode(state, item, item_path, value);
  }
}
template <class T>
void decode(ReadState& state, const Json& json, const std::string& path, std::map<std::string, T>& values) {
  if (!json.is_object()) return state.wrong_type(path, "an object", json);
  values.clear();
  for (const auto& [key, item] : json.items())
    decode(state, item, fmt::format("{}.{}", path, key), values[key]);
}

/// The struct that the document holds, or what is wrong with it and where.
template <class S>
Result<S> read_fields(const Json& json, std::string_view origin) {
  S value;
  ReadState state(origin);
  decode(state, json, "", value);
  if (state.error()) return *state.error();
  return value;
}

}  // namespace fulcrum
