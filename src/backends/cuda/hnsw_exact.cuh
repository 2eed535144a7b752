// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// hnsw_search without the graph: every query against every vector. A warp compares kRows rows with kQueries queries at
// a time and queues what may be among a query's best; after some rows one warp a query sorts its queue into a list in
// registers. CTAs that share queries hand their lists to the last of them.
#pragma once

#include "backends/cuda/hnsw_distance.cuh"
#include "backends/cuda/streaming.cuh"

namespace fulcrum::backends::cuda::hnsw {

inline constexpr int kExactThreads = 256, kExactWarps = kExactThreads / kWarp;
inline constexpr int kMostExactResults = topk::kWarpMost;

struct ExactSearch {
  const float* queries;
  std::int64_t count;
  std::int32_t k;
  std::int32_t splits;  // CTAs that share a block of queries
  std::int32_t* ids;
  float* distances;
  Key* ranks;                  // [queries][k][splits]
  unsigned* tickets;           // by block of queries; zero between launches
  const unsigned char* marks;  // by query: 0: its results are there already; null: none are
};

template <bool kSquared, int kRows, int kQueries>
struct Comparison {
  const Vectors& v;
  const float4* queries;  // in shared memory, kQueries of them
  int lane;

  /// The sum of this lane's pair: row p / kQueries and query p % kQueries, where p = lane * pairs / 32.
  __device__ __forceinline__ float sum(const float4* (&row)[kRows]) const {
    float sums[kRows * kQueries] = {};
    const int quads = static_cast<int>(v.stride / 4);
#pragma unroll 1
    for (int i = lane; i < quads; i += kWarp) {
      float4 c[kRows];
#pragma unroll
      for (int r = 0; r < kRows; ++r) c[r] = __ldg(row[r] + i);
#pragma unroll
      for (int q = 0; q < kQueries; ++q) {
        const float4 mine = queries[q * quads + i];
#pragma unroll
        for (int r = 0; r < kRows; ++r) {
          sums[r * kQueries + q] = add<kSquared>(mine, c[r], sums[r * kQueries + q]);
        }
      }
    }
    return sum_over_lanes(sums, lane);
  }
};

/// What the warps of a CTA share: what may be among the best, and what is not (keys up to `bound`).
template <int kRows, int kQueries>
struct Queues {
  static constexpr int kTiles = 4;  // of a warp, between two looks at the queues
  Key keys[kQueries][kTiles * kExactWarps * kRows];
  int count[kQueries];
  Key bound[kQueries];

  __device__ void clear() {
    if (threadIdx.x < kQueries) count[threadIdx.x] = 0, bound[threadIdx.x] = 0;
  }
  __device__ void append(int query, Key key) {
    if (key > bound[query]) keys[query][atomicAdd(count + query, 1)] = key;
  }
  /// By one warp, between barriers.
  __device__ void drain(int query, topk::WarpList& list, int k, int lane) {
    for (int first = 0; first < count[query]; first += kWarp) {
      list.offer(first + lane < count[query] ? keys[query][first + lane] : 0, k, lane);
    }
    __syncwarp();
    if (lane == 0) count[query] = 0, bound[query] = list.worst;
  }
};

__device__ inline void write_results(const ExactSearch& search, std::int64_t query, Key mine, int lane) {
  if (lane >= search.k) return;
  search.ids[query * search.k + lane] = id_of(mine);
  search.distances[query * search.k + lane] = distance_of(mine);
}

template <bool kSquared, int kRows, int kQueries>
__global__ void __launch_bounds__(kExactThreads, 2)
    hnsw_exact(const __grid_constant__ Vectors v, const __grid_constant__ ExactSearch search) {
  static_assert(kQueries <= kExactWarps);
  using Shared = Queues<kRows, kQueries>;
  constexpr int kLanesEach = kWarp / (kRows * kQueries);
  constexpr int kManyLists = 64;  // of few queries: to be merged by all warps together
  extern __shared__ float4 queries[];
  __shared__ Shared queues;
  __shared__ Key merged[kExactWarps * kWarp];
  const int lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp;
  streaming::follow();
  const std::int64_t block = blockIdx.x / search.splits, first_query = block * kQueries;
  const int split = static_cast<int>(blockIdx.x % search.splits);
  if (search.marks) {  // the same for all CTAs of the block
    bool wanted = false;
    for (int q = 0; q < kQueries && first_query + q < search.count; ++q) {
      wanted |= search.marks[first_query + q] != 0;
    }
    if (!wanted) return;
  }
  // Past the end: the last one again, which nobody writes.
  for (int q = warp; q < kQueries; q += kExactWarps) {
    const std::int64_t number = min(first_query + q, search.count - 1);
    load_query(v, search.queries + number * v.dimension, reinterpret_cast<float*>(queries) + q * v.stride,
               lane);
  }
  queues.clear();
  __syncthreads();

  topk::WarpList list;  // of query `warp`
  const Comparison<kSquared, kRows, kQueries> comparison{v, queries, lane};
  const int pair = lane / kLanesEach;
  const std::int64_t stride = std::int64_t{search.splits} * kExactWarps * kRows;
  for (std::int64_t first = std::int64_t{split} * kExactWarps * kRows; first < v.count;
       first += Shared::kTiles * stride) {
#pragma unroll 1
    for (int t = 0; t < Shared::kTiles; ++t) {
      const std::int64_t base = first + t * stride + warp * kRows;
      if (base >= v.count) break;
      const float4* row[kRows];
#pragma unroll
      for (int r = 0; r < kRows; ++r) {
        row[r] = reinterpret_cast<const float4*>(v.rows + min(base + r, v.count - 1) * v.stride);
      }
      const float sum = comparison.sum(row);
      const std::int64_t id = base + pair / kQueries;
      if (lane % kLanesEach != 0 || id >= v.count) continue;
      queues.append(pair % kQueries, key_of(kSquared ? sum : v.base - sum, static_cast<std::int32_t>(id)));
    }
    __syncthreads();
    if (warp < kQueries) queues.drain(warp, list, search.k, lane);
    __syncthreads();
  }

  const bool mine = warp < kQueries && first_query + warp < search.count;
  const std::int64_t lists = search.splits;
  const auto ranks_of = [&](std::int64_t query) { return search.ranks + query * search.k * lists; };
  if (lists == 1) {
    if (mine) write_results(search, first_query + warp, list.mine, lane);
    return;
  }
  if (mine) topk::store_ranks(list.mine, search.k, lane, ranks_of(first_query + warp), lists, split);
  if (!topk::is_last_block(search.tickets + block, static_cast<unsigned>(search.splits))) return;
  if (kQueries >= kExactWarps / 2 || lists < kManyLists) {
    if (!mine) return;
    topk::WarpList all;
    topk::merge_ranks(all, ranks_of(first_query + warp), lists, 0, 1, search.k, lane);
    write_results(search, first_query + warp, all.mine, lane);
    return;
  }
  if constexpr (kQueries < kExactWarps / 2) {
    for (int q = 0; q < kQueries && first_query + q < search.count; ++q) {
      topk::WarpList all;
      topk::merge_ranks(all, ranks_of(first_query + q), lists, warp, kExactWarps, search.k, lane);
      topk::merge_block(all, merged, search.k, lane, warp, kExactWarps);
      if (warp == 0) write_results(search, first_query + q, all.mine, lane);
    }
  }
}

}  // namespace fulcrum::backends::cuda::hnsw
