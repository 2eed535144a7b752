// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// The ways to find the best rows of each query. All of them return the k largest keys made of the scores of cosine.cuh,
// whose bits depend on a row and a query alone, so that they agree in every bit:
//   stream  scores every pair and keeps the best in registers (k <= 32) or shared memory,
//   tensor  finds candidates with tensor cores and a bound on their error, and scores those.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backends/cuda/runtime.h"

namespace fulcrum::backends::cuda::topk {

struct Search {
  const float* queries = nullptr;
  const float* rows = nullptr;
  const float* inverse = nullptr;  // 1 / |row|; null: 1, or computed
  std::int32_t* ids = nullptr;
  float* scores = nullptr;
  std::int64_t query_count = 0, row_count = 0, d = 0;
  int k = 0;
  bool known = false;    // the rows' lengths: by `inverse`, or 1
  bool aligned = false;  // rows and queries lie at multiples of 16 bytes
};

/// How a streamed search falls into CTAs: groups of queries times chunks of rows.
struct StreamShape {
  int queries = 1, rows = 1;  // of a warp at once
  std::int64_t groups = 0, chunks = 0;
  int threads = 0;
  int capacity = 0;        // keys a query in shared memory; 0: they live in registers
  bool is_short = false;   // every CTA has all rows
  bool is_spread = false;  // every CTA has as many as a warp has lanes

  std::size_t list_bytes(int k) const {
    return chunks > 1 ? static_cast<std::size_t>(groups * queries * chunks * k) * 8 : 0;
  }
  std::size_t ticket_bytes() const { return static_cast<std::size_t>(groups) * sizeof(unsigned); }
};
StreamShape stream_shape(const Search& search);

/// `lists` and `tickets` of the shape's sizes; tickets are zero between calls.
fulcrum_status enqueue_stream(const Search& search, const StreamShape& shape, void* lists, unsigned* tickets,
                              bool programmatic, void* stream, std::int64_t count);

/// How a search by tensor cores falls into CTAs: tiles of queries times chunks of tiles of rows.
struct TensorShape {
  int queries = 0;  // of a tile
  int terms = 1;    // of a score: 1 or, to carry all bits of f32, 3
  // By that of topk_packed.h, with copies of rows and queries in so many bytes each; 0: without.
  std::int64_t packed_pitch = 0;
  std::int64_t query_tiles = 0, chunks = 0;

  std::int64_t padded_queries() const { return query_tiles * queries; }
  std::size_t candidate_bytes() const;
  std::size_t count_bytes() const {
    return static_cast<std::size_t>(chunks * padded_queries()) * sizeof(int);
  }
  /// Of the copies, and of a number for each of them.
  std::size_t packed_bytes(const Search& search) const {
    const auto all = static_cast<std::size_t>(search.row_count + search.query_count);
    return packed_pitch == 0 ? 0 : all * (static_cast<std::size_t>(packed_pitch) + sizeof(float));
  }
  std::size_t bound_bytes() const;
};
inline constexpr int kTileRows = 128;
inline constexpr int kCandidates = 256;  // of a query in one chunk; a tile may add kTileRows
inline constexpr int kMostChunks = 512;
inline constexpr int kTops =
    16;  // groups of all rows whose best products CTAs tell each other, for a k up to this
inline constexpr int kTensorMostK = 32;
inline constexpr std::int64_t kTensorMostD = 1 << 16;  // the bound grows with it
TensorShape tensor_shape(const Search& search, int terms);
/// The same with copies of all operands.
TensorShape packed_shape(const Search& search, int terms);
/// Whether the device and the copies' kernel can, and whether that is faster.
bool packed_takes(const Search& search, int terms);
bool packed_pays(const Search& search, int terms);
bool tensor_takes(std::int64_t queries, std::int64_t rows, std::int64_t d, std::int64_t k);

/// A pass over the rows for every few queries is cheaper below these: products on tensor cores need a launch more.
constexpr std::int64_t kTensorQueries = 9, kTensorPairs = 100'000;
/// Rows so short that a warp which streams them has little to do at a time. A row that is not a multiple of 16 bytes
/// costs tensor cores more, but once for all queries.
constexpr std::int64_t kShortRow = 64, kShortRowPairs = 60'000, kUnevenRowPairs = 150'000;

/// Where they take it.
inline bool tensor_pays(const Search& s) {
  const std::int64_t pairs = s.query_count * s.row_count;
  if (s.query_count >= kTensorQueries) return pairs >= kTensorPairs;
  if (s.d > kShortRow) return false;
  return s.aligned ? pairs >= kShortRowPairs : s.query_count > 1 && pairs >= kUnevenRowPairs;
}

inline std::size_t TensorShape::bound_bytes() const {
  return static_cast<std::size_t>(padded_queries()) * (1 + kTops) * sizeof(unsigned);
}

/// `bounds` are zero between calls; tops lie behind them.
struct TensorMemory {
  void* candidates = nullptr;
  int* counts = nullptr;
  unsigned* bounds = nullptr;
  unsigned char* packed = nullptr;
};
fulcrum_status enqueue_tensor_search(const Search& search, const TensorShape& shape,
                                     const TensorMemory& memory, bool programmatic, void* stream,
                                     std::int64_t count);

inline std::size_t TensorShape::candidate_bytes() const {
  return static_cast<std::size_t>(chunks * padded_queries()) * kCandidates * 8;
}

}  // namespace fulcrum::backends::cuda::topk
