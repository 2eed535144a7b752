// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// The list of formats, and which one a file is in.
#include <fulcrum/report/formats.h>

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>

#include "report/formats/builder.h"

namespace fulcrum::report {
namespace {

std::string profile_json(const CpuProfile& profile) { return json_text(to_json(profile)) + "\n"; }

constexpr ProfileFormat kFormats[] = {
    {"json", ".json", "fulcrum plan --profile, scripts", profile_json},
    {"folded", ".folded", "flame graph programs", folded},
    {"pprof", ".pb", "go tool pprof, Perfetto, Pyroscope", pprof},
    {"speedscope", ".speedscope.json", "speedscope.app", speedscope},
    {"chrome", ".trace.json", "chrome://tracing, ui.perfetto.dev", chrome_trace}};

/// Text has no control characters but ends of lines and tabs.
bool is_text(std::string_view head) {
  return std::none_of(head.begin(), head.end(), [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte < 0x20 && c != '\n' && c != '\r' && c != '\t';
  });
}

/// The last word of the first line that is no comment is a count.
bool is_folded(std::string_view text) {
  while (text.starts_with('#')) text.remove_prefix(std::min(text.find('\n'), text.size() - 1) + 1);
  std::string_view line = text.substr(0, text.find('\n'));
  if (line.ends_with('\r')) line.remove_suffix(1);
  const std::size_t space = line.rfind(' ');
  return space != std::string_view::npos && space + 1 < line.size() &&
         line.find_first_not_of("0123456789.", space + 1) == std::string_view::npos;
}

}  // namespace

std::span<const ProfileFormat> profile_formats() { return kFormats; }

Result<CpuProfile> read_profile(std::string_view content, std::string_view origin) {
  constexpr std::size_t kHead = 4096;
  if (content.empty()) return damaged(origin, "the file", "is empty");
  const std::size_t begin = content.find_first_not_of(" \t\r\n");
  if (begin != std::string_view::npos && content[begin] == '{') {
    FULCRUM_TRY(const Json json, json_parse(content, origin));
    return profile_from_json(json, origin);
  }
  if (!is_text(content.substr(0, kHead))) return from_pprof(content, origin);
  if (is_folded(content)) return from_folded(content, origin);
  return from_perf_script(content, origin);
}

}  // namespace fulcrum::report
