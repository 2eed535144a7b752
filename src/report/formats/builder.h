// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// A profile put together from another tool's file: equal frames, stacks and threads become one.
#pragma once

#include <fulcrum/core/profile.h>

#include <unordered_map>

namespace fulcrum::report {

/// Beyond so many samples their count says nothing more, and a file that claims more holds weights.
inline constexpr double kMostSamples = 1'000'000;

/// Without blanks at its ends.
inline std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\r";
  const std::size_t begin = text.find_first_not_of(kBlanks);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlanks) - begin + 1);
}

class ProfileBuilder {
 public:
  explicit ProfileBuilder(std::string_view origin) { profile.origin = origin; }

  std::uint32_t frame(Frame frame);
  std::uint32_t stack(CpuProfile::Stack stack);
  std::uint32_t thread(std::int64_t pid, std::int64_t tid, const std::string& name);
  std::uint32_t region(const std::string& name);

  CpuProfile profile;

 private:
  std::unordered_map<std::string, std::uint32_t> frames_, stacks_, threads_, regions_;
};

/// Error{corrupt} with the file, the place in it, and what is wrong there.
Error damaged(std::string_view origin, std::string_view place, std::string_view problem);

}  // namespace fulcrum::report
