// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// See group_gemm.h and group_ring.cuh: products of 16-bit operands. Each of two warpgroups makes 64 rows of a tile; the
// tensor cores take rows of A along k and rows of B as they come, both from shared memory.
#include <algorithm>
#include <limits>

#include "backends/cuda/gemm_epilogue.cuh"
#include "backends/cuda/group_gemm.h"
#include "backends/cuda/group_ring.cuh"
#include "backends/cuda/streaming.cuh"
#include "backends/cuda/tensor_map.h"

namespace fulcrum::backends::cuda {
namespace {

using namespace group;

constexpr int kBoxes = 2, kDepth = kTile / kBoxes;
constexpr int kHalfBytes = kDepth * wg::kRowBytes;  // 64 columns of a slab of B

using Tile = wg::Sums<16>;

template <bool kBf16>
__device__ __forceinline__ void use_slab(Tile& sums, std::uint32_t slab, int half, bool add) {
  wg::begin_products();
#pragma unroll
  for (int step = 0; step < kDepth / 16; ++step) {
    const std::uint32_t left = slab + half * 64 * wg::kRowBytes + step * 32,
                        right = slab + kSideBytes + step * 16 * wg::kRowBytes;
    wg::multiply<kBf16, true>(sums, wg::describe(left), wg::describe(right, kHalfBytes), add || step > 0);
  }
  wg::commit_products();
}

/// Columns [8 kFirst, 8 kFirst + 64) of the tile with bias and activation: a warp's 16 rows go through shared memory, so
/// that they are stored in whole lines.
template <class T, int kFirst>
__device__ __forceinline__ void write_half(const Gemm& g, const Tile& sums, const float* bias, T* c, int row0,
                                           int column0, char* staging) {
  const int thread = static_cast<int>(threadIdx.x), lane = thread % 32, first_row = thread / 32 * 16;
#pragma unroll
  for (int j = 0; j < 8; ++j) {
    const float2 added = *reinterpret_cast<const float2*>(bias + (kFirst + j) * 8 + lane % 4 * 2);
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const float x = sums[kFirst + j][2 * r] + added.x, y = sums[kFirst + j][2 * r + 1] + added.y;
      char* to = staging + wg::chunk_offset(first_row + lane / 4 + r * 8, j) + lane % 4 * 4;
      store_pair(reinterpret_cast<T*>(to), finished(x, g.activation), finished(y, g.activation));
    }
  }
  __syncwarp();
  const int64_t column = column0 + kFirst * 8 + lane % 8 * 8;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const int in_tile = first_row + i * 4 + lane / 8;
    const int64_t row = row0 + in_tile;
    if (row >= g.m || column >= g.n) continue;
    *reinterpret_cast<uint4*>(c + row * g.n + column) =
        *reinterpret_cast<const uint4*>(staging + wg::chunk_offset(in_tile, lane % 8));
  }
}

template <class T, bool kBf16, class P>
__global__ void __launch_bounds__(P::kThreads, P::kCtasAnSm)
    group_kernel(Gemm g, const __grid_constant__ CUtensorMap left, const __grid_constant__ CUtensorMap right,
                 const float* bias, T* c) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  extern __shared__ __align__(1024) char memory[];
  const int warp = warp_index();
  const Share<P> share(g, kDepth);
  const Ring<P> ring(memory);
  const int entry = static_cast<int>(blockIdx.y);
  begin_group(ring, left, right);
  if (warp == P::kUsers / 32) {
    if (threadIdx.x == P::kUsers) ring.template fetch<kBoxes>(share, left, right, entry);
    __syncwarp();
    stand_by<P>();
    return;
  }
  auto* added = reinterpret_cast<float*>(memory + P::kBiasAt);
  take_bias(g, share, bias, added);
  Tile sums;
  if constexpr (P::kSplit > 1) {  // the upper part may have no terms
#pragma unroll
    for (auto& four : sums) four[0] = four[1] = four[2] = four[3] = 0;
  }
  for (int slab = 0; slab < share.slabs; ++slab) {
    ring.await(slab);
    use_slab<kBf16>(sums, ring.base + slab % P::kStages * kSlabBytes, warp / 4, slab > 0);
    wg::await_products<1>();
    ring.leave(slab - 1, share);
  }
  wg::await_products<0>();
  T* out = c + int64_t{entry} * g.m * g.n;
  char* staging = memory + P::kStagingAt;
  if constexpr (P::kSplit == 1) {
    sync_users<P>();  // bias is there, and nobody reads the ring any more
    write_half<T, 0>(g, sums, added, out, share.row0, share.column0, staging);
    write_half<T, 8>(g, sums, added, out, share.row0, share.column0, staging + kTile * wg::kRowBytes);
  } else {
    join_parts<8>(share, memory, [&](auto half, int j) -> float(&)[4] { return sums[half * 8 + j]; });
    if (share.part == 0) {
      write_half<T, 0>(g, sums, added, out, share.row0, share.column0, staging);
    } else {
      write_half<T, 8>(g, sums, added, out, share.row0, share.column0, staging);
    }
  }
#endif
}

using Whole = Plan<1, 1, 1, 6>;
using Shared = Plan<1, 1, 2, 6>;

template <class T, bool kBf16, class P>
fulcrum_status launch(const Gemm& g, const GemmOperands& operands, cudaStream_t stream) {
  static const cudaError_t allowed =
      cudaFuncSetAttribute(group_kernel<T, kBf16, P>, cudaFuncAttributeMaxDynamicSharedMemorySize, P::kBytes);
  FULCRUM_CUDA(allowed);
  CUtensorMap left, right;
  FULCRUM_STATUS(make_tensor_map(g.element, {operands.a, g.k, g.m, g.batch}, kTile / P::kAcross, &left));
  FULCRUM_STATUS(make_tensor_map(g.element, {operands.b, g.n, g.k, g.batch}, kDepth / P::kDown, &right));
  const auto clusters = [](int64_t extent, int tiles) { return streaming::divide_up(extent, kTile * tiles); };
  cudaLaunchAttribute attributes[2] = {};
  cudaLaunchConfig_t config =
      streaming::config_of({.ctas = clusters(g.m, P::kDown) * clusters(g.n, P::kAcross) * P::kCtas,
                            .threads = P::kThreads,
                            .programmatic = true,
                            .cluster = P::kCtas,
                            .shared_bytes = P::kBytes},
                           nullptr, attributes);
  config.stream = stream;
  config.gridDim.y = static_cast<unsigned>(g.batch);
  FULCRUM_CUDA(cudaLaunchKernelEx(&config, group_kernel<T, kBf16, P>, g, left, right, operands.bias,
                                  static_cast<T*>(operands.c)));
  return done();
}

}  // namespace

bool group_takes(const Gemm& g, const GemmOperands& operands) {
  constexpr int64_t kMostEntries = 65535, kMost = std::numeric_limits<int32_t>::max() / 2;
  const auto bits = reinterpret_cast<uintptr_t>(operands.a) | reinterpret_cast<uintptr_t>(operands.b) |
                    reinterpret_cast<uintptr_t>(operands.c);
  const int64_t tiles = streaming::divide_up(g.m, kTile) * streaming::divide_up(g.n, kTile);
  const int64_t vector = wg::kChunkBytes / static_cast<int64_t>(bytes_of(g.element));
  return available() && device().major == 9 && device().minor == 0 && bits % wg::kChunkBytes == 0 &&
         g.k > 0 && std::max({g.m, g.n, g.k}) < kMost && g.k % vector == 0 && g.n % vector == 0 &&
         g.batch <= kMostEntries && tiles <= kMost / 16;
}

GroupPlan group_plan_for(const Gemm& g) {
  const int64_t tiles = streaming::divide_up(g.m, kTile) * streaming::divide_up(g.n, kTile) * g.batch;
  return tiles * 2 <= device().sms && g.k > kDepth ? GroupPlan::shared : GroupPlan::whole;
}

fulcrum_status enqueue_group(const Gemm& g, const GemmOperands& operands, GroupPlan plan,
                             cudaStream_t stream) {
  if (g.outputs() == 0) return done();
  if (g.element == Element::f32) return enqueue_group_tf32(g, operands, plan, stream);
  const bool whole = plan == GroupPlan::whole;
  if (g.element == Element::bf16) {
    return whole ? launch<__nv_bfloat16, true, Whole>(g, operands, stream)
                 : launch<__nv_bfloat16, true, Shared>(g, operands, stream);
  }
  return whole ? launch<__half, false, Whole>(g, operands, stream)
               : launch<__half, false, Shared>(g, operands, stream);
}

}  // namespace fulcrum::backends::cuda
