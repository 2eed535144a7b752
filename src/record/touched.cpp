// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// /proc/PID/clear_refs and smaps_rollup.
#include "record/touched.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fulcrum/core.h>
#include <unistd.h>

#include <array>
#include <charconv>

namespace fulcrum::record {
namespace {

// Windows begin then (programs start up first), last this long, and are left out for processes so large that a walk
// over their pages would show in the program's time.
constexpr std::array kBeginSeconds{0.5, 2.0, 8.0};
constexpr double kWindowSeconds = 0.1;
constexpr double kMostBytes = 4e9;

}  // namespace

std::optional<double> rollup_bytes(std::string_view text, std::string_view name) {
  for (std::size_t at = 0; (at = text.find(name, at)) != std::string_view::npos; at += name.size()) {
    const bool whole = (at == 0 || text[at - 1] == '\n') && text.substr(at + name.size()).starts_with(':');
    if (!whole) continue;
    std::string_view rest = text.substr(at + name.size() + 1);
    rest.remove_prefix(std::min(rest.find_first_not_of(' '), rest.size()));
    std::uint64_t kilobytes = 0;
    const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), kilobytes);
    if (error != std::errc() || !std::string_view(end, rest.data() + rest.size()).starts_with(" kB"))
      return std::nullopt;
    return static_cast<double>(kilobytes) * 1024;
  }
  return std::nullopt;
}

void TouchedBytes::tick(double seconds) {
  if (window_ >= static_cast<int>(kBeginSeconds.size())) return;
  if (opened_ < 0 && seconds < kBeginSeconds[static_cast<std::size_t>(window_)]) return;
  if (opened_ >= 0 && seconds - opened_ < kWindowSeconds) return;
  const auto text = read_file(fmt::format("/proc/{}/{}", pid_, opened_ < 0 ? "statm" : "smaps_rollup"));
  if (!text.ok()) {
    window_ = static_cast<int>(kBeginSeconds.size());
    return;
  }
  if (opened_ >= 0) {
    most_ = std::max(most_, rollup_bytes(*text, "Referenced").value_or(0));
    opened_ = -1;
    ++window_;
    return;
  }
  unsigned long total = 0, resident = 0;
  const bool known = std::sscanf(text->c_str(), "%lu %lu", &total, &resident) == 2;
  const double resident_bytes = static_cast<double>(resident) * static_cast<double>(::sysconf(_SC_PAGESIZE));
  const int descriptor = ::open(fmt::format("/proc/{}/clear_refs", pid_).c_str(), O_WRONLY | O_CLOEXEC);
  const bool cleared =
      known && resident_bytes < kMostBytes && descriptor >= 0 && ::write(descriptor, "1", 1) == 1;
  if (descriptor >= 0) ::close(descriptor);
  if (cleared)
    opened_ = seconds;
  else
    window_ = static_cast<int>(kBeginSeconds.size());
}

}  // namespace fulcrum::record
