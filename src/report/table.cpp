// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// One table, three texts: aligned for terminals, Markdown, CSV.
#include <algorithm>
#include <numeric>

#include "report/text.h"

namespace fulcrum::report {
namespace {

/// Control characters would move the cursor or end the row.
std::string printable(std::string text) {
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) c = '?';
  }
  return text;
}

std::string padded(std::string_view text, int width, Align align, Tone tone, bool colour) {
  const std::string space(static_cast<std::size_t>(std::max(0, width - display_width(text))), ' ');
  const std::string painted = paint(text, tone, colour);
  return align == Align::right ? space + painted : painted + space;
}

std::string trimmed(std::string line) {
  line.erase(line.find_last_not_of(' ') + 1);
  return line + "\n";
}

}  // namespace

void Table::add(std::vector<Cell> row) {
  FULCRUM_ASSERT(row.size() == columns_.size());
  for (Cell& cell : row) cell.text = printable(std::move(cell.text));
  rows_.push_back(std::move(row));
}

std::string Table::fold() {
  std::string caption;
  for (std::size_t column = columns_.size(); column-- > 0;) {
    if (!columns_[column].foldable || rows_.empty()) continue;
    const std::string& first = rows_[0][column].text;
    const bool constant =
        std::all_of(rows_.begin(), rows_.end(), [&](const auto& row) { return row[column].text == first; });
    if (!constant) continue;
    if (!first.empty()) {
      const std::string part = columns_[column].title.empty() ? first : columns_[column].title + " " + first;
      caption.insert(0, caption.empty() ? part : part + ", ");
    }
    remove(column);
  }
  return caption;
}

std::vector<std::string> Table::narrow(int width) {
  std::vector<std::string> gone;
  const auto needed = [this] {
    const std::vector<int> each = widths();
    return std::accumulate(each.begin(), each.end(), 2 * (static_cast<int>(each.size()) - 1));
  };
  while (needed() > width) {
    const auto most = std::max_element(columns_.begin(), columns_.end(),
                                       [](const Column& a, const Column& b) { return a.spare < b.spare; });
    if (most == columns_.end() || most->spare == 0) break;
    gone.push_back(most->title);
    remove(static_cast<std::size_t>(most - columns_.begin()));
  }
  return gone;
}

void Table::remove(std::size_t column) {
  columns_.erase(columns_.begin() + static_cast<std::ptrdiff_t>(column));
  for (auto& row : rows_) row.erase(row.begin() + static_cast<std::ptrdiff_t>(column));
}

std::vector<int> Table::widths() const {
  std::vector<int> result;
  for (std::size_t column = 0; column < columns_.size(); ++column) {
    int width = display_width(columns_[column].title);
    for (const auto& row : rows_) width = std::max(width, display_width(row[column].text));
    result.push_back(width);
  }
  return result;
}

std::string Table::text(bool colour) const {
  const std::vector<int> widths = this->widths();
  const auto line = [&](const std::vector<Cell>& cells) {
    std::string result;
    for (std::size_t column = 0; column < cells.size(); ++column) {
      if (column > 0) result += "  ";
      // The last column of left-aligned text needs no padding, and none means no trailing blanks.
      const bool last = column + 1 == cells.size() && columns_[column].align == Align::left;
      result += padded(cells[column].text, last ? 0 : widths[column], columns_[column].align,
                       cells[column].tone, colour);
    }
    return trimmed(std::move(result));
  };
  std::vector<Cell> titles;
  for (const Column& column : columns_) titles.emplace_back(column.title, Tone::dim);
  std::string result = line(titles);
  if (result == "\n") result.clear();
  for (const auto& row : rows_) result += line(row);
  return result;
}

std::string Table::markdown() const {
  const auto line = [](const std::vector<std::string>& cells) {
    std::string result = "|";
    for (const std::string& cell : cells) {
      result += ' ';
      for (const char c : cell) {
        if (c == '|') result += '\\';
        result += c;
      }
      result += " |";
    }
    return result + "\n";
  };
  std::vector<std::string> titles, rules;
  for (const Column& column : columns_) {
    titles.push_back(column.title);
    rules.emplace_back(column.align == Align::right ? "--:" : "---");
  }
  std::string result = line(titles) + line(rules);
  for (const auto& row : rows_) {
    std::vector<std::string> cells;
    cells.reserve(row.size());
    for (const Cell& cell : row) cells.push_back(cell.text);
    result += line(cells);
  }
  return result;
}

std::string Table::csv() const {
  std::string result;
  for (std::size_t column = 0; column < columns_.size(); ++column) {
    result += (column > 0 ? "," : "") + csv_text(columns_[column].title);
  }
  result += "\n";
  for (const auto& row : rows_) {
    for (std::size_t column = 0; column < row.size(); ++column) {
      result += (column > 0 ? "," : "") + csv_text(row[column].text);
    }
    result += "\n";
  }
  return result;
}

}  // namespace fulcrum::report
