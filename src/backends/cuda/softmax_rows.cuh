// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// softmax kernels that keep a whole row on chip, so that it is read once and written once: part of a warp, a warp, a
// CTA, or a cluster of CTAs for each row.
#pragma once

#include "backends/cuda/softmax.cuh"

namespace fulcrum::backends::cuda::rows {

struct Matrix {
  const float* x;
  float* out;
  std::int64_t rows, n;
};

/// What a kernel may take for granted. `aligned`: rows lie at multiples of 16 bytes. `full`: and are exactly as long as
/// the kernel allows, and so many that every warp that has one has all of its own; no element is asked for then.
enum class Fit { any, aligned, full };

/// The outputs of a row whose units every lane holds, from what summarize() left of them.
template <bool kLog, bool kAligned, Reuse kReuse, int kUnits, int kCount>
__device__ inline void finish_row(float (*v)[kCount], const Pair* pairs, float* to, int left) {
  const Finish end = finish_of<kLog>(merge_held<kUnits>(pairs));
#pragma unroll
  for (int u = 0; u < kUnits; ++u) {
    finish<kLog>(v[u], pairs[u].max, end);
    if constexpr (kCount == 4) {
      store_four<kAligned, kReuse>(to, left, v[u]);
    } else {
      store_unit<kAligned, kReuse>(to + u * kUnit, left - u * kUnit, v[u]);
    }
  }
}

/// kLanes lanes for kRows rows of at most 4 * kLanes * kVectors elements each. Rows that do not exist are empty ones:
/// every lane takes part in every shuffle.
template <bool kLog, Fit kFit, int kLanes, int kVectors, int kRows>
__global__ void __launch_bounds__(256) softmax_warp(Matrix m) {
  // Timed on an H200: leaving the caches first was faster for all rows but those that fit exactly.
  constexpr Reuse kReuse = kFit == Fit::full ? Reuse::again : Reuse::once;
  constexpr bool kAligned = kFit != Fit::any, kFull = kFit == Fit::full;
  constexpr int kMostN = 4 * kLanes * kVectors;
  constexpr int kCount = kVectors == 1 ? 4 : 8;
  constexpr int kUnits = kVectors == 1 ? 1 : kVectors / 2;
  const int lane = threadIdx.x % kLanes;
  const std::int64_t group = (std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x) / kLanes;
  const std::int64_t first = group * kRows, n = kFull ? kMostN : m.n;
  const std::int64_t at = first * n + 4 * lane;
  const int left = kFull ? kMostN : static_cast<int>(n) - 4 * lane;
  if constexpr (kFull) {
    if (first >= m.rows) return;  // with the whole warp
  }
  streaming::follow();
  const auto left_in = [&](int r) { return kFull || first + r < m.rows ? left : 0; };
  float v[kRows * kUnits][kCount];
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
    const float* from = m.x + at + r * n;
#pragma unroll
    for (int u = 0; u < kUnits; ++u) {
      if constexpr (kCount == 4) {
        load_four<kAligned, kReuse>(from, left_in(r), v[r]);
      } else {
        load_unit<kAligned, kReuse>(from + u * kUnit, left_in(r) - u * kUnit, v[r * kUnits + u]);
      }
    }
  }
  Pair pairs[kRows * kUnits];
  summarize<kLog, kLanes>(v, pairs);
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
    finish_row<kLog, kAligned, kReuse, kUnits>(v + r * kUnits, pairs + r * kUnits, m.out + at + r * n,
                                               left_in(r));
  }
}

/// The pairs of a row's units (at most 1024), which all threads see, to the row's pair in every thread.
__device__ inline Pair merge_units(const Pair* units, int count, Pair* chunks) {
  const int lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp;
  if (count <= kWarp) return merge_lanes(lane < count ? units[lane] : nothing());
  const int chunk_count = (count + kWarp - 1) / kWarp;
  for (int chunk = warp; chunk < chunk_count; chunk += blockDim.x / kWarp) {
    const int unit = chunk * kWarp + lane;
    const Pair pair = merge_lanes(unit < count ? units[unit] : nothing());
    if (lane == 0) chunks[chunk] = pair;
  }
  __syncthreads();
  return merge_lanes(lane < chunk_count ? chunks[lane] : nothing());
}

/// A CTA for each row of at most 8 * kUnits * blockDim.x elements.
template <bool kLog, bool kAligned, int kUnits>
__global__ void __launch_bounds__(kMostThreads, 1) softmax_cta(Matrix m) {
  __shared__ Pair units[kWarp * kUnits];
  __shared__ Pair chunks[kWarp];
  streaming::follow();
  const int lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp, warps = blockDim.x / kWarp;
  const int count = static_cast<int>((m.n + kUnit - 1) / kUnit);
  const int first = warp * kUnit + 4 * lane, stride = warps * kUnit;
  const std::int64_t at = blockIdx.x * m.n + first;
  const int left = static_cast<int>(m.n) - first;
  float v[kUnits][8];
  Pair pairs[kUnits];
#pragma unroll
  for (int u = 0; u < kUnits; ++u) {
    load_unit<kAligned, Reuse::once>(m.x + at + u * stride, left - u * stride, v[u]);
  }
  summarize<kLog>(v, pairs);
#pragma unroll
  for (int u = 0; u < kUnits; ++u) {
    if (lane == 0) units[warp + u * warps] = pairs[u];
  }
  __syncthreads();
  const Finish end = finish_of<kLog>(merge_units(units, count, chunks));
#pragma unroll
  for (int u = 0; u < kUnits; ++u) {
    finish<kLog>(v[u], pairs[u].max, end);
    store_unit<kAligned>(m.out + at + u * stride, left - u * stride, v[u]);
  }
}

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
__device__ inline std::uint32_t rank_in_cluster() {
  std::uint32_t rank;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}
__device__ inline void cluster_arrive() {
  asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
}
__device__ inline void cluster_wait() { asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory"); }
/// Writes to the place that `local`, in shared memory, has in another CTA of the cluster.
__device__ inline void store_in_cluster(Pair* local, std::uint32_t rank, Pair pair) {
  const auto address = static_cast<std::uint32_t>(__cvta_generic_to_shared(local));
  std::uint32_t remote;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(remote) : "r"(address), "r"(rank));
  asm volatile("st.shared::cluster.v2.f32 [%0], {%1, %2};" ::"r"(remote), "f"(pair.max), "f"(pair.sum)
               : "memory");
}
#endif

inline constexpr int kClusterUnits = 1024;  // most of a row, as merge_units() takes them

/// A cluster for each row. CTA number r has the units from r * units_per_cta on, at most kUnits of them a warp, and
/// sends their pairs to all others.
template <bool kLog, bool kAligned, int kUnits>
__global__ void __launch_bounds__(kMostThreads, 1) softmax_cluster(Matrix m, int cluster, int units_per_cta) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
  __shared__ Pair units[kClusterUnits];
  __shared__ Pair chunks[kWarp];
  cluster_arrive();  // a CTA that has not started has no shared memory to write to
  streaming::follow();
  const int lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp, warps = blockDim.x / kWarp;
  const int count = static_cast<int>((m.n + kUnit - 1) / kUnit);
  const int first = static_cast<int>(rank_in_cluster()) * units_per_cta;
  const int last = min(first + units_per_cta, count);
  const int element = (first + warp) * kUnit + 4 * lane, stride = warps * kUnit;
  const std::int64_t at = blockIdx.x / cluster * m.n + element;
  // Units from `last` on are another CTA's.
  const int left = min(static_cast<int>(m.n), last * kUnit) - element;
  float v[kUnits][8];
  Pair pairs[kUnits];
#pragma unroll
  for (int u = 0; u < kUnits; ++u) {
    load_unit<kAligned, Reuse::once>(m.x + at + u * stride, left - u * stride, v[u]);
  }
  cluster_wait();
  summarize<kLog>(v, pairs);
#pragma unroll
  for (int u = 0; u < kUnits; ++u) {
    const int unit = first + warp + u * warps;
    if (lane < cluster && unit < last) store_in_cluster(&units[unit], lane, pairs[u]);
  }
  __syncwarp();  // the barriers below want the warp together
  cluster_arrive();
  cluster_wait();
  const Finish end = finish_of<kLog>(merge_units(units, count, chunks));
#pragma unroll
  for (int u = 0; u < kUnits; ++u) {
    finish<kLog>(v[u], pairs[u].max, end);
    store_unit<kAligned>(m.out + at + u * stride, left - u * stride, v[u]);
  }
#endif
}

}  // namespace fulcrum::backends::cuda::rows
