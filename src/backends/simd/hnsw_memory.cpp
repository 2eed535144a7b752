// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// One block a thread, cut into the parts a search needs.
#include "backends/simd/hnsw_memory.h"

#include <memory>
#include <new>

namespace fulcrum::backends::simd {
namespace {

constexpr std::size_t kLine = 64;
// Pools hold one candidate more than any search keeps, while it moves in.
constexpr std::size_t kPoolBytes = (ops::kHnswMostEf + 1) * sizeof(std::uint64_t) / kLine * kLine + kLine;

struct FreeLines {
  void operator()(void* memory) const { ::operator delete (memory, std::align_val_t{kLine}); }
};

struct Block {
  std::unique_ptr<std::byte, FreeLines> bytes;
  std::size_t size = 0;
  // Of the index it is cut for. The dimension too: queries are padded with zeros from there to the stride.
  std::int64_t count = 0, dimension = 0, stride = 0, code_stride = 0;
  HnswMemory memory;
};

std::size_t lines(std::int64_t bytes) {
  return (static_cast<std::size_t>(bytes) + kLine - 1) / kLine * kLine;
}

}  // namespace

HnswMemory* hnsw_memory(const ops::HnswIndex& index) {
  static thread_local Block block;
  if (block.count == index.count && block.dimension == index.dimension && block.stride == index.stride &&
      block.code_stride == index.code_stride) {
    return &block.memory;
  }
  const std::size_t query = lines(4 * index.stride * ops::kHnswQueries), codes = lines(2 * index.code_stride);
  const std::size_t seen = lines((index.count + 63) / 64 * 8);
  const std::size_t size = query + codes + seen + ops::kHnswQueries * kPoolBytes;
  if (size > block.size) {
    block.bytes.reset(static_cast<std::byte*>(::operator new (size, std::align_val_t{kLine}, std::nothrow)));
    block.size = block.bytes ? size : 0;
    block.count = 0;
    if (!block.bytes) return nullptr;
  }
  std::byte* at = block.bytes.get();
  std::memset(at, 0, query + codes + seen);
  block.memory.query = reinterpret_cast<float*>(at);
  block.memory.query_codes = reinterpret_cast<std::int16_t*>(at += query);
  block.memory.seen = reinterpret_cast<std::uint64_t*>(at += codes);
  at += seen;
  for (HnswPool& pool : block.memory.pool) {
    pool.keys = reinterpret_cast<std::uint64_t*>(at);
    at += kPoolBytes;
  }
  block.count = index.count;
  block.dimension = index.dimension;
  block.stride = index.stride;
  block.code_stride = index.code_stride;
  return &block.memory;
}

}  // namespace fulcrum::backends::simd
