// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Sums with a fixed tree over 1024 lanes, the same whatever number of threads carries them, and the ticket by which
// the last CTA of a group learns that it is the last.
#pragma once

#include <cstdint>

namespace fulcrum::backends::cuda::streaming {

inline constexpr int kSumLanes = 1024;

/// Lane l gets lane l + width added for width = 512, 256, ... 32: the part of the tree that lies in shared memory,
/// evaluated depth first because all values at once would not fit into registers. `first` is this thread's lane.
template <int kStep, int kWarps, class T>
__device__ __forceinline__ T sum_of_warps(const T* first) {
  if constexpr (kStep == kWarps) {
    return *first;
  } else {
    return sum_of_warps<2 * kStep, kWarps>(first) + sum_of_warps<2 * kStep, kWarps>(first + 32 * kStep);
  }
}

/// Sum over all lanes, known to warp 0 afterwards. Thread t holds the lanes t, t + kThreads, ... Every thread of the
/// CTA calls it; `shared` holds kThreads values and may be used again after the next barrier that follows.
template <int kThreads, class T>
__device__ __forceinline__ T fold_lanes(T (&lane)[kSumLanes / kThreads], T* shared) {
#pragma unroll
  for (int width = kSumLanes / kThreads / 2; width > 0; width /= 2) {
#pragma unroll
    for (int i = 0; i < width; ++i) lane[i] += lane[i + width];
  }
  shared[threadIdx.x] = lane[0];
  __syncthreads();
  T sum = 0;
  if (threadIdx.x < 32) {
    sum = sum_of_warps<1, kThreads / 32>(shared + threadIdx.x);
#pragma unroll
    for (int width = 16; width > 0; width /= 2) sum += __shfl_xor_sync(0xFFFFFFFFU, sum, width);
  }
  return sum;
}

/// Sum of count values that other CTAs wrote before they drew their tickets, known to warp 0 afterwards: value i goes
/// to lane i % 1024, in index order, then the lanes are folded. Loads go past L1, which may hold older values.
template <int kThreads>
__device__ __forceinline__ double fold_values(const double* values, int64_t count, double* shared) {
  constexpr int kLanes = kSumLanes / kThreads;
  double lane[kLanes] = {};
  for (int64_t base = 0; base < count; base += 2 * kSumLanes) {
    double value[2 * kLanes];
#pragma unroll
    for (int i = 0; i < 2 * kLanes; ++i) {
      const int64_t at = base + threadIdx.x + i * kThreads;
      value[i] = at < count ? __ldcg(values + at) : 0;
    }
#pragma unroll
    for (int i = 0; i < 2 * kLanes; ++i) lane[i % kLanes] += value[i];
  }
  return fold_lanes<kThreads>(lane, shared);
}

/// True in every thread of the CTA that draws the last of `tickets` tickets. Every thread calls it.
///
/// Why the last CTA sees everything: thread 0 of each CTA wrote its results itself, before its fence and its draw.
/// Draws on one counter are totally ordered, so the last one comes after all others; its fence behind the draw and the
/// barrier order the reads of the whole CTA after it. atomicInc makes the last draw set the counter back to zero: the
/// next launch, or the next replay of a graph, finds it as the first one did, with no other launch in between.
__device__ __forceinline__ bool draws_last(unsigned* counter, unsigned tickets) {
  __shared__ bool is_last;
  if (threadIdx.x == 0) {
    __threadfence();
    is_last = atomicInc(counter, tickets - 1) == tickets - 1;
    __threadfence();
  }
  __syncthreads();
  return is_last;
}

/// CTAs of a cluster: what they wrote before arriving is seen behind the wait of any of them.
__device__ __forceinline__ void cluster_arrive() {
#if __CUDA_ARCH__ >= 900
  asm volatile("barrier.cluster.arrive.release;" ::: "memory");
#endif
}
__device__ __forceinline__ void cluster_wait() {
#if __CUDA_ARCH__ >= 900
  asm volatile("barrier.cluster.wait.acquire;" ::: "memory");
#endif
}

/// Stores into the shared memory of the cluster's first CTA, at the place `to` has in this one.
__device__ __forceinline__ void store_in_first(double* to, double value) {
#if __CUDA_ARCH__ >= 900
  const auto here = static_cast<unsigned>(__cvta_generic_to_shared(to));
  unsigned there;
  asm volatile("mapa.shared::cluster.u32 %0, %1, 0;" : "=r"(there) : "r"(here));
  asm volatile("st.shared::cluster.f64 [%0], %1;" ::"r"(there), "d"(value) : "memory");
#endif
}

}  // namespace fulcrum::backends::cuda::streaming
