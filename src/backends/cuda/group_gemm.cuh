// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// What the products by warpgroups share: which terms of which tile a CTA adds up, how two CTAs put their sums of a tile
// together, and the launch. For group_gemm*_90a.cu alone.
#pragma once

#include "backends/cuda/fold.cuh"
#include "backends/cuda/gemm_epilogue.cuh"
#include "backends/cuda/group_gemm.h"
#include "backends/cuda/streaming.cuh"
#include "backends/cuda/warpgroup.cuh"

namespace fulcrum::backends::cuda::group {

namespace wg = warpgroup;

inline constexpr int kThreads = 256, kTile = 128;      // two warpgroups; rows and columns
inline constexpr int kInboxBytes = kThreads * 32 * 4;  // half of each thread's sums

using Tile = wg::Sums<16>;

/// A CTA's share: every kSplit-th CTA has the same tile, and the terms between k0 and k_end of it.
template <int kSplit, int kDepth>
struct Share {
  unsigned rank;
  int64_t row0, column0, entry;
  int k0, k_end, slabs;

  __device__ __forceinline__ explicit Share(const Gemm& g) {
    const auto along = static_cast<unsigned>((g.n + kTile - 1) / kTile);
    const unsigned tile = blockIdx.x / kSplit;
    rank = blockIdx.x % kSplit;
    row0 = int64_t{tile / along} * kTile;
    column0 = int64_t{tile % along} * kTile;
    entry = blockIdx.y;
    const int k = static_cast<int>(g.k), share = (k + kDepth * kSplit - 1) / (kDepth * kSplit) * kDepth;
    k0 = min(k, static_cast<int>(rank) * share);
    k_end = min(k, k0 + share);
    slabs = (k_end - k0 + kDepth - 1) / kDepth;
  }
};

/// Sums [4 kFirst, 4 kFirst + 32) of a thread to its like in the other CTA.
template <int kFirst>
__device__ __forceinline__ void send_half(const Tile& sums, std::uint32_t inbox) {
#pragma unroll
  for (int j = 0; j < 8; ++j) {
    const std::uint32_t to =
        inbox + static_cast<std::uint32_t>(j * kThreads + static_cast<int>(threadIdx.x)) * 16;
    asm volatile("st.shared::cluster.v4.f32 [%0], {%1, %2, %3, %4};" ::"r"(to), "f"(sums[kFirst + j][0]),
                 "f"(sums[kFirst + j][1]), "f"(sums[kFirst + j][2]), "f"(sums[kFirst + j][3])
                 : "memory");
  }
}
template <int kFirst>
__device__ __forceinline__ void add_half(Tile& sums, const float4* inbox) {
#pragma unroll
  for (int j = 0; j < 8; ++j) {
    const float4 other = inbox[j * kThreads + static_cast<int>(threadIdx.x)];
    sums[kFirst + j][0] += other.x;
    sums[kFirst + j][1] += other.y;
    sums[kFirst + j][2] += other.z;
    sums[kFirst + j][3] += other.w;
  }
}

/// Of two CTAs with a tile the first gets the first half of the sums whole, the second the second. Both have arrived at
/// their cluster's barrier once before; `inbox` is used for nothing else.
__device__ __forceinline__ void trade_halves(Tile& sums, char* inbox, unsigned rank) {
  std::uint32_t there;
  asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(wg::shared_of(inbox)), "r"(rank ^ 1));
  streaming::cluster_wait();  // the other CTA is there
  if (rank == 0) {
    send_half<8>(sums, there);
  } else {
    send_half<0>(sums, there);
  }
  streaming::cluster_arrive();
  streaming::cluster_wait();
  const auto* received = reinterpret_cast<const float4*>(inbox);
  if (rank == 0) {
    add_half<0>(sums, received);
  } else {
    add_half<8>(sums, received);
  }
}

template <auto kKernel, int kSplit, int kBytes, class T>
fulcrum_status launch(const Gemm& g, const GemmOperands& operands, cudaStream_t stream) {
  static const cudaError_t allowed =
      cudaFuncSetAttribute(kKernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kBytes);
  FULCRUM_CUDA(allowed);
  cudaLaunchAttribute attributes[2] = {};
  const int64_t tiles = (g.m + kTile - 1) / kTile * ((g.n + kTile - 1) / kTile);
  cudaLaunchConfig_t config = streaming::config_of({.ctas = tiles * kSplit,
                                                    .threads = kThreads,
                                                    .programmatic = true,
                                                    .cluster = kSplit,
                                                    .shared_bytes = kBytes},
                                                   nullptr, attributes);
  config.stream = stream;
  config.gridDim.y = static_cast<unsigned>(g.batch);
  FULCRUM_CUDA(cudaLaunchKernelEx(&config, kKernel, g, static_cast<const T*>(operands.a),
                                  static_cast<const T*>(operands.b), operands.bias,
                                  static_cast<T*>(operands.c)));
  return done();
}

}  // namespace fulcrum::backends::cuda::group
