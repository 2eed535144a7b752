// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Reads /tmp/perf-PID.map.
#include "record/jit_map.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <charconv>

#include "record/events.h"

namespace fulcrum::record {
namespace {

// An address that no map knows must not read a file at each sample.
constexpr std::uint64_t kLookEveryNs = 100'000'000;

}  // namespace

JitMap::JitMap(pid_t pid) : path_(fmt::format("/tmp/perf-{}.map", pid)) {}

std::size_t JitMap::add_lines(std::string_view text) {
  std::size_t used = 0;
  for (std::size_t end; (end = text.find('\n', used)) != std::string_view::npos; used = end + 1) {
    const std::string_view line = text.substr(used, end - used);
    Entry entry;
    std::uint64_t bytes = 0;
    const char* stop = line.data() + line.size();
    const auto first = std::from_chars(line.data(), stop, entry.begin, 16);
    if (first.ec != std::errc() || first.ptr >= stop || *first.ptr != ' ') continue;
    const auto second = std::from_chars(first.ptr + 1, stop, bytes, 16);
    if (second.ec != std::errc() || second.ptr >= stop || *second.ptr != ' ') continue;
    entry.end = entry.begin + bytes;
    if (entry.end <= entry.begin) continue;
    entry.name.assign(second.ptr + 1, stop);
    by_begin_[entry.begin] =
        std::move(entry);  // code is thrown away and its place used again: the newest wins
  }
  return used;
}

void JitMap::read_on() {
  const std::uint64_t now = monotonic_ns();
  if (looked_ns_ != 0 && now - looked_ns_ < kLookEveryNs) return;
  looked_ns_ = now;
  const int descriptor = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (descriptor < 0) return;
  struct stat status {};
  const bool plain = ::fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode);
  if (plain && static_cast<std::uint64_t>(status.st_size) > read_bytes_) {
    std::string text(static_cast<std::size_t>(status.st_size) - read_bytes_, '\0');
    const ssize_t got = ::pread(descriptor, text.data(), text.size(), static_cast<off_t>(read_bytes_));
    if (got > 0) read_bytes_ += add_lines({text.data(), static_cast<std::size_t>(got)});
  }
  ::close(descriptor);
}

const JitMap::Entry* JitMap::find(std::uint64_t address) {
  for (int attempt = 0; attempt < 2; ++attempt) {
    const auto next = by_begin_.upper_bound(address);
    if (next != by_begin_.begin() && address < std::prev(next)->second.end) return &std::prev(next)->second;
    if (attempt == 0) read_on();
  }
  return nullptr;
}

}  // namespace fulcrum::record
