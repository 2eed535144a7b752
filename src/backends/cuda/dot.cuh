// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// What the ways to compute dot share: the call, the sum of one chunk of 8192 elements in 1024 lanes and a fixed tree,
// and how chunks and groups end.
#pragma once

#include "backends/cuda/fold.cuh"
#include "backends/cuda/streaming.cuh"

namespace fulcrum::backends::cuda::streaming {

inline constexpr int kChunk = 8192;
inline constexpr int kGroup = 2048;  // chunks; the CTA that adds them loads all of them in one go
inline constexpr int kChunkVectors = kChunk / 4;
static_assert(kChunkVectors == 2 * kSumLanes);

struct Dot {
  const float *a, *b;
  float* out;
  int64_t n, chunks, groups;
  int run;  // chunks of a CTA, one behind the other; divides kGroup
  double *chunk_sums, *group_sums;
  unsigned* counters;  // of each group, of all groups, of work given out; zero between calls
  uint64_t* words;     // of each chunk, where there is one group: the number of the call and the sum
  unsigned* calls;     // that are done
};

/// Vector `at` of a chunk that has `left` elements; zeros behind the end, which change no sum.
template <Cache kCache, bool kAligned, bool kFull>
__device__ __forceinline__ float4 load_four(const float* chunk, int at, int left) {
  const float* from = chunk + 4 * at;
  if (kAligned && (kFull || 4 * at + 4 <= left)) return load<kCache>(reinterpret_cast<const float4*>(from));
  float4 x = {};
  if (kFull || 4 * at < left) x.x = from[0];
  if (kFull || 4 * at + 1 < left) x.y = from[1];
  if (kFull || 4 * at + 2 < left) x.z = from[2];
  if (kFull || 4 * at + 3 < left) x.w = from[3];
  return x;
}

/// Thread t of kThreads carries the lanes t, t + kThreads, ...; lane l takes the vectors l and l + 1024 of the chunk,
/// one chain of fma through both. A batch of vectors is loaded before the first is used.
template <int kThreads, Cache kCache, bool kAligned, bool kFull>
__device__ __forceinline__ void accumulate(const float* a, const float* b, int left,
                                           float (&lane)[kSumLanes / kThreads]) {
  constexpr int kLanes = kSumLanes / kThreads, kVectors = 2 * kLanes;
  constexpr int kBatch = kVectors < 4 ? kVectors : 4;
  static_assert(kBatch % kLanes == 0);
#pragma unroll 1  // a second batch in flight would cost the registers of other CTAs
  for (int base = 0; base < kVectors; base += kBatch) {
    float4 x[kBatch], y[kBatch];
#pragma unroll
    for (int i = 0; i < kBatch; ++i) {
      const int at = static_cast<int>(threadIdx.x) + (base + i) * kThreads;
      x[i] = load_four<kCache, kAligned, kFull>(a, at, left);
      y[i] = load_four<kCache, kAligned, kFull>(b, at, left);
    }
#pragma unroll
    for (int i = 0; i < kBatch; ++i) {
      float& sum = lane[i % kLanes];
      sum = __fmaf_rn(x[i].x, y[i].x, sum);
      sum = __fmaf_rn(x[i].y, y[i].y, sum);
      sum = __fmaf_rn(x[i].z, y[i].z, sum);
      sum = __fmaf_rn(x[i].w, y[i].w, sum);
    }
  }
}

/// The sum of a chunk, known to warp 0 afterwards.
template <int kThreads, Cache kCache, bool kAligned>
__device__ __forceinline__ float sum_chunk(const Dot& dot, int64_t chunk, float* shared) {
  const float* a = dot.a + chunk * kChunk;
  const float* b = dot.b + chunk * kChunk;
  const int64_t left = dot.n - chunk * kChunk;
  float lane[kSumLanes / kThreads] = {};
  if (left >= kChunk) {
    accumulate<kThreads, kCache, kAligned, true>(a, b, kChunk, lane);
  } else {
    accumulate<kThreads, kCache, kAligned, false>(a, b, static_cast<int>(left), lane);
  }
  return fold_lanes<kThreads>(lane, shared);
}

}  // namespace fulcrum::backends::cuda::streaming
