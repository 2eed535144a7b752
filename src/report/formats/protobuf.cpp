// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// See protobuf.h.
#include "report/formats/protobuf.h"

namespace fulcrum::report {

std::optional<std::uint64_t> ProtoReader::varint() {
  std::uint64_t value = 0;
  for (int shift = 0; shift < 64; shift += 7) {
    if (rest_.empty()) return {};
    const auto byte = static_cast<unsigned char>(rest_.front());
    rest_.remove_prefix(1);
    value |= static_cast<std::uint64_t>(byte & 0x7F) << shift;
    if (byte < 0x80) return value;
  }
  return {};
}

std::optional<std::uint64_t> ProtoReader::fixed(std::size_t bytes) {
  if (rest_.size() < bytes) return {};
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < bytes; ++i) {
    value |= static_cast<std::uint64_t>(static_cast<unsigned char>(rest_[i])) << (8 * i);
  }
  rest_.remove_prefix(bytes);
  return value;
}

std::optional<ProtoReader::Field> ProtoReader::next() {
  if (rest_.empty() || !ok_) return {};
  ok_ = false;
  const auto tag = varint();
  if (!tag || *tag >> 3 == 0 || *tag >> 3 > 536870911) return {};
  Field field;
  field.number = static_cast<int>(*tag >> 3);
  std::optional<std::uint64_t> value;
  switch (*tag & 7) {
    case 0:
      value = varint();
      break;
    case 1:
      value = fixed(8);
      break;
    case 5:
      value = fixed(4);
      break;
    case 2:
      value = varint();
      if (!value || *value > rest_.size()) return {};
      field.is_content = true;
      field.content = rest_.substr(0, *value);
      rest_.remove_prefix(*value);
      break;
    default:
      return {};
  }
  if (!value) return {};
  if (!field.is_content) field.value = *value;
  ok_ = true;
  return field;
}

bool ProtoReader::append(const Field& field, std::vector<std::uint64_t>& values) {
  if (!field.is_content) {
    values.push_back(field.value);
    return true;
  }
  ProtoReader inner(field.content);
  while (!inner.rest_.empty()) {
    const auto value = inner.varint();
    if (!value) return false;
    values.push_back(*value);
  }
  return true;
}

}  // namespace fulcrum::report
