// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Reading the kernel's files, and the small formats they are written in.
#include "machine/system_files.h"

#include <algorithm>
#include <charconv>

namespace fulcrum::machine {
namespace {

/// The number at the start of `text`, which is moved past it.
std::optional<std::int64_t> take_number(std::string_view& text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc()) return {};
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return value;
}

}  // namespace

std::string_view trim(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n";
  const std::size_t first = text.find_first_not_of(kSpace);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kSpace) - first + 1);
}

std::optional<std::string> SystemFiles::text(const std::string& path) const {
  const Result<std::string> content = read_file(root_ / path);
  if (!content.ok()) return {};
  return std::string(trim(*content));
}

std::string SystemFiles::text_or(const std::string& path, std::string_view otherwise) const {
  return text(path).value_or(std::string(otherwise));
}

std::optional<std::int64_t> SystemFiles::number(const std::string& path) const {
  const auto content = text(path);
  if (!content) return {};
  std::string_view rest = *content;
  const auto value = take_number(rest);
  return rest.empty() ? value : std::nullopt;
}

std::vector<std::string> SystemFiles::names(const std::string& folder) const {
  std::vector<std::string> result;
  std::error_code error;
  for (std::filesystem::directory_iterator it(root_ / folder, error), end; !error && it != end;
       it.increment(error)) {
    result.push_back(it->path().filename().string());
  }
  std::sort(result.begin(), result.end());
  return result;
}

std::vector<int> parse_cpu_list(std::string_view text) {
  std::vector<int> cpus;
  text = trim(text);
  while (!text.empty()) {
    const auto first = take_number(text);
    if (!first) break;
    std::int64_t last = *first;
    if (text.starts_with('-')) {
      text.remove_prefix(1);
      const auto number = take_number(text);
      if (!number) break;
      last = *number;
    }
    constexpr std::int64_t kMostCpus = 1 << 16;  // a damaged file must not fill the memory
    for (std::int64_t cpu = *first; cpu <= std::min(last, *first + kMostCpus); ++cpu) {
      cpus.push_back(static_cast<int>(cpu));
    }
    if (!text.starts_with(',')) break;
    text.remove_prefix(1);
  }
  return cpus;
}

std::optional<std::int64_t> parse_cache_size(std::string_view text) {
  text = trim(text);
  const auto value = take_number(text);
  if (!value || *value < 0) return {};
  if (text.empty()) return value;
  if (text == "K") return *value << 10;
  if (text == "M") return *value << 20;
  if (text == "G") return *value << 30;
  return {};
}

std::string bracketed(std::string_view text) {
  const std::size_t open = text.find('[');
  const std::size_t close = text.find(']', open == std::string_view::npos ? 0 : open);
  if (open == std::string_view::npos || close == std::string_view::npos) return {};
  return std::string(text.substr(open + 1, close - open - 1));
}

std::int64_t meminfo_bytes(std::string_view text, std::string_view key) {
  while (!text.empty()) {
    std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    if (!line.starts_with(key) || line.substr(key.size(), 1) != ":") continue;
    line = trim(line.substr(key.size() + 1));
    return take_number(line).value_or(0) * 1024;
  }
  return 0;
}

}  // namespace fulcrum::machine
