// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Reads rows and numbers of CSV.
#include "trace/import/csv.h"

#include <charconv>
#include <cmath>

namespace fulcrum::trace {

bool next_row(std::string_view& rest, CsvRow& row) {
  row.clear();
  if (rest.empty()) return false;
  std::string field;
  bool quoted = false;
  while (!rest.empty()) {
    const char c = rest.front();
    rest.remove_prefix(1);
    if (quoted) {
      if (c != '"') {
        field += c;
      } else if (rest.starts_with('"')) {
        field += '"';
        rest.remove_prefix(1);
      } else {
        quoted = false;
      }
    } else if (c == '"' && field.empty()) {
      quoted = true;
    } else if (c == ',') {
      row.push_back(std::move(field));
      field.clear();
    } else if (c == '\n') {
      break;
    } else if (c != '\r') {
      field += c;
    }
  }
  row.push_back(std::move(field));
  return true;
}

bool parse_number(std::string_view text, double& value) {
  std::string plain;
  for (const char c : text) {
    if (c != ',' && c != ' ') plain += c;
  }
  const char* end = plain.data() + plain.size();
  const auto [at, error] = std::from_chars(plain.data(), end, value);
  return error == std::errc{} && at == end && !plain.empty() && std::isfinite(value);
}

}  // namespace fulcrum::trace
