// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// How cosine_topk falls into pieces, and the order of its results as one integer: every kernel keeps the k largest
// keys, so all of them agree on equal scores and on NaN.
#pragma once

#include <fulcrum/ops.h>

#include <algorithm>
#include <bit>
#include <functional>

namespace fulcrum::ops {

inline constexpr std::int64_t kTopkMost = 1024;  // k
/// Of phase 0, piece b * row_chunks + c is queries 64 b .. against the rows of chunk c. Many queries need few chunks of
/// rows to occupy many threads, and each chunk costs a list of k keys a query. Of phase 1, piece q is the best of what all
/// chunks have found for query q.
inline constexpr std::int64_t kTopkQueries = 64;
inline constexpr std::int64_t kTopkRows = 64;  // rows of a chunk are a multiple of it
inline constexpr std::int64_t kTopkPieces = 64;

struct TopkSplit {
  std::int64_t query_blocks = 0, row_chunks = 0, chunk_rows = 0;
};
inline TopkSplit topk_split(std::int64_t queries, std::int64_t rows) {
  const auto divide_up = [](std::int64_t value, std::int64_t by) { return value / by + (value % by != 0); };
  if (queries == 0 || rows == 0) return {};
  const std::int64_t query_blocks = divide_up(queries, kTopkQueries);
  const std::int64_t blocks = divide_up(rows, kTopkRows);
  const std::int64_t chunk_blocks = divide_up(blocks, divide_up(kTopkPieces, query_blocks));
  return TopkSplit{query_blocks, divide_up(blocks, chunk_blocks), chunk_blocks * kTopkRows};
}

/// A score and its row: the larger key is the better result. Scores descend, equal ones (0 and -0 too) by lower row,
/// NaN comes last.
using TopkKey = std::uint64_t;
inline TopkKey topk_key(float score, std::int64_t row) {
  const auto bits = std::bit_cast<std::uint32_t>(score + 0.0F);
  const std::uint32_t order = score != score ? 0 : bits & 0x80000000U ? ~bits : bits | 0x80000000U;
  return TopkKey{order} << 32 | static_cast<std::uint32_t>(~row);
}
inline std::int32_t topk_row(TopkKey key) {
  return static_cast<std::int32_t>(~static_cast<std::uint32_t>(key));
}
inline float topk_score(TopkKey key) {
  const auto order = static_cast<std::uint32_t>(key >> 32);
  if (order == 0) return std::bit_cast<float>(0x7FC00000U);
  return std::bit_cast<float>(order & 0x80000000U ? order & 0x7FFFFFFFU : ~order);
}

/// The best k keys so far in memory of the caller: `words[0]` counts them, then come the keys as a heap whose first
/// is the worst. Piece (b, c) leaves that of query q at word (q * row_chunks + c) * (k + 1) of the scratch memory;
/// a list with count 0 adds nothing, so a run of chunks may share one list.
class TopkList {
 public:
  TopkList(TopkKey* words, std::int64_t k) : words_(words), k_(static_cast<TopkKey>(k)) {}
  void clear() { words_[0] = 0; }
  bool full() const { return words_[0] == k_; }
  /// Keys up to this one cannot enter any more.
  TopkKey worst() const { return full() ? words_[1] : 0; }
  /// Scores up to this one cannot enter with a row after all others; below every score while there is room.
  float worst_score() const { return full() && words_[1] >> 32 != 0 ? topk_score(words_[1]) : -2.0F; }
  void offer(TopkKey key) {
    TopkKey* first = words_ + 1;
    if (full()) {
      if (key <= words_[1]) return;
      std::pop_heap(first, first + k_, std::greater<>());
      first[k_ - 1] = key;
      std::push_heap(first, first + k_, std::greater<>());
    } else {
      first[words_[0]++] = key;
      std::push_heap(first, first + words_[0], std::greater<>());
    }
  }
  /// The best of this list and of those that follow it in memory, `lists` in all, which are used up. Ends the heap.
  void merge(std::int64_t lists) {
    const TopkKey pitch = k_ + 1;
    const auto count = static_cast<TopkKey>(lists);
    TopkKey least = 0;  // a full list has k keys from its worst on
    for (TopkKey l = 0; l < count; ++l)
      least = std::max(least, TopkList(words_ + l * pitch, static_cast<std::int64_t>(k_)).worst());
    TopkKey* keys = words_ + 1;
    TopkKey kept = 0;
    for (TopkKey l = 0; l < count; ++l) {
      const TopkKey* own = words_ + l * pitch;
      const TopkKey held = own[0];  // in front of what the list itself keeps
      for (TopkKey i = 1; i <= held; ++i) {
        keys[kept] = own[i];
        kept += own[i] >= least;
      }
    }
    if (kept > k_) std::nth_element(keys, keys + k_, keys + kept, std::greater<>());
    words_[0] = std::min(kept, k_);
  }
  /// The results in order. Ends the heap.
  void write(std::int32_t* ids, float* scores) {
    std::sort(words_ + 1, words_ + 1 + words_[0], std::greater<>());
    for (TopkKey i = 0; i < words_[0]; ++i) {
      ids[i] = topk_row(words_[1 + i]);
      scores[i] = topk_score(words_[1 + i]);
    }
    words_[0] = 0;
  }

 private:
  TopkKey* words_;
  TopkKey k_;
};

/// Phase 1 for queries [begin, end). (Dims are Q, N, D, k; pointers 3 and 4 are ids and scores.)
inline void topk_merge(const Args& args, std::int64_t begin, std::int64_t end, void* scratch) {
  const std::int64_t chunks = topk_split(args.dim[0], args.dim[1]).row_chunks, k = args.dim[3];
  for (std::int64_t query = begin; query < end; ++query) {
    TopkList best(static_cast<TopkKey*>(scratch) + query * chunks * (k + 1), k);
    best.merge(chunks);
    best.write(static_cast<std::int32_t*>(args.ptr[3]) + query * k,
               static_cast<float*>(args.ptr[4]) + query * k);
  }
}

}  // namespace fulcrum::ops
