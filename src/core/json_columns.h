// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// What comes in hundreds of thousands as one object of arrays, a key a field: {"begin_ns": [...], "stream": [...]}. The
// same describe() as in json_fields.h names the fields.
#pragma once

#include "core/json_fields.h"

namespace fulcrum {

class ColumnWriter {
 public:
  template <class S>
  using Ref = const S&;

  template <class T>
  void required(const char* key, const T& value) {
    if (next_ == columns_.size()) columns_.emplace_back(key, Json::array());
    columns_[next_++].second.push_back(encode(value));
  }
  template <class T>
  void added(const char* key, const T& value) {
    required(key, value);
  }
  void derived(const char* key, double value) { required(key, value); }
  void next_row() { next_ = 0; }
  Json take() {
    Json object = Json::object();
    for (auto& [key, column] : columns_) object[key] = std::move(column);
    return object;
  }

 private:
  std::vector<std::pair<const char*, Json>> columns_;
  std::size_t next_ = 0;
};

template <class S>
Json write_columns(const std::vector<S>& rows) {
  ColumnWriter writer;
  for (const S& row : rows) {
    describe(writer, row);
    writer.next_row();
  }
  return writer.take();
}

class ColumnReader {
 public:
  template <class S>
  using Ref = S&;

  ColumnReader(ReadState& state, const Json& table, std::string path)
      : state_(state), table_(table), path_(std::move(path)) {}

  template <class T>
  void required(const char* key, T& value) {
    field(key, value, true);
  }
  template <class T>
  void added(const char* key, T& value) {
    field(key, value, false);
  }
  void derived(const char*, double) {}
  void row(std::size_t number) {
    row_ = number;
    next_ = 0;
  }

 private:
  template <class T>
  void field(const char* key, T& value, bool needed) {
    // The order of fields is the same for every row, so that each is looked up once.
    if (next_ == columns_.size()) {
      const auto found = table_.find(key);
      columns_.push_back(found == table_.end() ? nullptr : &*found);
    }
    const Json* column = columns_[next_++];
    const auto path = [&] { return fmt::format("{}.{}[{}]", path_, key, row_); };
    if (!column) {
      if (needed) state_.fail(path(), "is missing");
      return;
    }
    if (!column->is_array() || row_ >= column->size()) return state_.fail(path(), "is missing");
    if (const Json& item = (*column)[row_]; !quickly(item, value)) decode(state_, item, path(), value);
  }
  // Numbers are nearly all of it, and the text of their path is needed only when one is wrong.
  static bool quickly(const Json& item, std::int64_t& value) {
    if (!item.is_number_unsigned() || item.get<std::uint64_t>() > (std::uint64_t{1} << 62)) return false;
    value = static_cast<std::int64_t>(item.get<std::uint64_t>());
    return true;
  }
  template <class T>
  static bool quickly(const Json&, T&) {
    return false;
  }

  ReadState& state_;
  const Json& table_;
  std::string path_;
  std::vector<const Json*> columns_;
  std::size_t row_ = 0, next_ = 0;
};

template <class S>
void read_columns(ReadState& state, const Json& json, const char* key, std::vector<S>& rows) {
  const auto found = json.find(key);
  if (found == json.end()) return state.fail(key, "is missing");
  if (!found->is_object()) return state.wrong_type(key, "an object of arrays", *found);
  if (found->empty()) return;
  const Json& first = found->begin().value();
  if (!first.is_array()) return state.wrong_type(key, "an object of arrays", first);
  for (const auto& [name, column] : found->items()) {
    if (!column.is_array() || column.size() != first.size())
      return state.fail(fmt::format("{}.{}", key, name), "is not as long as the columns beside it");
  }
  ColumnReader reader(state, *found, key);
  rows.reserve(first.size());
  for (std::size_t i = 0; i < first.size() && !state.error(); ++i) {
    reader.row(i);
    describe(reader, rows.emplace_back());
  }
}

}  // namespace fulcrum
