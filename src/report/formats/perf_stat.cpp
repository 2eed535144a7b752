// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// What `perf stat` prints, on this machine or on another: its table for people, its lines with a separator (-x) and its
// JSON lines (-j). What was not counted there is not counted here.
#include <fmt/format.h>
#include <fulcrum/report/formats.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "report/formats/builder.h"

namespace fulcrum::report {
namespace {

using Counts = std::map<std::string, double>;

/// "1,234.5" as people write it, or plain.
std::optional<double> number_of(std::string_view text) {
  std::string plain;
  for (const char c : text) {
    if (c != ',') plain += c;
  }
  double value = 0;
  const auto [end, error] = std::from_chars(plain.data(), plain.data() + plain.size(), value);
  if (error != std::errc() || end != plain.data() + plain.size() || plain.empty() || !(value >= 0)) return {};
  return value;
}

/// "cpu_core/LLC-load-misses/u" and "cache-misses:u" -> "llc_load_misses", "cache_misses".
std::string name_of(std::string_view event) {
  if (const std::size_t slash = event.find('/'); slash != std::string_view::npos) {
    event.remove_prefix(slash + 1);
    event = event.substr(0, event.find('/'));
  }
  event = event.substr(0, event.find(':'));
  std::string name;
  for (const char c : event) {
    name += std::isalnum(static_cast<unsigned char>(c))
                ? static_cast<char>(std::tolower(static_cast<unsigned char>(c)))
                : '_';
  }
  return name;
}

/// Times become seconds; an event that is there twice (two kinds of core) is the sum.
bool add(Counts& counts, std::string_view event, double value, std::string_view unit) {
  std::string name = name_of(event);
  if (name.empty() || name.size() > 100) return false;
  if (unit == "msec" || unit == "ns") {
    value *= unit == "msec" ? 1e-3 : 1e-9;
    name += "_seconds";
  } else if (name == "duration_time") {
    value *= 1e-9;
    name = "elapsed_seconds";
  }
  counts[name] += value;
  return true;
}

std::vector<std::string_view> split(std::string_view line, char separator) {
  std::vector<std::string_view> fields;
  for (std::size_t at = 0; at <= line.size();) {
    const std::size_t end = std::min(line.find(separator, at), line.size());
    fields.push_back(trimmed(line.substr(at, end - at)));
    at = end + 1;
  }
  return fields;
}

/// value, unit, event, time it ran, share of the time, ...
bool take_separated(std::string_view line, char separator, Counts& counts) {
  const auto fields = split(line, separator);
  if (fields.size() < 4) return false;
  const auto value = number_of(fields[0]);
  return value && add(counts, fields[2], *value, fields[1]);
}

bool take_json(std::string_view line, Counts& counts) {
  const Json json = Json::parse(line, nullptr, false);
  if (!json.is_object()) return false;
  const auto text = [&json](const char* key) {
    const auto found = json.find(key);
    return found != json.end() && found->is_string() ? found->get<std::string>() : std::string();
  };
  const auto value = number_of(text("counter-value"));
  return value && add(counts, text("event"), *value, text("unit"));
}

/// "   1,234,567      cycles:u     #  2.1 GHz   (83.3%)" and "  1.25 seconds time elapsed".
bool take_table(std::string_view line, Counts& counts) {
  std::string_view rest = trimmed(line.substr(0, line.find('#')));
  const auto word = [&rest] {
    const std::string_view first = rest.substr(0, rest.find_first_of(" \t"));
    rest = trimmed(rest.substr(first.size()));
    return first;
  };
  const auto value = number_of(word());
  if (!value || rest.empty()) return false;
  // Of repeated runs (-r) the spread comes next.
  if (rest.starts_with("+- ")) {
    word();
    word();
  }
  if (rest.starts_with("seconds time elapsed")) {
    counts["elapsed_seconds"] += *value;
    return true;
  }
  // User and system time are in task-clock already.
  if (rest.starts_with("seconds ")) return false;
  std::string_view unit;
  if (rest.starts_with("msec ") || rest.starts_with("ns ")) unit = word();
  const std::string_view event = word();
  if (!rest.empty() && !rest.starts_with('(')) return false;
  return add(counts, event, *value, unit);
}

}  // namespace

Result<std::map<std::string, double>> from_perf_stat(std::string_view text, std::string_view origin) {
  Counts counts;
  std::size_t taken = 0;
  while (!text.empty()) {
    const std::string_view line = trimmed(text.substr(0, text.find('\n')));
    text.remove_prefix(std::min(text.find('\n'), text.size() - 1) + 1);
    if (line.empty() || line.starts_with('#')) continue;
    bool known = line.starts_with('{') ? take_json(line, counts) : take_table(line, counts);
    for (const char separator : {';', '\t', '|', ','})
      known = known || take_separated(line, separator, counts);
    taken += known ? 1 : 0;
  }
  if (taken == 0) return damaged(origin, "the file", "holds no counts of `perf stat`");
  return counts;
}

}  // namespace fulcrum::report
