// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// See plan_memory.h.
#include "backends/simd/plan_memory.h"

#include <cstddef>
#include <cstdlib>
#include <mutex>
#include <vector>

namespace fulcrum::backends::simd {
namespace {

// Smaller blocks come from the heap without a system call anyhow; larger ones than all that is kept are not.
constexpr std::size_t kLeastBytes = std::size_t{64} << 10, kMostKept = std::size_t{64} << 20;
// Of what was asked for: a block that is larger waits for a larger plan.
constexpr std::size_t kMostTooLarge = 4;

/// Before the memory itself; keeps its alignment.
struct alignas(std::max_align_t) Block {
  std::size_t bytes;
};

/// Oldest first. Never destroyed: plans may be dropped while a program ends.
struct Kept {
  std::mutex mutex;
  std::vector<Block*> blocks;
  std::size_t bytes = 0;

  Block* take(std::size_t wanted) {
    const std::lock_guard lock(mutex);
    auto best = blocks.end();
    for (auto at = blocks.begin(); at != blocks.end(); ++at) {
      const bool fits = (*at)->bytes >= wanted && (*at)->bytes <= kMostTooLarge * wanted;
      if (fits && (best == blocks.end() || (*at)->bytes < (*best)->bytes)) best = at;
    }
    if (best == blocks.end()) return nullptr;
    Block* block = *best;
    blocks.erase(best);
    bytes -= block->bytes;
    return block;
  }

  void give(Block* block) {
    const std::lock_guard lock(mutex);
    blocks.push_back(block);
    bytes += block->bytes;
    while (bytes > kMostKept) {
      bytes -= blocks.front()->bytes;
      std::free(blocks.front());
      blocks.erase(blocks.begin());
    }
  }
};

Kept& kept() {
  static auto* const all = new Kept;
  return *all;
}

}  // namespace

void* take_plan_memory(void*, std::size_t bytes) {
  Block* block = bytes >= kLeastBytes ? kept().take(bytes) : nullptr;
  if (!block) {
    block = static_cast<Block*>(std::malloc(sizeof(Block) + bytes));
    if (!block) return nullptr;
    block->bytes = bytes;
  }
  return block + 1;
}

void give_plan_memory(void*, void* memory) {
  if (!memory) return;
  Block* block = static_cast<Block*>(memory) - 1;
  if (block->bytes < kLeastBytes) {
    std::free(block);
  } else {
    kept().give(block);
  }
}

}  // namespace fulcrum::backends::simd
