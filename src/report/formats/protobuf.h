// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// As much of the protobuf wire format as profile.proto needs: varints and lengths, packed or not.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fulcrum::report {

class ProtoWriter {
 public:
  void varint(std::uint64_t value) {
    for (; value >= 0x80; value >>= 7) bytes_ += static_cast<char>(value | 0x80);
    bytes_ += static_cast<char>(value);
  }
  /// Nothing is written for 0, the default of the format.
  void number(int field, std::uint64_t value) {
    if (value == 0) return;
    varint(static_cast<std::uint64_t>(field) << 3);
    varint(value);
  }
  void bytes(int field, std::string_view content) {
    varint(static_cast<std::uint64_t>(field) << 3 | 2);
    varint(content.size());
    bytes_ += content;
  }
  void packed(int field, const std::vector<std::uint64_t>& values) {
    ProtoWriter inner;
    for (const std::uint64_t value : values) inner.varint(value);
    bytes(field, inner.bytes_);
  }
  void message(int field, const ProtoWriter& inner) { bytes(field, inner.bytes_); }
  std::string take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

/// Fields one after the other; ok() is false as soon as something does not fit.
class ProtoReader {
 public:
  struct Field {
    int number = 0;
    std::uint64_t value = 0;   // varints and fixed sizes
    std::string_view content;  // lengths
    bool is_content = false;
  };
  explicit ProtoReader(std::string_view bytes) : rest_(bytes) {}

  bool ok() const { return ok_; }
  std::optional<Field> next();
  /// The numbers of a repeated field, packed or alone.
  static bool append(const Field& field, std::vector<std::uint64_t>& values);

 private:
  std::optional<std::uint64_t> varint();
  std::optional<std::uint64_t> fixed(std::size_t bytes);
  std::string_view rest_;
  bool ok_ = true;
};

}  // namespace fulcrum::report
