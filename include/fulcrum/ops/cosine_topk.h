// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// How cosine_topk falls into pieces, and the order of its results as one integer: every kernel keeps the k largest
// keys, so all of them agree on equal scores and on NaN.
#pragma once

#include <fulcrum/ops.h>

#include <algorithm>
#include <array>
#include <bit>
#include <functional>
#include <span>

namespace fulcrum::ops {

inline constexpr std::int64_t kTopkMost = 1024;  // k
/// Of phase 0, piece b * row_chunks + c is the queries of block b against the rows of chunk c. Each chunk costs a list of k
/// keys a query, and finding the first of them takes longer than all later ones: where the rows are near, blocks are small
/// and many, and rows are cut only as far as that takes to occupy many threads. Rows that lie far away are read once a
/// block. Of phase 1, piece q is the best of what all chunks have found for query q.
inline constexpr std::int64_t kTopkQueries = 64;  // of a block, at most
inline constexpr std::int64_t kTopkRows = 64;     // rows of a chunk are a multiple of it
inline constexpr std::int64_t kTopkPieces = 64;

struct TopkSplit {
  std::int64_t query_blocks = 0, block_queries = 0, row_chunks = 0, chunk_rows = 0;
};
/// (Dims are Q, N, D, k.)
inline TopkSplit topk_split(const Args& args) {
  // Rows of 1 MiB stay in a core's own caches, of 16 in the last one that cores share; what several blocks read again is
  // there. Blocks by trial on two threads.
  constexpr std::int64_t kNearElements = 1 << 18, kHalfNearElements = 1 << 22;
  constexpr std::int64_t kNearQueries = 8, kHalfNearQueries = 16;
  const auto divide_up = [](std::int64_t value, std::int64_t by) { return value / by + (value % by != 0); };
  const std::int64_t queries = args.dim[0], rows = args.dim[1], d = std::max<std::int64_t>(1, args.dim[2]);
  if (queries == 0 || rows == 0) return {};
  const std::int64_t most = rows <= kNearElements / d       ? kNearQueries
                            : rows <= kHalfNearElements / d ? kHalfNearQueries
                                                            : kTopkQueries;
  const std::int64_t block = divide_up(queries, divide_up(queries, most));
  const std::int64_t query_blocks = divide_up(queries, block);
  const std::int64_t blocks = divide_up(rows, kTopkRows);
  const std::int64_t chunk_blocks = divide_up(blocks, divide_up(kTopkPieces, query_blocks));
  return TopkSplit{query_blocks, block, divide_up(blocks, chunk_blocks), chunk_blocks * kTopkRows};
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

/// Results in order from keys in any.
inline void topk_write(TopkKey* keys, TopkKey count, std::int32_t* ids, float* scores) {
  std::sort(keys, keys + count, std::greater<>());
  for (TopkKey i = 0; i < count; ++i) {
    ids[i] = topk_row(keys[i]);
    scores[i] = topk_score(keys[i]);
  }
}

/// The best k keys so far in memory of the caller, words(k) of them. `words[0]` counts keys and `words[1]` is one that
/// at least k of them reach, 0 while no such key is known; then come the keys in any order, with room for as many
/// again: only when that is full, those that are not among the best are dropped, all at once. A list with count 0 adds
/// nothing, so a run of chunks may share one list.
class TopkList {
 public:
  TopkList(TopkKey* words, std::int64_t k) : words_(words), k_(static_cast<TopkKey>(k)) {}
  /// Keys below `least` are not among the best.
  void clear(TopkKey least = 0) {
    words_[0] = 0;
    words_[1] = least;
  }
  bool full() const { return words_[1] != 0; }
  /// Keys below this one cannot enter any more.
  TopkKey worst() const { return words_[1]; }
  /// Scores up to this one cannot enter with a row after all others; below every score while there is room.
  float worst_score() const { return words_[1] >> 32 != 0 ? topk_score(words_[1]) : -2.0F; }
  void offer(TopkKey key) {
    TopkKey* const first = words_ + kHead;
    first[words_[0]] = key;
    words_[0] += key >= words_[1];  // without a branch, which nobody could foresee
    if (words_[0] == capacity(k_)) keep_best(k_ + k_ / 4);
  }
  /// For callers to whom a score costs more than dropping a key: at most an eighth more than the best k are kept.
  void tighten() {
    if (words_[0] > k_ + k_ / 8) keep_best(k_);
  }
  std::span<const TopkKey> keys() const { return {words_ + kHead, words_[0]}; }
  static constexpr std::int64_t words(std::int64_t k) {
    return static_cast<std::int64_t>(kHead + capacity(static_cast<TopkKey>(k)));
  }
  /// The results in order. Ends the list.
  void write(std::int32_t* ids, float* scores) {
    keep_best(k_);
    topk_write(words_ + kHead, words_[0], ids, scores);
    words_[0] = 0;
  }

 private:
  static constexpr TopkKey kHead = 2;
  static constexpr TopkKey capacity(TopkKey k) { return 2 * k + 6; }

  /// Drops keys that are not among the best k, until at most `most` are left: by pivots, as long as the k-th lies between
  /// `begin` and `end`. Swaps without a branch, for the same reason as above.
  void keep_best(TopkKey most) {
    TopkKey* const first = words_ + kHead;
    TopkKey begin = 0, end = words_[0];
    while (end > most) {
      const TopkKey a = first[begin], b = first[begin + (end - begin) / 2], c = first[end - 1];
      const TopkKey larger = std::max(a, b), smaller = std::min(a, b);
      const TopkKey pivot = end - begin < 3 ? std::max(larger, c) : std::max(smaller, std::min(larger, c));
      TopkKey reach = begin;  // the pivot
      for (TopkKey i = begin; i < end; ++i) {
        const TopkKey key = first[i];
        first[i] = first[reach];
        first[reach] = key;
        reach += key >= pivot;
      }
      if (reach < k_) {
        begin = reach;
      } else {
        end = reach;
        words_[1] = pivot;
      }
    }
    words_[0] = end;
  }
  TopkKey* words_;
  TopkKey k_;
};

/// Where piece (b, c) leaves the list of a query in the scratch memory. Those of a chunk lie together, in lines of their own:
/// threads that search different chunks would wait for each other's lists, which change all the time.
inline std::int64_t topk_chunk_words(std::int64_t queries, std::int64_t k) {
  constexpr std::int64_t kWords = 16;  // two lines, which are fetched together
  return (queries * TopkList::words(k) + kWords - 1) / kWords * kWords;
}
inline TopkKey* topk_list(const Args& args, void* scratch, std::int64_t query, std::int64_t chunk) {
  const std::int64_t k = args.dim[3];
  return static_cast<TopkKey*>(scratch) + chunk * topk_chunk_words(args.dim[0], k) +
         query * TopkList::words(k);
}

/// Phase 1 for queries [begin, end). (Dims are Q, N, D, k; pointers 3 and 4 are ids and scores.)
inline void topk_merge(const Args& args, std::int64_t begin, std::int64_t end, void* scratch) {
  const std::int64_t chunks = topk_split(args).row_chunks, k = args.dim[3];
  std::array<TopkKey, TopkList::words(kTopkMost)> words;
  for (std::int64_t query = begin; query < end; ++query) {
    const auto list = [&](std::int64_t chunk) { return TopkList(topk_list(args, scratch, query, chunk), k); };
    TopkKey least = 0;  // k keys of some list reach the largest of these
    for (std::int64_t c = 0; c < chunks; ++c) least = std::max(least, list(c).worst());
    TopkList best(words.data(), k);
    best.clear(least);
    for (std::int64_t c = 0; c < chunks; ++c) {
      for (const TopkKey key : list(c).keys()) best.offer(key);
    }
    best.write(static_cast<std::int32_t*>(args.ptr[3]) + query * k,
               static_cast<float*>(args.ptr[4]) + query * k);
  }
}

}  // namespace fulcrum::ops
