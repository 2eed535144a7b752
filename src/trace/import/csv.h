// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Comma-separated values with quotes, as tools write them between lines that are none.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace fulcrum::trace {

using CsvRow = std::vector<std::string>;

/// The next row, which it takes off `rest`; a quoted field may hold commas, doubled quotes and line ends. False: the end.
bool next_row(std::string_view& rest, CsvRow& row);

/// "1,234.5" and "1234.5"; false: no number.
bool parse_number(std::string_view text, double& value);

}  // namespace fulcrum::trace
