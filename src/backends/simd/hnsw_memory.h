// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Memory of one thread's searches: allocated by its first search of an index and kept for the next.
#pragma once

#include <fulcrum/ops/hnsw_search.h>

#include <cstring>

namespace fulcrum::backends::simd {

/// Candidates in order. A key is the distance's bits made orderable, then the id, then whether it was expanded: one
/// comparison of integers orders by distance and, where that is equal, by id.
struct HnswPool {
  std::uint64_t* keys = nullptr;
  std::size_t size = 0, capacity = 0;
  std::size_t next = 0;  // nothing before it waits to be expanded

  static std::uint64_t key(std::uint32_t distance, std::int32_t id) {
    return std::uint64_t{distance} << 32 | static_cast<std::uint32_t>(id) << 1;
  }
  static std::int32_t id(std::uint64_t key) {
    return static_cast<std::int32_t>(static_cast<std::uint32_t>(key) >> 1);
  }

  void begin(std::size_t most) {
    size = next = 0;
    capacity = most;
  }
  bool wants(std::uint64_t key) const { return size < capacity || key < keys[size - 1]; }

  void insert(std::uint64_t key) {
    const std::uint64_t* at = keys;
    for (std::size_t left = size; left > 0;) {
      const std::size_t half = (left + 1) / 2;
      at = at[half - 1] < key ? at + half : at;
      left -= half;
    }
    const auto place = static_cast<std::size_t>(at - keys);
    if (size < capacity) ++size;
    std::memmove(keys + place + 1, keys + place, (size - 1 - place) * sizeof(std::uint64_t));
    keys[place] = key;
    next = place < next ? place : next;
  }
};

struct HnswMemory {
  float* query = nullptr;               // [kHnswQueries], each padded as the index's vectors
  std::int16_t* query_codes = nullptr;  // padded as the index's codes
  std::uint64_t* seen = nullptr;        // a bit a node; all 0 between searches
  HnswPool pool[ops::kHnswQueries];
};

/// Null when memory is short.
HnswMemory* hnsw_memory(const ops::HnswIndex& index);

}  // namespace fulcrum::backends::simd
