// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Just enough JSON to say what was found: objects of texts, numbers and objects. The module links nothing that writes
// JSON for it.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>

namespace fulcrum::backends::cuda {

class JsonObject {
 public:
  JsonObject& text(std::string_view key, std::string_view value) { return raw(key, quoted(value)); }
  JsonObject& integer(std::string_view key, std::int64_t value) { return raw(key, std::to_string(value)); }
  JsonObject& boolean(std::string_view key, bool value) { return raw(key, value ? "true" : "false"); }
  JsonObject& object(std::string_view key, const JsonObject& value) { return raw(key, value.str()); }
  /// A number that JSON cannot write is left out, as one that is not known.
  JsonObject& number(std::string_view key, double value) {
    if (!std::isfinite(value)) return *this;
    char digits[32];
    std::snprintf(digits, sizeof(digits), "%.17g", value);
    return raw(key, digits);
  }
  std::string str() const { return "{" + members_ + "}"; }

 private:
  JsonObject& raw(std::string_view key, const std::string& value) {
    if (!members_.empty()) members_ += ",";
    members_ += quoted(key) + ":" + value;
    return *this;
  }

  /// Bytes outside ASCII become '?': a driver's or a loader's message need not be UTF-8.
  static std::string quoted(std::string_view text) {
    std::string result = "\"";
    for (const char letter : text) {
      const auto byte = static_cast<unsigned char>(letter);
      if (byte == '"' || byte == '\\') result += '\\';
      if (byte < 0x20) {
        char code[8];
        std::snprintf(code, sizeof(code), "\\u%04x", byte);
        result += code;
      } else {
        result += byte < 0x7f ? letter : '?';
      }
    }
    return result + "\"";
  }

  std::string members_;
};

}  // namespace fulcrum::backends::cuda
