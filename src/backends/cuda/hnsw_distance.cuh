// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Distances of hnsw_search on the device: lanes of a warp take every 32nd four elements of a vector, and their sums are
// added as a tree. Whoever compares a query with a vector, alone or with others, gets the same bits.
#pragma once

#include <cstdint>

#include "backends/cuda/topk_select.cuh"

namespace fulcrum::backends::cuda::hnsw {

using topk::kAll;
using topk::Key;
inline constexpr int kWarp = 32;

/// The vectors of an index in the device's memory.
struct Vectors {
  std::int64_t count, dimension;
  std::int64_t stride;  // floats from one to the next, a multiple of 16; zeros after `dimension`
  const float* rows;
  bool squared;  // sum of (q - c)^2, else `base` - q.c
  bool unit;     // queries are scaled to length 1
  float base;
};

/// Nearer results have larger keys, then those with lower ids; the last bit says that a node still has to be expanded.
inline constexpr Key kFresh = 1;
__device__ inline Key key_of(float distance, std::int32_t id) {
  const std::uint32_t bits = __float_as_uint(distance + 0.0F);
  const std::uint32_t order = (bits & 0x80000000u) ? ~bits : bits | 0x80000000u;
  return ~(static_cast<Key>(order) << 32 | static_cast<std::uint32_t>(id) << 1);
}
__device__ inline std::int32_t id_of(Key key) {
  return static_cast<std::int32_t>(static_cast<std::uint32_t>(~key) >> 1);
}
__device__ inline float distance_of(Key key) {
  const auto order = static_cast<std::uint32_t>(~key >> 32);
  return __uint_as_float((order & 0x80000000u) ? order & 0x7FFFFFFFu : ~order);
}

template <bool kSquared>
__device__ __forceinline__ float add(float4 q, float4 c, float sum) {
  if constexpr (kSquared) {
    const float x = q.x - c.x, y = q.y - c.y, z = q.z - c.z, w = q.w - c.w;
    return fmaf(w, w, fmaf(z, z, fmaf(y, y, fmaf(x, x, sum))));
  }
  return fmaf(q.w, c.w, fmaf(q.z, c.z, fmaf(q.y, c.y, fmaf(q.x, c.x, sum))));
}

/// The sum over the lanes of value v, of kCount (a power of two), in the lanes from v * kMask * 2 / kCount on, where
/// kMask is 16 for whole warps. Every sum is the tree of 16, 8, 4, 2, 1 over the lanes.
template <int kCount, int kMask = kWarp / 2>
__device__ __forceinline__ float sum_over_lanes(const float (&v)[kCount], int lane) {
  if constexpr (kMask == 0) {
    return v[0];
  } else if constexpr (kCount == 1) {
    const float next[1] = {v[0] + __shfl_xor_sync(kAll, v[0], kMask)};
    return sum_over_lanes<1, kMask / 2>(next, lane);
  } else {
    constexpr int kHalf = kCount / 2;
    const bool upper = (lane & kMask) != 0;
    float next[kHalf];
#pragma unroll
    for (int i = 0; i < kHalf; ++i) {
      const float sent = upper ? v[i] : v[i + kHalf], kept = upper ? v[i + kHalf] : v[i];
      next[i] = kept + __shfl_xor_sync(kAll, sent, kMask);
    }
    return sum_over_lanes<kHalf, kMask / 2>(next, lane);
  }
}

/// A query as the index compares it, padded, into shared memory by one warp.
__device__ inline void load_query(const Vectors& v, const float* query, float* to, int lane) {
  double inverse = 1;
  if (v.unit) {
    double squared = 0;
    for (std::int64_t i = lane; i < v.dimension; i += kWarp) {
      squared = fma(static_cast<double>(query[i]), static_cast<double>(query[i]), squared);
    }
#pragma unroll
    for (int mask = kWarp / 2; mask > 0; mask /= 2) squared = squared + __shfl_xor_sync(kAll, squared, mask);
    inverse = squared > 0 ? 1 / sqrt(squared) : 0;
  }
  for (std::int64_t i = lane; i < v.stride; i += kWarp) {
    const float value = i < v.dimension ? query[i] : 0.0F;
    to[i] = v.unit ? static_cast<float>(value * inverse) : value;
  }
}

}  // namespace fulcrum::backends::cuda::hnsw
