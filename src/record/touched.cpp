// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// /proc/PID/clear_refs and smaps_rollup.
#include "record/touched.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fulcrum/core.h>
#include <fulcrum/record.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstdio>

namespace fulcrum::record {
namespace {

// Programs start up first; data that is swept once a second must be seen as well; and processes so large that a walk over
// their pages would show in the program's time are left alone.
constexpr double kClearSeconds = 0.25;
constexpr std::array kReadAfterSeconds{0.1, 0.4, 1.6, 3.2, 6.4, 12.8, 25.6};
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

double seconds_per_fresh_byte() {
  constexpr std::size_t kBytes = std::size_t{8} << 20;
  constexpr int kTimes = 3;
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  // The least of each: one that was held up says nothing, and least of all that fresh memory costs nothing.
  double fresh = INFINITY, known = INFINITY;
  for (int i = 0; i < kTimes; ++i) {
    void* const memory = ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return 0;
    const auto touch = [&] {
      const auto began = std::chrono::steady_clock::now();
      for (std::size_t at = 0; at < kBytes; at += page) static_cast<volatile char*>(memory)[at] = 1;
      return std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
    };
    fresh = std::min(fresh, touch());
    known = std::min(known, touch());
    ::munmap(memory, kBytes);
  }
  return std::max(0.0, fresh - known) / kBytes;
}

void TouchedBytes::tick(double seconds) {
  if (given_up_) return;
  const auto statm = read_file(fmt::format("/proc/{}/statm", pid_));
  unsigned long total = 0, resident = 0;
  if (!statm.ok() || std::sscanf(statm->c_str(), "%lu %lu", &total, &resident) != 2) {
    given_up_ = true;
    return;
  }
  const double bytes = static_cast<double>(resident) * static_cast<double>(::sysconf(_SC_PAGESIZE));
  resident_ = std::max(resident_, bytes);
  if (cleared_ < 0) {
    if (seconds < kClearSeconds) return;
    const int descriptor = ::open(fmt::format("/proc/{}/clear_refs", pid_).c_str(), O_WRONLY | O_CLOEXEC);
    const bool cleared = bytes < kMostBytes && descriptor >= 0 && ::write(descriptor, "1", 1) == 1;
    if (descriptor >= 0) ::close(descriptor);
    given_up_ = !cleared;
    cleared_ = seconds;
    resident_then_ = bytes;
    return;
  }
  grown_ = std::max(grown_, bytes - resident_then_);
  if (reads_ >= kReadAfterSeconds.size() || seconds - cleared_ < kReadAfterSeconds[reads_]) return;
  ++reads_;
  const auto rollup = read_file(fmt::format("/proc/{}/smaps_rollup", pid_));
  if (!rollup.ok()) return;
  referenced_ = std::max(referenced_, rollup_bytes(*rollup, "Referenced").value_or(0));
  resident_then_ = bytes;
  grown_ = 0;
  seen_for_ = seconds - cleared_;
}

}  // namespace fulcrum::record
