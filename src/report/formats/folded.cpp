// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Folded stacks: "caller;callee 12" a line, as flame graph programs read and write them. The format says neither what
// a count is nor when it was: reading back gives shares and nothing else.
#include <fmt/format.h>
#include <fulcrum/report/formats.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "report/formats/builder.h"

namespace fulcrum::report {
namespace {

constexpr std::string_view kInlined = "_[i]", kBlocked = "[blocked]";

/// A separator or a line end inside a name would make two frames of it.
std::string frame_text(const Frame& frame) {
  std::string text = frame.function.empty() ? "[unknown]" : frame.function;
  for (char& c : text) {
    if (c == ';') c = ':';
    if (c == '\n' || c == '\r') c = ' ';
  }
  return frame.inlined ? text + std::string(kInlined) : text;
}

std::string stack_text(const CpuProfile& profile, const CpuProfile::Sample& sample) {
  const CpuProfile::Stack& stack = profile.stacks[sample.stack];
  std::string text;
  if (stack.truncated) text = "[truncated]";
  for (auto frame = stack.frames.rbegin(); frame != stack.frames.rend(); ++frame) {
    if (!text.empty()) text += ';';
    text += frame_text(profile.frames[*frame]);
  }
  if (sample.blocked) text += (text.empty() ? "" : ";") + std::string(kBlocked);
  return text.empty() ? "[unknown]" : text;
}

double shortest_sample(const CpuProfile& profile) {
  double least = 0;
  for (const CpuProfile::Sample& sample : profile.samples) {
    if (sample.blocked || !(sample.weight_seconds > 0)) continue;
    if (least == 0 || sample.weight_seconds < least) least = sample.weight_seconds;
  }
  return least > 0 ? least : 1e-3;
}

CpuProfile::Stack stack_of(std::string_view text, ProfileBuilder& builder, bool& blocked) {
  CpuProfile::Stack stack;
  while (true) {
    const std::size_t end = std::min(text.find(';'), text.size());
    std::string_view name = text.substr(0, end);
    Frame frame;
    frame.inlined = name.size() > kInlined.size() && name.ends_with(kInlined);
    if (frame.inlined) name.remove_suffix(kInlined.size());
    frame.function = name;
    const bool last = end == text.size();
    if (name == "[truncated]" && stack.frames.empty()) {
      stack.truncated = true;
      stack.why = "as the file says";
    } else if (last && name == kBlocked) {
      blocked = true;
    } else {
      stack.frames.push_back(builder.frame(std::move(frame)));
    }
    if (last) break;
    text.remove_prefix(end + 1);
  }
  std::reverse(stack.frames.begin(), stack.frames.end());
  return stack;
}

struct Line {
  std::uint32_t stack = 0;
  bool blocked = false;
  double count = 0;
};

}  // namespace

std::string folded(const CpuProfile& profile) {
  const double unit = shortest_sample(profile);
  std::map<std::string, double> seconds;
  for (const CpuProfile::Sample& sample : profile.samples) {
    seconds[stack_text(profile, sample)] += sample.weight_seconds;
  }
  std::string text;
  for (const auto& [stack, sum] : seconds) {
    text += fmt::format("{} {}\n", stack, std::max<std::int64_t>(1, std::llround(sum / unit)));
  }
  return text;
}

Result<CpuProfile> from_folded(std::string_view text, std::string_view origin) {
  ProfileBuilder builder("folded");
  std::vector<Line> lines;
  double total = 0;
  std::size_t number = 0;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    ++number;
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty() || line.starts_with('#')) continue;
    const std::size_t space = line.rfind(' ');
    const std::string place = fmt::format("line {}", number);
    if (space == std::string_view::npos || space == 0) return damaged(origin, place, "no count at its end");
    const std::string_view digits = line.substr(space + 1);
    double count = 0;
    const auto [stop, error] = std::from_chars(digits.data(), digits.data() + digits.size(), count);
    if (error != std::errc() || stop != digits.data() + digits.size() || !std::isfinite(count) || count < 0) {
      return damaged(origin, place, fmt::format("'{}' is no count", digits.substr(0, 40)));
    }
    Line& entry = lines.emplace_back();
    entry.count = count;
    entry.stack = builder.stack(stack_of(line.substr(0, space), builder, entry.blocked));
    total += count;
  }
  if (lines.empty() || !(total > 0)) return damaged(origin, "the file", "has no stack");
  CpuProfile profile = std::move(builder.profile);
  profile.event = "count";
  profile.threads.push_back({});
  const bool whole = std::all_of(lines.begin(), lines.end(),
                                 [](const Line& line) { return line.count == std::floor(line.count); });
  const bool counts = whole && total <= kMostSamples;
  for (const Line& line : lines) {
    if (!(line.count > 0)) continue;
    const CpuProfile::Sample sample{.stack = line.stack,
                                    .weight_seconds = counts && !line.blocked ? 1.0 : line.count,
                                    .blocked = line.blocked,
                                    .approximate = line.blocked};
    profile.samples.insert(profile.samples.end(),
                           counts && !line.blocked ? static_cast<std::size_t>(line.count) : 1, sample);
  }
  profile.notes.emplace_back(counts ? "folded stacks: counts are taken as numbers of samples of one second "
                                      "each; only shares mean anything"
                                    : "folded stacks: the counts are weights and no numbers of samples, so "
                                      "intervals are wide; only shares "
                                      "mean anything");
  profile.notes.emplace_back("folded stacks carry no times, threads, addresses or waiting: not checked");
  return profile;
}

}  // namespace fulcrum::report
