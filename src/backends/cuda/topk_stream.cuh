// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Rows streamed past a few queries: every warp keeps the best it has seen, CTAs merge the lists of their warps, and the
// last CTA of a group of queries those of all CTAs. Scores never leave the multiprocessor.
#pragma once

#include "backends/cuda/bulk.cuh"
#include "backends/cuda/cosine.cuh"
#include "backends/cuda/topk.h"
#include "backends/cuda/topk_select.cuh"

namespace fulcrum::backends::cuda::topk {

inline constexpr int kSpreadRows = 32;  // of a CTA

struct Stream {
  Search search;
  std::int64_t groups, chunks;
  Key* lists;
  unsigned* tickets;
  int capacity;
  std::int64_t kept_rows;  // that L2 keeps for the next call, of those that stream past one query
};

/// A warp's tiles of rows: one in every round, in which the warps of a CTA have neighbours. Of the last round, which is
/// not whole, each CTA has as many as any other, or one more. Rows are below 2^31, so a tile behind the last still fits.
template <int kRows>
struct Walk {
  unsigned tile, step, tiles;

  __device__ Walk(const Stream& s, unsigned chunk, unsigned warp, unsigned warps)
      : tile(chunk * warps + warp),
        step(static_cast<unsigned>(s.chunks) * warps),
        tiles(static_cast<unsigned>((s.search.row_count + kRows - 1) / kRows)) {
    if (tiles < step) tile = warp * static_cast<unsigned>(s.chunks) + chunk;
  }
  __device__ bool more() const { return tile < tiles; }
  __device__ void advance(const Stream& s, unsigned chunk, unsigned warp) {
    const unsigned whole = tiles - tiles % step;  // tiles of whole rounds
    const bool was_last = tile >= whole;
    tile += step;
    if (was_last) {
      tile = tiles;
    } else if (tile >= whole) {
      tile = whole + warp * static_cast<unsigned>(s.chunks) + chunk;
    }
  }
  __device__ std::int64_t wanted() const { return std::int64_t{tile} * kRows; }
};

/// The first row of a warp's first tile to L2 while the call before is still at work.
template <bool kAligned>
__device__ inline void fetch_first_row(const Search& s, std::int64_t row, int lane) {
  if (kAligned && lane == 0 && row < s.row_count && s.d <= 1 << 14)
    streaming::fetch_ahead(s.rows + row * s.d, static_cast<unsigned>(s.d) * 4);
}

/// The best keys of a warp for each of its queries. One query's live in registers, those of several in shared memory,
/// where a lane sees its own words only.
template <int kQueries>
struct WarpLists {
  Key* own;         // kQueries times 32
  WarpList single;  // of one query
  Key worst = 0;    // of query lane % kQueries

  __device__ __forceinline__ void clear(int lane) {
#pragma unroll
    for (int j = 0; j < kQueries; ++j) own[j * 32 + lane] = 0;
  }
  /// One key a lane, 0 for none; lane l's is of query l % kQueries.
  __device__ __forceinline__ void offer(Key key, int k, int lane) {
    unsigned better = __ballot_sync(kAll, key > worst);
    for (; better != 0; better &= better - 1) {
      const int source = __ffs(static_cast<int>(better)) - 1, j = source % kQueries;
      const Key next = __shfl_sync(kAll, key, source);
      WarpList list = single;
      if constexpr (kQueries > 1) list = WarpList{own[j * 32 + lane], __shfl_sync(kAll, worst, j)};
      if (next <= list.worst) continue;
      list.insert(next, k, lane);
      if constexpr (kQueries > 1) {
        own[j * 32 + lane] = list.mine;
      } else {
        single = list;
      }
      if (lane % kQueries == j) worst = list.worst;
    }
  }
  /// To shared memory, zeros behind the k-th.
  __device__ __forceinline__ void leave(int k, int lane) {
    if constexpr (kQueries == 1) own[lane] = single.mine;
#pragma unroll
    for (int j = 0; j < kQueries; ++j) {
      if (lane >= k) own[j * 32 + lane] = 0;
    }
  }
};

/// Sorted lists of 32 keys in shared memory, `lists` of each of `queries` queries: list i of query j begins at
/// 32 (i list_step + j query_step). Leaves the best of all lists of a query in its list 0. All threads call.
__device__ __forceinline__ void merge_shared(Key* shared, int lists, int list_step, int queries,
                                             int query_step, int lane, int warp, int warps) {
  for (int step = 1; step < lists; step *= 2) {
    const int pairs = (lists - step + 2 * step - 1) / (2 * step);
    __syncthreads();
    for (int task = warp; task < pairs * queries; task += warps) {
      Key* own = shared + 32 * (task / queries * 2 * step * list_step + task % queries * query_step);
      const Key other = own[32 * step * list_step + 31 - lane];
      own[lane] = sort_lanes<32>(larger(own[lane], other), lane);
    }
  }
  __syncthreads();
}

/// As merge_ranks(), with a few ranks under way at once: most lists are done within them.
__device__ inline void merge_first_ranks(WarpList& into, const Key* ranks, std::int64_t lists,
                                         std::int64_t first, std::int64_t step, int k, int lane) {
  constexpr int kRanks = 4;
  for (std::int64_t base = first * 32; base < lists; base += step * 32) {
    const std::int64_t list = base + lane;
    bool enters = true;
    for (int rank = 0; rank < k && enters; rank += kRanks) {
      Key keys[kRanks];
#pragma unroll
      for (int i = 0; i < kRanks; ++i) {
        keys[i] = list < lists && rank + i < k ? __ldcg(ranks + (rank + i) * lists + list) : 0;
      }
#pragma unroll
      for (int i = 0; i < kRanks; ++i) enters = enters && into.offer(keys[i], k, lane);
    }
  }
}

/// The lists of a group of queries, which all warps have left in `shared`, over all warps and CTAs to the results.
template <int kQueries>
__device__ __forceinline__ void finish_group(const Stream& s, Key* shared, std::int64_t group,
                                             std::int64_t chunk, std::int64_t query, int lane, int warp,
                                             int warps) {
  const int k = s.search.k;
  Key* ranks = s.lists + group * kQueries * k * s.chunks;
  merge_shared(shared, warps, kQueries, kQueries, 1, lane, warp, warps);
  for (int j = warp; j < kQueries; j += warps) {
    const WarpList best{shared[j * 32 + lane]};
    if (s.chunks > 1) {
      store_ranks(best.mine, k, lane, ranks + j * k * s.chunks, s.chunks, chunk);
    } else {
      write_lane(best.mine, k, lane, s.search.ids + (query + j) * k, s.search.scores + (query + j) * k);
    }
  }
  if (s.chunks == 1 || !is_last_block(s.tickets + group, static_cast<unsigned>(s.chunks))) return;
  // Several warps share a query where there are enough.
  const int sharing = warps > kQueries ? warps / kQueries : 1;
  for (int first = 0; first < kQueries; first += warps / sharing) {
    const int j = first + warp / sharing, part = warp % sharing;
    const bool has_query = j < kQueries && warp / sharing < warps / sharing;
    WarpList best;
    if (has_query) merge_first_ranks(best, ranks + j * k * s.chunks, s.chunks, part, sharing, k, lane);
    shared[warp * 32 + lane] = lane < k ? best.mine : 0;
    merge_shared(shared, sharing, 1, warps / sharing, sharing, lane, warp, warps);
    if (has_query && part == 0) {
      write_lane(shared[warp * 32 + lane], k, lane, s.search.ids + (query + j) * k,
                 s.search.scores + (query + j) * k);
    }
    __syncthreads();
  }
}

/// CTA number b has queries of group b % groups and rows of chunk b / groups. A group that would pass the end moves back
/// to the last whole one, whose results are then written twice, with the same bits; so does a tile of rows, but the
/// rows of the tile before are not offered again.
template <bool kAligned, int kRows, int kQueries, bool kRowSquares, int kThreads>
__global__ void __launch_bounds__(kThreads, kQueries == 1 && kRows > 1 ? 3 : 2) stream_topk(Stream s) {
  constexpr bool kOnce = kAligned && kQueries == 1 && kRows > 1;
  using Tile = cosine::Tile<kAligned, kRows, kQueries, kRowSquares, kOnce>;
  __shared__ Key shared[kThreads / 32 * kQueries * 32];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = kThreads / 32, k = s.search.k;
  const unsigned group = blockIdx.x % static_cast<unsigned>(s.groups),
                 chunk = blockIdx.x / static_cast<unsigned>(s.groups);
  const std::int64_t query = min(std::int64_t{group} * kQueries, s.search.query_count - kQueries);
  Walk<kRows> walk(s, chunk, warp, warps);
  fetch_first_row<kAligned>(s.search, walk.wanted(), lane);
  streaming::follow();
  const float* q = s.search.queries + query * s.search.d;
  float q_square = 0;
  if constexpr (!Tile::kQuerySquares)
    q_square = cosine::square_of_query<kAligned, kQueries>(q, s.search.d, lane);
  WarpLists<kQueries> lists{shared + warp * kQueries * 32};
  lists.clear(lane);
  const std::uint64_t keep = kOnce ? streaming::policy_of(false) : 0,
                      pass = kOnce ? streaming::policy_of(true) : 0;
  for (; walk.more(); walk.advance(s, chunk, warp)) {
    const std::int64_t wanted = walk.wanted(), row = min(wanted, s.search.row_count - kRows);
    Tile tile{q, s.search.rows + row * s.search.d, s.search.d, lane, row < s.kept_rows ? keep : pass};
    tile.multiply();
    const float score = tile.score(q_square, s.search.inverse ? s.search.inverse + row : nullptr);
    const std::int64_t mine = row + lane / kQueries;
    lists.offer(lane < Tile::kPairs && mine >= wanted ? key_of(score, mine) : 0, k, lane);
  }
  lists.leave(k, lane);
  finish_group<kQueries>(s, shared, group, chunk, query, lane, warp, warps);
}

/// Few rows: one CTA has all of them and its queries' keys in shared memory, sorted once they are all there.
template <bool kAligned, int kRows, int kQueries, bool kRowSquares, int kThreads>
__global__ void __launch_bounds__(kThreads, 1) short_topk(Stream s) {
  using Tile = cosine::Tile<kAligned, kRows, kQueries, kRowSquares>;
  extern __shared__ __align__(16) char memory[];
  __shared__ float squares[kQueries];
  auto* keys = reinterpret_cast<Key*>(memory);  // [query][capacity]
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32, k = s.search.k;
  const std::int64_t query =
      min(static_cast<std::int64_t>(blockIdx.x) * kQueries, s.search.query_count - kQueries);
  const int rows = static_cast<int>(s.search.row_count), lists = s.capacity / 32;
  streaming::follow();
  const float* q = s.search.queries + query * s.search.d;
  for (int i = threadIdx.x; i < kQueries * (s.capacity - rows); i += blockDim.x)
    keys[i % kQueries * s.capacity + rows + i / kQueries] = 0;
  if constexpr (!Tile::kQuerySquares) {
    for (int j = warp; j < kQueries; j += warps) {
      const float square = cosine::square_of_query<kAligned, 1>(q + j * s.search.d, s.search.d, lane);
      if (lane == 0) squares[j] = square;
    }
    __syncthreads();
  }
  const float q_square = Tile::kQuerySquares ? 0 : squares[lane % kQueries];
  for (int wanted = warp * kRows; wanted < rows; wanted += warps * kRows) {
    const int row = min(wanted, rows - kRows);
    Tile tile{q, s.search.rows + row * s.search.d, s.search.d, lane};
    tile.multiply();
    const float score = tile.score(q_square, s.search.inverse ? s.search.inverse + row : nullptr);
    const int mine = row + lane / kQueries;
    if (lane < Tile::kPairs && mine >= wanted)
      keys[lane % kQueries * s.capacity + mine] = key_of(score, mine);
  }
  __syncthreads();
  for (int list = warp; list < kQueries * lists; list += warps)
    keys[list * 32 + lane] = sort_lanes(keys[list * 32 + lane], lane);
  merge_shared(keys, lists, 1, kQueries, lists, lane, warp, warps);
  for (int j = warp; j < kQueries; j += warps) {
    const std::int64_t at = (query + j) * k;
    write_lane(keys[j * s.capacity + lane], k, lane, s.search.ids + at, s.search.scores + at);
  }
}

/// Too many rows for one CTA, few for the device: each CTA has 32 of them, whose keys it sorts once they are all there.
/// The last CTA of a group merges the others' lists, at most one a lane. Groups and tiles as in stream_topk().
template <int kRows, int kQueries, bool kRowSquares, int kThreads>
__global__ void __launch_bounds__(kThreads, 1) spread_topk(Stream s) {
  using Tile = cosine::Tile<true, kRows, kQueries, kRowSquares>;
  static_assert(kThreads / 32 * kRows == kSpreadRows && kThreads / 32 >= kQueries && Tile::kQuerySquares);
  __shared__ Key keys[kQueries][kSpreadRows];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, k = s.search.k;
  const unsigned group = blockIdx.x % static_cast<unsigned>(s.groups),
                 chunk = blockIdx.x / static_cast<unsigned>(s.groups);
  const std::int64_t query = min(std::int64_t{group} * kQueries, s.search.query_count - kQueries);
  const std::int64_t first = std::int64_t{chunk} * kSpreadRows, wanted = first + warp * kRows;
  fetch_first_row<true>(s.search, wanted, lane);
  if (warp < kQueries) keys[warp][lane] = 0;
  __syncthreads();
  streaming::follow();
  if (wanted < s.search.row_count) {
    const std::int64_t row = min(wanted, s.search.row_count - kRows), mine = row + lane / kQueries;
    Tile tile{s.search.queries + query * s.search.d, s.search.rows + row * s.search.d, s.search.d, lane};
    tile.multiply();
    const float score = tile.score(0, s.search.inverse ? s.search.inverse + row : nullptr);
    if (lane < Tile::kPairs && mine >= wanted) keys[lane % kQueries][mine - first] = key_of(score, mine);
  }
  __syncthreads();
  Key* ranks = s.lists + (std::int64_t{group} * kQueries + warp) * k * s.chunks;  // of the warp's query
  if (warp < kQueries) store_ranks(sort_lanes(keys[warp][lane], lane), k, lane, ranks, s.chunks, chunk);
  if (!is_last_block(s.tickets + group, static_cast<unsigned>(s.chunks)) || warp >= kQueries) return;
  WarpList best;
  merge_first_ranks(best, ranks, s.chunks, 0, 1, k, lane);
  const std::int64_t at = (query + warp) * k;
  write_lane(best.mine, k, lane, s.search.ids + at, s.search.scores + at);
}

/// One query's list to its results.
__device__ inline void write_block(const BlockList& list, std::int32_t* ids, float* scores) {
  for (int i = threadIdx.x; i < list.k; i += blockDim.x) {
    ids[i] = key_row(list.keys[i]);
    scores[i] = key_score(list.keys[i]);
  }
}

/// The lists of all CTAs in `ranks` into `list`, which is empty. A whole pass over the lists without a key that enters
/// ends it.
__device__ __forceinline__ void merge_lists(BlockList& list, const Key* ranks, std::int64_t lists) {
  const std::int64_t all = lists * list.k;
  const int round = min(list.capacity - list.k, 4 * static_cast<int>(blockDim.x));
  std::int64_t quiet = 0;
  for (std::int64_t base = 0; base < all && quiet < lists; base += round) {
    bool enters = false;
    for (int i = threadIdx.x; i < round && base + i < all; i += blockDim.x) {
      const Key key = __ldcg(ranks + base + i);
      enters |= key > list.worst;
      list.append(key);
    }
    quiet = __syncthreads_or(enters) ? 0 : quiet + round;
    list.make_room(round);
  }
  list.finish();
}

/// The same for lists that do not fit into registers: one row a warp at a time, the CTA's lists in shared memory.
template <bool kAligned, int kQueries, bool kRowSquares>
__global__ void __launch_bounds__(256, 2) stream_topk_large(Stream s) {
  extern __shared__ __align__(16) char memory[];
  __shared__ unsigned counts[kQueries];
  auto* keys = reinterpret_cast<Key*>(memory);
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32, k = s.search.k;
  const std::int64_t group = blockIdx.x % s.groups, chunk = blockIdx.x / s.groups;
  const std::int64_t query = min(group * kQueries, s.search.query_count - kQueries);
  const float* q = s.search.queries + query * s.search.d;
  streaming::follow();
  BlockList list[kQueries];
#pragma unroll
  for (int j = 0; j < kQueries; ++j) {
    list[j] = BlockList{keys + j * s.capacity, counts + j, s.capacity, k};
    list[j].clear();
  }
  __syncthreads();
  const int rounds = (s.capacity - k) / warps;
  int since = 0;
  for (std::int64_t base = chunk * warps; base < s.search.row_count; base += s.chunks * warps) {
    const std::int64_t row = base + warp;
    if (row < s.search.row_count) {
      cosine::Tile<kAligned, 1, kQueries, kRowSquares> tile{q, s.search.rows + row * s.search.d, s.search.d,
                                                            lane};
      tile.multiply();
      const float score = tile.score(0, s.search.inverse ? s.search.inverse + row : nullptr);
#pragma unroll
      for (int j = 0; j < kQueries; ++j) {
        if (lane == j) list[j].append(key_of(score, row));
      }
    }
    if (++since < rounds) continue;
    since = 0;
#pragma unroll
    for (int j = 0; j < kQueries; ++j) list[j].make_room(rounds * warps);
  }
  Key* ranks = s.lists + group * kQueries * k * s.chunks;
#pragma unroll
  for (int j = 0; j < kQueries; ++j) {
    list[j].finish();
    std::int32_t* ids = s.search.ids + (query + j) * k;
    float* scores = s.search.scores + (query + j) * k;
    if (s.chunks == 1) write_block(list[j], ids, scores);
    for (int i = threadIdx.x; s.chunks > 1 && i < k; i += blockDim.x)
      __stcg(ranks + (j * k + i) * s.chunks + chunk, list[j].keys[i]);
  }
  if (s.chunks == 1 || !is_last_block(s.tickets + group, static_cast<unsigned>(s.chunks))) return;
#pragma unroll
  for (int j = 0; j < kQueries; ++j) {
    list[j].clear();
    list[j].worst = 0;
    __syncthreads();
    merge_lists(list[j], ranks + j * k * s.chunks, s.chunks);
    write_block(list[j], s.search.ids + (query + j) * k, s.search.scores + (query + j) * k);
  }
}

}  // namespace fulcrum::backends::cuda::topk
