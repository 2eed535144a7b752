// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// hnsw_search without the graph: every query against every vector. A warp compares kRows rows with kQueries queries at
// a time and keeps the best of each query in registers; CTAs that share queries hand their lists to the last of them.
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
  Key* ranks;         // [queries][k][splits]
  unsigned* tickets;  // by block of queries; zero between launches
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

template <bool kSquared, int kRows, int kQueries>
__global__ void __launch_bounds__(kExactThreads, 2)
    hnsw_exact(const __grid_constant__ Vectors v, const __grid_constant__ ExactSearch search) {
  constexpr int kPairs = kRows * kQueries, kLanesEach = kWarp / kPairs;
  extern __shared__ float4 queries[];
  __shared__ Key merged[kExactWarps * kWarp];
  const int lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp;
  streaming::follow();
  const std::int64_t block = blockIdx.x / search.splits, first_query = block * kQueries;
  const int split = static_cast<int>(blockIdx.x % search.splits);
  for (int q = warp; q < kQueries;
       q += kExactWarps) {  // past the end: the last one again, which nobody writes
    const std::int64_t number = min(first_query + q, search.count - 1);
    load_query(v, search.queries + number * v.dimension, reinterpret_cast<float*>(queries) + q * v.stride,
               lane);
  }
  __syncthreads();

  topk::WarpList lists[kQueries];
  const Comparison<kSquared, kRows, kQueries> comparison{v, queries, lane};
  const int pair = lane / kLanesEach, my_query = pair % kQueries;
  Key my_worst = 0;
  const std::int64_t stride = std::int64_t{search.splits} * kExactWarps * kRows;
  for (std::int64_t base = (std::int64_t{split} * kExactWarps + warp) * kRows; base < v.count;
       base += stride) {
    const float4* row[kRows];
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      row[r] = reinterpret_cast<const float4*>(v.rows + min(base + r, v.count - 1) * v.stride);
    }
    const float sum = comparison.sum(row);
    const std::int64_t id = base + pair / kQueries;
    const bool there = lane % kLanesEach == 0 && id < v.count;
    const Key key = there ? key_of(kSquared ? sum : v.base - sum, static_cast<std::int32_t>(id)) : 0;
    if (!__any_sync(kAll, key > my_worst)) continue;
#pragma unroll
    for (int q = 0; q < kQueries; ++q) {
      lists[q].offer(my_query == q ? key : 0, search.k, lane);
      if (my_query == q) my_worst = lists[q].worst;
    }
  }

#pragma unroll
  for (int q = 0; q < kQueries; ++q) {
    topk::merge_block(lists[q], merged, search.k, lane, warp, kExactWarps);
    __syncthreads();
    if (warp != 0 || first_query + q >= search.count) continue;
    const std::int64_t at = (first_query + q) * search.k;
    if (search.splits > 1) {
      topk::store_ranks(lists[q].mine, search.k, lane, search.ranks + at * search.splits, search.splits,
                        split);
    } else if (lane < search.k) {
      search.ids[at + lane] = id_of(lists[q].mine);
      search.distances[at + lane] = distance_of(lists[q].mine);
    }
  }
  if (search.splits == 1) return;
  if (!topk::is_last_block(search.tickets + block, static_cast<unsigned>(search.splits))) return;
  for (int q = 0; q < kQueries && first_query + q < search.count; ++q) {
    const std::int64_t at = (first_query + q) * search.k;
    topk::WarpList all;
    topk::merge_ranks(all, search.ranks + at * search.splits, search.splits, warp, kExactWarps, search.k,
                      lane);
    topk::merge_block(all, merged, search.k, lane, warp, kExactWarps);
    __syncthreads();
    if (warp == 0 && lane < search.k) {
      search.ids[at + lane] = id_of(all.mine);
      search.distances[at + lane] = distance_of(all.mine);
    }
  }
}

}  // namespace fulcrum::backends::cuda::hnsw
