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

/// Where piece (b, c) leaves the list of a query in the scratch memory. Those of a chunk lie together, in lines of their own:
/// threads that search different chunks would wait for each other's lists, which change all the time.
inline std::int64_t topk_chunk_words(std::int64_t queries, std::int64_t k) {
  constexpr std::int64_t kWords = 16;  // two lines, which are fetched together
  return (queries * (k + 1) + kWords - 1) / kWords * kWords;
}
inline TopkKey* topk_list(const Args& args, void* scratch, std::int64_t query, std::int64_t chunk) {
  const std::int64_t k = args.dim[3];
  return static_cast<TopkKey*>(scratch) + chunk * topk_chunk_words(args.dim[0], k) + query * (k + 1);
}

/// Results in order from keys in any.
inline void topk_write(TopkKey* keys, TopkKey count, std::int32_t* ids, float* scores) {
  std::sort(keys, keys + count, std::greater<>());
  for (TopkKey i = 0; i < count; ++i) {
    ids[i] = topk_row(keys[i]);
    scores[i] = topk_score(keys[i]);
  }
}

/// The best k keys so far in memory of the caller: `words[0]` counts them, then come the keys as a heap whose first
/// is the worst. A list with count 0 adds nothing, so a run of chunks may share one list.
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
  std::span<const TopkKey> keys() const { return {words_ + 1, words_[0]}; }
  /// The results in order. Ends the heap.
  void write(std::int32_t* ids, float* scores) {
    topk_write(words_ + 1, words_[0], ids, scores);
    words_[0] = 0;
  }

 private:
  TopkKey* words_;
  TopkKey k_;
};

/// The best k keys of several lists.
class TopkBest {
 public:
  /// Keys below `least` are not among them.
  TopkBest(std::int64_t k, TopkKey least) : k_(static_cast<TopkKey>(k)), least_(least) {}
  void add(std::span<const TopkKey> keys) {
    for (const TopkKey key : keys) {
      if (kept_ == keys_.size()) keep_best();
      keys_[kept_] = key;
      kept_ += key >= least_;
    }
  }
  void write(std::int32_t* ids, float* scores) {
    if (kept_ > k_) keep_best();
    topk_write(keys_.data(), kept_, ids, scores);
  }

 private:
  void keep_best() {
    TopkKey* const last = keys_.data() + k_ - 1;
    std::nth_element(keys_.data(), last, keys_.data() + kept_, std::greater<>());
    kept_ = k_;
    least_ = *last;
  }
  TopkKey k_, least_, kept_ = 0;
  std::array<TopkKey, 2 * kTopkMost> keys_;
};

/// Phase 1 for queries [begin, end). (Dims are Q, N, D, k; pointers 3 and 4 are ids and scores.)
inline void topk_merge(const Args& args, std::int64_t begin, std::int64_t end, void* scratch) {
  const std::int64_t chunks = topk_split(args).row_chunks, k = args.dim[3];
  for (std::int64_t query = begin; query < end; ++query) {
    const auto list = [&](std::int64_t chunk) { return TopkList(topk_list(args, scratch, query, chunk), k); };
    TopkKey least = 0;  // a full list has k keys from its worst on
    for (std::int64_t c = 0; c < chunks; ++c) least = std::max(least, list(c).worst());
    TopkBest best(k, least);
    for (std::int64_t c = 0; c < chunks; ++c) best.add(list(c).keys());
    best.write(static_cast<std::int32_t*>(args.ptr[3]) + query * k,
               static_cast<float*>(args.ptr[4]) + query * k);
  }
}

}  // namespace fulcrum::ops
