// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Guarded memory: allocation, guard bytes, fingerprints.
#include "ops/support/guarded_buffer.h"

#include <sys/mman.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>

namespace fulcrum::ops {
namespace {

constexpr std::byte kGuard{0xA5};
constexpr std::int64_t kPage = 4096;
// Large buffers ask for huge pages, as the machine's probes do: with small ones a core streams from memory at two
// thirds of the rate, and the op would be compared with a ceiling that its buffers do not have.
constexpr std::int64_t kHugePage = std::int64_t{2} << 20;
constexpr std::int64_t kHugeFrom = 8 * kHugePage;

bool all_guard(const std::byte* begin, std::int64_t count) {
  return std::all_of(begin, begin + count, [](std::byte byte) { return byte == kGuard; });
}

}  // namespace

void GuardedBuffer::Free::operator()(std::byte* memory) const { std::free(memory); }

GuardedBuffer::GuardedBuffer(std::int64_t bytes) : bytes_(bytes) {
  // The second guard begins right behind the data, so that one element too many is found.
  const std::int64_t page = bytes >= kHugeFrom ? kHugePage : kPage;
  const std::int64_t total = (bytes + 2 * kGuardBytes + page - 1) / page * page;
  memory_.reset(static_cast<std::byte*>(
      std::aligned_alloc(static_cast<std::size_t>(page), static_cast<std::size_t>(total))));
  if (!memory_) return;
  if (page == kHugePage) ::madvise(memory_.get(), static_cast<std::size_t>(total), MADV_HUGEPAGE);
  std::memset(memory_.get(), static_cast<int>(kGuard), kGuardBytes);
  std::memset(data() + bytes_, static_cast<int>(kGuard), kGuardBytes);
}

bool GuardedBuffer::guards_intact() const {
  return empty() || (all_guard(memory_.get(), kGuardBytes) && all_guard(data() + bytes_, kGuardBytes));
}

std::uint64_t fingerprint(std::span<const std::byte> bytes) {
  constexpr std::uint64_t kMultiplier = 0x9E3779B97F4A7C15u;
  std::uint64_t state = bytes.size() + 1;
  while (!bytes.empty()) {
    std::uint64_t word = 0;
    const std::size_t step = std::min(bytes.size(), sizeof word);
    std::memcpy(&word, bytes.data(), step);
    state = (state ^ word) * kMultiplier;
    state ^= state >> 29;
    bytes = bytes.subspan(step);
  }
  return state;
}

std::int64_t free_memory_bytes() {
  std::ifstream file("/proc/meminfo");
  for (std::string key, rest; file >> key && std::getline(file, rest);) {
    if (key != "MemAvailable:") continue;
    const std::size_t digit = rest.find_first_of("0123456789");
    std::int64_t kibibytes = 0;
    if (digit != std::string::npos)
      std::from_chars(rest.data() + digit, rest.data() + rest.size(), kibibytes);
    return kibibytes * 1024;
  }
  return 0;
}

}  // namespace fulcrum::ops
