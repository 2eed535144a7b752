// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// The arithmetic of softmax and log_softmax, the same whatever kernel runs it, so that a row's bits depend on the row
// alone. A unit of 256 elements belongs to one warp and becomes a pair (max, sum of exp(x - max)); 32 units are merged
// to a chunk, chunks to the row, always by the same tree. Absent elements are -Inf, which adds an exact 0 to any sum,
// so that a tree over fewer lanes is the same tree.
#pragma once

#include <cstdint>

#include "backends/cuda/streaming.cuh"

namespace fulcrum::backends::cuda::rows {

inline constexpr int kWarp = 32;
inline constexpr int kUnit = 256;                      // elements
inline constexpr std::int64_t kChunk = kWarp * kUnit;  // elements
inline constexpr int kMostThreads = 1024;              // of a CTA, and the width of the tree over chunks

/// Of a unit, a chunk or a row. Nothing but -Inf: {-Inf, 0}. With a NaN or +Inf the sum is NaN.
struct alignas(8) Pair {
  float max, sum;
};

__device__ inline Pair nothing() { return Pair{-INFINITY, 0}; }
/// What is subtracted before exp: -Inf - -Inf would be NaN where 0 is meant.
__device__ inline float shift_of(float max) { return max == -INFINITY ? 0 : max; }

/// Ascending distances: with the upper lanes empty the result is that of the lower ones.
template <int kLanes = kWarp>
__device__ inline float max_over_lanes(float value) {
#pragma unroll
  for (int distance = 1; distance < kLanes; distance *= 2) {
    value = fmaxf(value, __shfl_xor_sync(0xFFFFFFFFu, value, distance));
  }
  return value;
}
template <int kLanes = kWarp>
__device__ inline float sum_over_lanes(float value) {
#pragma unroll
  for (int distance = 1; distance < kLanes; distance *= 2) {
    value = value + __shfl_xor_sync(0xFFFFFFFFu, value, distance);
  }
  return value;
}

/// A pair's part of the sum relative to another maximum.
__device__ inline float rescaled(Pair pair, float shift) { return pair.sum * expf(pair.max - shift); }

/// One pair a lane to one pair.
__device__ inline Pair merge_lanes(Pair pair) {
  const float max = max_over_lanes(pair.max);
  return Pair{max, sum_over_lanes(rescaled(pair, shift_of(max)))};
}

/// The tree of merge_lanes() for pairs that every lane holds.
template <int kPairs>
__device__ inline Pair merge_held(const Pair (&pairs)[kPairs]) {
  static_assert(kPairs == 1 || kPairs == 2 || kPairs == 4);
  if constexpr (kPairs == 1) {
    return pairs[0];
  } else {
    float max = pairs[0].max;
#pragma unroll
    for (int i = 1; i < kPairs; ++i) max = fmaxf(max, pairs[i].max);
    const float shift = shift_of(max);
    float sum = rescaled(pairs[0], shift) + rescaled(pairs[1], shift);
    if constexpr (kPairs == 4) sum = sum + (rescaled(pairs[2], shift) + rescaled(pairs[3], shift));
    return Pair{max, sum};
  }
}

/// How a load or a store treats the caches: data that is used once leaves them first.
enum class Reuse { once, again };

/// Four elements of which `left` exist. kAligned: whole groups of four lie at multiples of 16 bytes.
template <bool kAligned, Reuse kReuse>
__device__ inline void load_four(const float* from, int left, float* to) {
  if (kAligned && left >= 4) {
    const auto* vector = reinterpret_cast<const float4*>(from);
    const float4 four = kReuse == Reuse::once ? __ldcs(vector) : __ldg(vector);
    to[0] = four.x, to[1] = four.y, to[2] = four.z, to[3] = four.w;
  } else {
#pragma unroll
    for (int i = 0; i < 4; ++i) to[i] = i < left ? __ldg(from + i) : -INFINITY;
  }
}

template <bool kAligned>
__device__ inline void store_four(float* to, int left, const float* from) {
  if (kAligned && left >= 4) {
    __stcs(reinterpret_cast<float4*>(to), make_float4(from[0], from[1], from[2], from[3]));
  } else {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      if (i < left) to[i] = from[i];
    }
  }
}

/// A lane's eight elements of a unit: two groups of four, half a unit apart. `left`: elements of the row from the
/// lane's first on; none when it is negative.
template <bool kAligned, Reuse kReuse>
__device__ inline void load_unit(const float* from, int left, float (&v)[8]) {
  load_four<kAligned, kReuse>(from, left, v);
  load_four<kAligned, kReuse>(from + kUnit / 2, left - kUnit / 2, v + 4);
}
template <bool kAligned>
__device__ inline void store_unit(float* to, int left, const float (&v)[8]) {
  store_four<kAligned>(to, left, v);
  store_four<kAligned>(to + kUnit / 2, left - kUnit / 2, v + 4);
}
/// `left` of a row of any length, from the element `at` on.
__device__ inline int left_of(std::int64_t n, std::int64_t at) {
  return static_cast<int>(n - at < kUnit ? (n < at ? 0 : n - at) : kUnit);
}

/// The maximum of a unit, in every lane, and the exponentials of its elements relative to it.
template <int kLanes = kWarp, int kCount>
__device__ inline float exponentials(const float (&v)[kCount], float (&e)[kCount]) {
  static_assert(kCount == 4 || kCount == 8);
  float max = fmaxf(fmaxf(v[0], v[1]), fmaxf(v[2], v[3]));
  if constexpr (kCount == 8) max = fmaxf(max, fmaxf(fmaxf(v[4], v[5]), fmaxf(v[6], v[7])));
  max = max_over_lanes<kLanes>(max);
  const float shift = shift_of(max);
#pragma unroll
  for (int i = 0; i < kCount; ++i) e[i] = expf(v[i] - shift);
  return max;
}

/// A unit's pair, in every lane. softmax needs the exponentials again: they take the elements' place.
template <bool kLog, int kLanes = kWarp, int kCount>
__device__ inline Pair summarize(float (&v)[kCount]) {
  float e[kCount];
  const float max = exponentials<kLanes>(v, e);
  float sum = (e[0] + e[1]) + (e[2] + e[3]);
  if constexpr (kCount == 8) sum = sum + ((e[4] + e[5]) + (e[6] + e[7]));
  if constexpr (!kLog) {
#pragma unroll
    for (int i = 0; i < kCount; ++i) v[i] = e[i];
  }
  return Pair{max, sum_over_lanes<kLanes>(sum)};
}

/// What the outputs of a row share: its maximum, and 1 / sum or ln sum. NaN for a row of -Inf alone comes from
/// -Inf - -Inf below.
struct Finish {
  float max, last;
};
template <bool kLog>
__device__ inline Finish finish_of(Pair row) {
  return Finish{row.max, kLog ? logf(row.sum) : __frcp_rn(row.sum)};
}

/// What summarize() left of a unit becomes outputs.
template <bool kLog, int kCount>
__device__ inline void finish(float (&v)[kCount], float unit_max, Finish row) {
  if constexpr (kLog) {
#pragma unroll
    for (int i = 0; i < kCount; ++i) v[i] = (v[i] - row.max) - row.last;
  } else {
    const float factor = expf(unit_max - row.max) * row.last;
#pragma unroll
    for (int i = 0; i < kCount; ++i) v[i] = v[i] * factor;
  }
}

}  // namespace fulcrum::backends::cuda::rows
