// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Colour, wrapping, display width and the short texts of numbers.
#include "report/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace fulcrum::report {
namespace {

struct Range {
  char32_t first, last;
};

// Combining marks, zero-width characters and variation selectors.
constexpr Range kZeroWidth[] = {{0x300, 0x36F},   {0x483, 0x489},   {0x591, 0x5BD},   {0x610, 0x61A},
                                {0x64B, 0x65F},   {0x1AB0, 0x1AFF}, {0x1DC0, 0x1DFF}, {0x200B, 0x200F},
                                {0x202A, 0x202E}, {0x2060, 0x2064}, {0x20D0, 0x20FF}, {0xFE00, 0xFE0F},
                                {0xFE20, 0xFE2F}, {0xFEFF, 0xFEFF}};
// East Asian wide and fullwidth blocks, and emoji.
constexpr Range kWide[] = {{0x1100, 0x115F},   {0x2E80, 0x303E},   {0x3041, 0x33FF},  {0x3400, 0x4DBF},
                           {0x4E00, 0x9FFF},   {0xA000, 0xA4CF},   {0xAC00, 0xD7A3},  {0xF900, 0xFAFF},
                           {0xFE30, 0xFE4F},   {0xFF00, 0xFF60},   {0xFFE0, 0xFFE6},  {0x1F300, 0x1F64F},
                           {0x1F680, 0x1F6FF}, {0x1F900, 0x1F9FF}, {0x20000, 0x3FFFD}};

template <std::size_t N>
bool within(const Range (&ranges)[N], char32_t point) {
  return std::any_of(std::begin(ranges), std::end(ranges),
                     [&](const Range& range) { return point >= range.first && point <= range.last; });
}

/// Decodes one character; a broken sequence counts as one byte.
char32_t next_point(std::string_view text, std::size_t& at) {
  const auto lead = static_cast<unsigned char>(text[at++]);
  const int more = lead >= 0xF0 ? 3 : lead >= 0xE0 ? 2 : lead >= 0xC0 ? 1 : 0;
  if (more == 0) return lead;
  char32_t point = lead & (0x3Fu >> more);
  for (int i = 0; i < more; ++i) {
    if (at >= text.size() || (static_cast<unsigned char>(text[at]) & 0xC0u) != 0x80u) return lead;
    point = (point << 6) | (static_cast<unsigned char>(text[at++]) & 0x3Fu);
  }
  return point;
}

}  // namespace

int display_width(std::string_view text) {
  int width = 0;
  for (std::size_t at = 0; at < text.size();) {
    const char32_t point = next_point(text, at);
    width += within(kZeroWidth, point) ? 0 : within(kWide, point) ? 2 : 1;
  }
  return width;
}

std::string paint(std::string_view text, Tone tone, bool colour) {
  constexpr std::array<std::string_view, 6> kCodes = {"", "32", "33", "31", "2", "1"};
  const std::string_view code = kCodes[static_cast<std::size_t>(tone)];
  if (!colour || code.empty() || text.empty()) return std::string(text);
  return fmt::format("\x1b[{}m{}\x1b[0m", code, text);
}

std::string wrap(std::string_view text, int width, int indent) {
  std::string result;
  int column = 0;
  for (std::size_t at = 0; at < text.size();) {
    if (text[at] == ' ' || text[at] == '\n') {
      ++at;
      continue;
    }
    const std::size_t end = std::min(text.find_first_of(" \n", at), text.size());
    const std::string_view word = text.substr(at, end - at);
    const int word_width = display_width(word);
    if (column > 0 && column + 1 + word_width > width) {
      result += "\n" + std::string(static_cast<std::size_t>(indent), ' ');
      column = indent;
    } else if (column > 0) {
      result += ' ';
      ++column;
    }
    result += word;
    column += word_width;
    at = end;
  }
  return result;
}

std::string three_digits(double value) {
  const double size = std::fabs(value);
  if (size == 0 || !std::isfinite(value)) return fmt::format("{}", value);
  if (size >= 1e5 || size < 1e-3) return fmt::format("{:.2e}", value);
  if (size >= 99.95) return fmt::format("{:.0f}", value);
  if (size >= 9.995) return fmt::format("{:.1f}", value);
  if (size >= 0.9995) return fmt::format("{:.2f}", value);
  return fmt::format("{:.3g}", value);
}

std::string percent(double share) {
  if (!std::isfinite(share)) return "-";
  const double value = 100 * share;
  if (std::fabs(value) < 0.05) return value == 0 ? "0 %" : "<0.1 %";
  if (std::fabs(value) < 9.95) return fmt::format("{:.1f} %", value);
  return fmt::format("{:.0f} %", value);
}

double half_width(const Estimate& estimate) {
  // Of one or two samples the interval is their range, which says nothing: its level tells.
  constexpr double kLeastLevel = 0.9;
  if (!(estimate.ci_low > 0) || !(estimate.ci_high > 0) || estimate.level < kLeastLevel) return NAN;
  return (std::log(estimate.ci_high) - std::log(estimate.ci_low)) / 2;
}

std::string estimate_text(const Estimate& estimate) {
  return fmt::format("{} +-{}", human_seconds(estimate.median), percent(half_width(estimate)));
}

std::string speedup_text(const Comparison& comparison) {
  // As many decimals as the middle value has: an interval in unlike roundings is hard to read.
  const double size = std::fabs(comparison.speedup);
  const int decimals = size >= 100 ? 0 : size >= 10 ? 1 : size >= 0.1 ? 2 : 4;
  return fmt::format("{:.{}f}x [{:.{}f}, {:.{}f}]", comparison.speedup, decimals, comparison.ci_low, decimals,
                     comparison.ci_high, decimals);
}

std::string comparison_sentence(const Comparison& comparison) {
  switch (comparison.verdict) {
    case Verdict::not_run:
      return fmt::format("{} was not compared with {}: {}", comparison.a, comparison.b, comparison.reason);
    case Verdict::invalid:
      return fmt::format("{} against {} is invalid: {}", comparison.a, comparison.b, comparison.reason);
    default:
      break;
  }
  std::string sentence =
      fmt::format("{} is {} the speed of {}", comparison.a, speedup_text(comparison), comparison.b);
  if (comparison.verdict == Verdict::same) sentence += ": the same within 2 %";
  if (comparison.verdict == Verdict::unresolved) {
    const bool straddles = comparison.ci_low <= 1 && comparison.ci_high >= 1;
    sentence += straddles
                    ? ": unresolved, the interval holds both faster and slower"
                    : fmt::format(": unresolved after only {} rounds, raise --budget", comparison.rounds);
  }
  if (!comparison.reason.empty() && comparison.verdict != Verdict::unresolved)
    sentence += fmt::format(" ({})", comparison.reason);
  return sentence;
}

std::string rate_text(const Measurement& row) {
  const double seconds = row.seconds.median;
  if (!(seconds > 0)) return "";
  // More than eight operations a byte: the bytes no longer say how hard the machine works.
  if (row.work.flops > 8 * row.work.bytes()) return human_flops(row.work.flops / seconds);
  if (row.work.bytes() > 0) return human_rate(row.work.bytes() / seconds);
  return row.work.flops > 0 ? human_flops(row.work.flops / seconds) : "";
}

std::string csv_text(std::string_view text) {
  std::string field = "\"";
  for (const char c : text) {
    if (c == '"') field += '"';
    field += c;
  }
  return field + "\"";
}

std::string csv_number(double value) { return std::isfinite(value) ? fmt::format("{}", value) : ""; }

}  // namespace fulcrum::report
