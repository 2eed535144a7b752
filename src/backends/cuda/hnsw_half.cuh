// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Kernels of hnsw_half.h. For a vector c with copy h the triangle inequality bounds what rounding hides: |q - c| is at
// least |q - h| - |c - h|, and q.c differs from q.h by at most |q| |c - h|.
#pragma once

#include <cuda_fp16.h>

#include "backends/cuda/hnsw_half.h"

namespace fulcrum::backends::cuda::hnsw {

/// One warp a row. Largest values of non-negative floats are those of their bits.
__global__ void make_halves(const Vectors v, __half* rows, std::uint32_t* extremes) {
  const int lane = threadIdx.x % kWarp;
  const std::int64_t warps = std::int64_t{gridDim.x} * (blockDim.x / kWarp);
  float most_error = 0.0F, most_square = 0.0F;
  for (std::int64_t row = (std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x) / kWarp; row < v.count;
       row += warps) {
    float error = 0.0F, square = 0.0F;
    for (std::int64_t i = lane; i < v.stride; i += kWarp) {
      const float value = v.rows[row * v.stride + i];
      const __half copy = __float2half_rn(value);
      const float lost = value - __half2float(copy);
      rows[row * v.stride + i] = copy;
      error = fmaf(lost, lost, error);
      square = fmaf(value, value, square);
    }
    const float sums[2] = {error, square};
    const float sum = sum_over_lanes(sums, lane);
    most_error = fmaxf(most_error, __shfl_sync(kAll, sum, 0));
    most_square = fmaxf(most_square, __shfl_sync(kAll, sum, kWarp / 2));
  }
  if (lane != 0) return;
  atomicMax(extremes, __float_as_uint(sqrtf(most_error)));
  atomicMax(extremes + 1, __float_as_uint(sqrtf(most_square)));
}

/// kRows rows of each group of kGroup lanes against kQueries queries.
template <bool kSquared, int kRows, int kQueries, int kGroup>
struct HalfComparison {
  static constexpr int kGroups = kWarp / kGroup;
  const Vectors& v;
  const float4* queries;  // in shared memory
  int lane;

  /// The sum of this lane's pair: row p / kQueries of its group and query p % kQueries, p = lane % kGroup * pairs /
  /// kGroup.
  __device__ __forceinline__ float sum(const uint4* (&row)[kRows]) const {
    float sums[kRows * kQueries] = {};
    const int pieces = static_cast<int>(v.stride / 8);
#pragma unroll 1
    for (int i = lane % kGroup; i < pieces; i += kGroup) {
      uint4 packed[kRows];
#pragma unroll
      for (int r = 0; r < kRows; ++r) packed[r] = __ldg(row[r] + i);
#pragma unroll
      for (int q = 0; q < kQueries; ++q) {
        const float4 low = queries[(q * pieces + i) * 2], high = queries[(q * pieces + i) * 2 + 1];
#pragma unroll
        for (int r = 0; r < kRows; ++r) {
          float& sum = sums[r * kQueries + q];
          sum = add<kSquared>(high, wide(packed[r].z, packed[r].w),
                              add<kSquared>(low, wide(packed[r].x, packed[r].y), sum));
        }
      }
    }
    return sum_over_lanes<kRows * kQueries, kGroup / 2>(sums, lane);
  }

 private:
  static __device__ __forceinline__ float4 wide(std::uint32_t a, std::uint32_t b) {
    const float2 x = __half22float2(*reinterpret_cast<const __half2*>(&a));
    const float2 y = __half22float2(*reinterpret_cast<const __half2*>(&b));
    return make_float4(x.x, x.y, y.x, y.y);
  }
};

/// Keys in full of four candidates of a warp: in lanes 0, 8, 16 and 24; 0 where there is none.
template <bool kSquared>
__device__ inline Key key_in_full(const Vectors& v, const float4* query, const Key* candidates, int lane) {
  const float4* row[4];
  float sums[4] = {};
#pragma unroll
  for (int r = 0; r < 4; ++r) {
    const std::int64_t id = candidates[r] == 0 ? 0 : id_of(candidates[r]);
    row[r] = reinterpret_cast<const float4*>(v.rows + id * v.stride);
  }
#pragma unroll 1
  for (int i = lane; i < static_cast<int>(v.stride / 4); i += kWarp) {
    const float4 mine = query[i];
#pragma unroll
    for (int r = 0; r < 4; ++r) sums[r] = add<kSquared>(mine, __ldg(row[r] + i), sums[r]);
  }
  const float sum = sum_over_lanes(sums, lane);
  const Key candidate = candidates[lane / 8];
  return candidate == 0 ? 0 : key_of(kSquared ? sum : v.base - sum, id_of(candidate));
}

/// Whether no vector outside of the candidates, which are all at `bound` or more by their copies, can be as near as
/// `distance`.
__device__ inline bool is_certain(const Vectors& v, const Halves& halves, float query_length, float distance,
                                  float bound) {
  constexpr float kRoundoff = 0x1p-23F;
  const float error = __uint_as_float(halves.extremes[0]);
  if (v.squared) {
    const float loss = (static_cast<float>(v.dimension) + 16.0F) * kRoundoff;
    return sqrtf(distance) * (1.0F + loss) + error * (1.0F + loss) < sqrtf(bound) * (1.0F - loss);
  }
  const float longest = __uint_as_float(halves.extremes[1]);
  const float loss = (static_cast<float>(v.dimension) / 8.0F + 64.0F) * kRoundoff * query_length * longest;
  return distance + 1.0001F * query_length * error + loss + 8.0F * kRoundoff * (1.0F + fabsf(bound)) < bound;
}

template <bool kSquared, int kRows, int kQueries, int kGroup>
__global__ void __launch_bounds__(kExactThreads, 2)
    hnsw_half(const __grid_constant__ Vectors v, const __grid_constant__ Halves halves,
              const __grid_constant__ HalfSearch search) {
  constexpr int kGroups = kWarp / kGroup, kTileRows = kRows * kGroups;
  constexpr int kLanesEach = kGroup / (kRows * kQueries);
  using Shared = Queues<kTileRows, kQueries>;
  extern __shared__ float4 queries[];
  __shared__ Shared queues;
  __shared__ Key merged[kExactWarps * kWarp];
  __shared__ Key full[kHalfCandidates];
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
  queues.clear();
  __syncthreads();

  topk::WarpList list;  // of query `warp`
  const HalfComparison<kSquared, kRows, kQueries, kGroup> comparison{v, queries, lane};
  const int pair = lane % kGroup / kLanesEach;
  const std::int64_t stride = std::int64_t{search.splits} * kExactWarps * kTileRows;
  for (std::int64_t first = std::int64_t{split} * kExactWarps * kTileRows; first < v.count;
       first += Shared::kTiles * stride) {
#pragma unroll 1
    for (int t = 0; t < Shared::kTiles; ++t) {
      const std::int64_t base = first + t * stride + warp * kTileRows;
      if (base >= v.count) break;
      const uint4* row[kRows];
#pragma unroll
      for (int r = 0; r < kRows; ++r) {
        const std::int64_t id = min(base + r * kGroups + lane / kGroup, v.count - 1);
        row[r] = reinterpret_cast<const uint4*>(static_cast<const __half*>(halves.rows) + id * v.stride);
      }
      const float sum = comparison.sum(row);
      const std::int64_t id = base + pair / kQueries * kGroups + lane / kGroup;
      if (lane % kLanesEach != 0 || id >= v.count) continue;
      queues.append(pair % kQueries, key_of(kSquared ? sum : v.base - sum, static_cast<std::int32_t>(id)));
    }
    __syncthreads();
    if (warp < kQueries) queues.drain(warp, list, kHalfCandidates, lane);
    __syncthreads();
  }

  const std::int64_t lists = search.splits;
  const auto ranks_of = [&](std::int64_t query) { return search.ranks + query * kHalfCandidates * lists; };
  if (warp < kQueries && first_query + warp < search.count) {
    topk::store_ranks(list.mine, kHalfCandidates, lane, ranks_of(first_query + warp), lists, split);
  }
  if (!topk::is_last_block(search.tickets + block, static_cast<unsigned>(search.splits))) return;
  for (int q = 0; q < kQueries && first_query + q < search.count; ++q) {
    const float4* query = queries + q * (v.stride / 4);
    topk::WarpList all;
    topk::merge_ranks(all, ranks_of(first_query + q), lists, warp, kExactWarps, kHalfCandidates, lane);
    topk::merge_block(all, merged, kHalfCandidates, lane, warp, kExactWarps);  // leaves them in `merged` too
    const Key key = key_in_full<kSquared>(v, query, merged + 4 * warp, lane);
    if (lane % 8 == 0) full[4 * warp + lane / 8] = key;
    __syncthreads();
    if (warp != 0) continue;
    const Key sorted = topk::sort_lanes(full[lane], lane);
    const Key last = __shfl_sync(kAll, sorted, search.k - 1), bound = merged[kHalfCandidates - 1];
    float length[1] = {};
    for (int i = lane; i < static_cast<int>(v.stride / 4); i += kWarp)
      length[0] = add<false>(query[i], query[i], length[0]);
    const float square = sum_over_lanes(length, lane);
    if (lane < search.k) {
      search.ids[(first_query + q) * search.k + lane] = id_of(sorted);
      search.distances[(first_query + q) * search.k + lane] = distance_of(sorted);
    }
    if (lane == 0) {
      const bool certain =
          bound == 0 || is_certain(v, halves, sqrtf(square), distance_of(last), distance_of(bound));
      search.marks[first_query + q] = certain ? 0 : 1;
    }
  }
}

}  // namespace fulcrum::backends::cuda::hnsw
