// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Choices made before, by what was asked: a small table that many threads read and write without a lock. An entry is two
// words that only make sense together: the first is stored as its exclusive or with the second, so that halves of two
// writers never pass for one entry.
#pragma once

#include <array>
#include <atomic>
#include <bit>

#include "executor/dispatch.h"

namespace fulcrum::executor {

/// 64 bits of what a choice depends on.
inline std::uint64_t mix(std::uint64_t hash, std::uint64_t value) {
  const std::uint64_t product = (hash ^ value) * 0x9e3779b97f4a7c15;
  return product ^ (product >> 32);
}

class Seen {
 public:
  bool find(std::uint64_t key, Choice& choice) const {
    for (const Entry& entry : sets_[set_of(key)]) {
      const std::uint64_t times = entry.times.load(std::memory_order_relaxed);
      const std::uint64_t word = entry.word.load(std::memory_order_relaxed) ^ times;
      if ((word ^ key) >> kBits != 0 || times == 0) continue;
      choice = choice_of(static_cast<std::uint8_t>(word & 31), static_cast<std::uint8_t>(word >> 5 & 31),
                         Tier::seen, static_cast<std::uint8_t>(word >> 10 & 63),
                         std::bit_cast<float>(static_cast<std::uint32_t>(times)),
                         std::bit_cast<float>(static_cast<std::uint32_t>(times >> 32)));
      return true;
    }
    return false;
  }
  void put(std::uint64_t key, const Choice& choice) {
    const std::uint64_t word = (key >> kBits << kBits) | std::uint64_t{choice.size_class} << 10 |
                               std::uint64_t{choice.runner_up} << 5 | choice.candidate;
    const std::uint64_t times = std::uint64_t{std::bit_cast<std::uint32_t>(choice.runner_seconds)} << 32 |
                                std::bit_cast<std::uint32_t>(choice.seconds);
    Set& set = sets_[set_of(key)];
    // Where it is already (another thread was faster), else the first that is free, else the next in turn: two calls must
    // not drive each other out for ever.
    std::size_t at = kWays;
    for (std::size_t way = 0; way < kWays; ++way) {
      const std::uint64_t old = set[way].times.load(std::memory_order_relaxed);
      const std::uint64_t key_there = set[way].word.load(std::memory_order_relaxed) ^ old;
      if (old != 0 && (key_there ^ key) >> kBits != 0) continue;
      if (old != 0) {
        at = way;
        break;
      }
      if (at == kWays) at = way;
    }
    if (at == kWays) at = turn_.fetch_add(1, std::memory_order_relaxed) % kWays;
    set[at].times.store(times, std::memory_order_relaxed);
    set[at].word.store(word ^ times, std::memory_order_relaxed);
  }

 private:
  static constexpr int kBits = 16;  // of a word that hold the choice; the others are the key's
  static constexpr std::size_t kSets = 128, kWays = 4;
  struct Entry {
    std::atomic<std::uint64_t> word{0}, times{0};
  };
  using Set = std::array<Entry, kWays>;  // one cache line
  static std::size_t set_of(std::uint64_t key) { return key >> 57; }
  alignas(64) std::array<Set, kSets> sets_{};
  std::atomic<std::uint32_t> turn_{0};
};

}  // namespace fulcrum::executor
