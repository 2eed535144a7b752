// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// The CPUs that this process may use, and how many threads that makes.
#include <sched.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <thread>

#include "backends/threads/pool.h"

namespace fulcrum::backends::threads {

CpuMask current_cpu_mask() {
  // The kernel refuses a buffer that is smaller than its own mask: grow until it fits.
  constexpr std::size_t kMostWords = 65536 / (8 * sizeof(unsigned long));
  for (std::size_t words = 16; words <= kMostWords; words *= 2) {
    std::vector<unsigned long> mask(words);
    if (sched_getaffinity(0, words * sizeof(unsigned long), reinterpret_cast<cpu_set_t*>(mask.data())) != 0)
      continue;
    int count = 0;
    for (const unsigned long word : mask) count += std::popcount(word);
    return CpuMask{std::move(mask), count};
  }
  return CpuMask{{}, static_cast<int>(std::thread::hardware_concurrency())};
}

bool restrict_to(const CpuMask& mask) {
  if (mask.words.empty()) return false;
  return sched_setaffinity(0, mask.words.size() * sizeof(unsigned long),
                           reinterpret_cast<const cpu_set_t*>(mask.words.data())) == 0;
}

bool move_off(const CpuMask& mask, std::span<const std::atomic<int>> taken) {
  constexpr int kWordBits = 8 * sizeof(unsigned long);
  for (int cpu = 0; cpu < static_cast<int>(mask.words.size()) * kWordBits; ++cpu) {
    const unsigned long bit = 1UL << cpu % kWordBits;
    const auto word = static_cast<std::size_t>(cpu / kWordBits);
    const auto is_here = [cpu](const std::atomic<int>& place) {
      return place.load(std::memory_order_relaxed) == cpu;
    };
    if ((mask.words[word] & bit) == 0 || std::any_of(taken.begin(), taken.end(), is_here)) continue;
    CpuMask one{std::vector<unsigned long>(mask.words.size()), 1};
    one.words[word] = bit;
    const bool moved = restrict_to(one);
    restrict_to(mask);
    return moved;
  }
  return false;
}

int threads_to_use(int in_mask, const std::optional<std::string>& wanted) {
  const int allowed = std::max(in_mask, 1);
  if (!wanted) return allowed;
  int number = 0;
  const char* end = wanted->data() + wanted->size();
  const auto parsed = std::from_chars(wanted->data(), end, number);
  if (parsed.ec != std::errc() || parsed.ptr != end || number < 1) return allowed;
  return std::min(number, allowed);
}

}  // namespace fulcrum::backends::threads
