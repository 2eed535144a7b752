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

/// 2^x within 2 units in the last place, and 0 for results below 2^-126; exactly 1 for 0.
__device__ inline float power_of_two(float x) {
  float power;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(x));
  return power;
}
inline constexpr float kLog2E = 1.44269504F;
/// exp(x) for x <= 0, in three instructions with the subtraction before it where expf takes nine: the argument is off
/// by |x| 2^-24, which is inside what softmax allows.
__device__ inline float exponential(float x) { return power_of_two(x * kLog2E); }
/// Twice that: half of a result that is just below 2^-126 is 0, but the result is not.
__device__ inline float twice_exponential(float x) { return power_of_two(__fmaf_rn(x, kLog2E, 1)); }

/// ln(x) for x >= 1, off by 2^-22 of it, below 2 of 1: less than half of what log_softmax allows. All outputs of a row wait
/// for it, and logf is a long chain.
__device__ inline float logarithm(float x) {
  constexpr float kLn2 = 0.693147181F;
  float power;
  asm("lg2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(x));
  return power * kLn2;
}

/// Of several values at once, so that one's exchanges hide the latency of another's. Ascending distances: with the
/// upper lanes empty the result is that of the lower ones.
template <int kLanes = kWarp, int kValues>
__device__ inline void max_over_lanes(float (&values)[kValues]) {
#pragma unroll
  for (int distance = 1; distance < kLanes; distance *= 2) {
#pragma unroll
    for (int i = 0; i < kValues; ++i)
      values[i] = fmaxf(values[i], __shfl_xor_sync(0xFFFFFFFFu, values[i], distance));
  }
}
template <int kLanes = kWarp, int kValues>
__device__ inline void sum_over_lanes(float (&values)[kValues]) {
#pragma unroll
  for (int distance = 1; distance < kLanes; distance *= 2) {
#pragma unroll
    for (int i = 0; i < kValues; ++i)
      values[i] = values[i] + __shfl_xor_sync(0xFFFFFFFFu, values[i], distance);
  }
}
__device__ inline float max_over_lanes(float value) {
  float values[1] = {value};
  max_over_lanes(values);
  return values[0];
}
__device__ inline float sum_over_lanes(float value) {
  float values[1] = {value};
  sum_over_lanes(values);
  return values[0];
}

/// A pair's part of the sum relative to another maximum.
__device__ inline float rescaled(Pair pair, float shift) { return pair.sum * exponential(pair.max - shift); }

/// One pair a lane to one pair.
__device__ inline Pair merge_lanes(Pair pair) {
  const float max = max_over_lanes(pair.max);
  return Pair{max, sum_over_lanes(rescaled(pair, shift_of(max)))};
}

/// The tree of merge_lanes() for pairs that every lane holds.
template <int kPairs>
__device__ inline Pair merge_held(const Pair* pairs) {
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

/// Four elements of which `left` exist. Not by the read-only path: a kernel may be up before the one that writes its
/// input has finished. kAligned: whole groups of four lie at multiples of 16 bytes.
template <bool kAligned, Reuse kReuse>
__device__ inline void load_four(const float* from, int left, float* to) {
  if (kAligned && left >= 4) {
    const auto* vector = reinterpret_cast<const float4*>(from);
    const float4 four = kReuse == Reuse::once ? __ldcs(vector) : *vector;
    to[0] = four.x, to[1] = four.y, to[2] = four.z, to[3] = four.w;
  } else {
#pragma unroll
    for (int i = 0; i < 4; ++i) to[i] = i < left ? from[i] : -INFINITY;
  }
}

template <bool kAligned, Reuse kReuse = Reuse::once>
__device__ inline void store_four(float* to, int left, const float* from) {
  if (kAligned && left >= 4) {
    constexpr auto kCache = kReuse == Reuse::once ? streaming::Cache::once : streaming::Cache::kept;
    streaming::store<kCache>(reinterpret_cast<float4*>(to), make_float4(from[0], from[1], from[2], from[3]));
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
template <bool kAligned, Reuse kReuse = Reuse::once>
__device__ inline void store_unit(float* to, int left, const float (&v)[8]) {
  store_four<kAligned, kReuse>(to, left, v);
  store_four<kAligned, kReuse>(to + kUnit / 2, left - kUnit / 2, v + 4);
}
/// `left` of a row of any length, from the element `at` on.
__device__ inline int left_of(std::int64_t n, std::int64_t at) {
  return static_cast<int>(n - at < kUnit ? (n < at ? 0 : n - at) : kUnit);
}

/// The maxima of units, in every lane; each unit's elements become twice their exponentials relative to it.
template <int kLanes, int kUnits, int kCount>
__device__ inline void exponentials(float (&v)[kUnits][kCount], float (&max)[kUnits]) {
  static_assert(kCount == 4 || kCount == 8);
#pragma unroll
  for (int u = 0; u < kUnits; ++u) {
    max[u] = fmaxf(fmaxf(v[u][0], v[u][1]), fmaxf(v[u][2], v[u][3]));
    if constexpr (kCount == 8)
      max[u] = fmaxf(max[u], fmaxf(fmaxf(v[u][4], v[u][5]), fmaxf(v[u][6], v[u][7])));
  }
  max_over_lanes<kLanes>(max);
#pragma unroll
  for (int u = 0; u < kUnits; ++u) {
    const float shift = shift_of(max[u]);
#pragma unroll
    for (int i = 0; i < kCount; ++i) v[u][i] = twice_exponential(v[u][i] - shift);
  }
}

/// The pairs of units, in every lane. softmax needs the doubled exponentials again: they take the elements' place.
template <bool kLog, int kLanes = kWarp, int kUnits, int kCount>
__device__ inline void summarize(float (&v)[kUnits][kCount], Pair (&pairs)[kUnits]) {
  float e[kUnits][kCount], max[kUnits], sum[kUnits];
#pragma unroll
  for (int u = 0; u < kUnits; ++u) {
#pragma unroll
    for (int i = 0; i < kCount; ++i) e[u][i] = v[u][i];
  }
  exponentials<kLanes>(e, max);
#pragma unroll
  for (int u = 0; u < kUnits; ++u) {
    sum[u] = (e[u][0] + e[u][1]) + (e[u][2] + e[u][3]);
    if constexpr (kCount == 8) sum[u] = sum[u] + ((e[u][4] + e[u][5]) + (e[u][6] + e[u][7]));
    if constexpr (!kLog) {
#pragma unroll
      for (int i = 0; i < kCount; ++i) v[u][i] = e[u][i];
    }
  }
  sum_over_lanes<kLanes>(sum);
#pragma unroll
  for (int u = 0; u < kUnits; ++u) pairs[u] = Pair{max[u], 0.5F * sum[u]};
}

/// What the outputs of a row share: its maximum, and 1 / (4 sum) or ln sum. A row of -Inf alone is NaN: 0 * (1 / 0), or
/// -Inf - -Inf.
struct Finish {
  float max, last;
};
template <bool kLog>
__device__ inline Finish finish_of(Pair row) {
  if constexpr (kLog) {
    return Finish{row.max, logarithm(row.sum)};
  } else {
    float inverse;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(inverse) : "f"(row.sum));
    return Finish{row.max, 0.25F * inverse};  // what it multiplies was doubled twice
  }
}

/// What summarize() left of a unit becomes outputs.
template <bool kLog, int kCount>
__device__ inline void finish(float (&v)[kCount], float unit_max, Finish row) {
  if constexpr (kLog) {
#pragma unroll
    for (int i = 0; i < kCount; ++i) v[i] = (v[i] - row.max) - row.last;
  } else {
    const float factor = twice_exponential(unit_max - row.max) * row.last;
#pragma unroll
    for (int i = 0; i < kCount; ++i) v[i] = v[i] * factor;
  }
}

}  // namespace fulcrum::backends::cuda::rows
