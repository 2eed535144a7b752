// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// See group_gemm.h and group_ring.cuh: the product of f32 operands as tf32. Tensor cores want rows along k of those, and
// B's are not. So the transposed product is made: B's columns are the left operand, which registers hold, read from
// shared memory in any order, and A's rows are the right one. Each of two warpgroups makes 64 columns of a tile.
#include "backends/cuda/gemm_epilogue.cuh"
#include "backends/cuda/group_launch.h"
#include "backends/cuda/group_ring.cuh"

namespace fulcrum::backends::cuda {
namespace {

using namespace group;

constexpr int kBoxes = 4, kDepth = kTile / kBoxes;
constexpr int kSteps = kDepth / 8;

using Tile = wg::Sums<16>;

/// Where a thread's two columns lie in the tile: a warp has 16 of one box, in chunks of four that lie so that the lanes of
/// a load meet all banks.
__device__ __forceinline__ int column_of(int thread, int side) {
  const int warp = thread / 32, lane = thread % 32;
  return warp / 2 * 32 + (warp % 2 * 2 + side + lane / 16 * 4) * 4 + lane / 4 % 4;
}

/// The columns' operands of a slab. Element e of a step is of column e % 2 and term 4 (e / 2) + lane % 4.
struct Columns {
  std::uint32_t terms[kSteps][4];

  __device__ __forceinline__ void load(const char* slab, int thread) {
    const int warp = thread / 32, lane = thread % 32, t = lane % 4;
    const char* box = slab + kSideBytes + warp / 2 * kDepth * wg::kRowBytes + lane / 4 % 4 * 4;
#pragma unroll
    for (int e = 0; e < 4; ++e) {
      const int chunk = warp % 2 * 2 + e % 2 + lane / 16 * 4;
      const char* at = box + wg::chunk_offset(e / 2 * 4 + t, chunk);
#pragma unroll
      for (int step = 0; step < kSteps; ++step)
        terms[step][e] = *reinterpret_cast<const std::uint32_t*>(at + step * 8 * wg::kRowBytes);
    }
  }
};

__device__ __forceinline__ void use_slab(Tile& sums, std::uint32_t slab, const Columns& columns) {
  wg::begin_products();
#pragma unroll
  for (int step = 0; step < kSteps; ++step)
    wg::multiply_tf32(sums, columns.terms[step], wg::describe(slab + step * 32));
  wg::commit_products();
}

/// Rows [8 kFirst, 8 kFirst + 64) of the tile with bias and activation, in shared memory: rows of 128 floats, chunks of
/// four permuted so that neither side meets a bank twice.
constexpr int kStagedRowBytes = kTile * 4;
__device__ __forceinline__ int staged_chunk(int row, int chunk) { return chunk ^ (row / 2 & 3); }

template <int kFirst>
__device__ __forceinline__ void stage_half(const Gemm& g, const Tile& sums, const float* bias,
                                           char* staging) {
  const int thread = static_cast<int>(threadIdx.x), t = thread % 4;
#pragma unroll
  for (int side = 0; side < 2; ++side) {
    const int column = column_of(thread, side);
    const float added = bias[column];
#pragma unroll
    for (int j = 0; j < 8; ++j) {
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        const int row = j * 8 + t * 2 + e;
        char* to = staging + row * kStagedRowBytes + staged_chunk(row, column / 4) * 16 + column % 4 * 4;
        *reinterpret_cast<float*>(to) = finished(sums[kFirst + j][side * 2 + e] + added, g.activation);
      }
    }
  }
}
/// The staged rows to C, from row `row0` on; a warp takes every eighth.
__device__ __forceinline__ void write_staged(const Gemm& g, const char* staging, int rows, float* c, int row0,
                                             int column0) {
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  const int64_t column = column0 + lane * 4;
  if (column >= g.n) return;
#pragma unroll 4
  for (int in_half = warp; in_half < rows; in_half += 8) {
    const int64_t row = row0 + in_half;
    if (row >= g.m) return;
    *reinterpret_cast<float4*>(c + row * g.n + column) = *reinterpret_cast<const float4*>(
        staging + in_half * kStagedRowBytes + staged_chunk(in_half, lane) * 16);
  }
}

/// Columns of two slabs leave no registers for a second CTA.
template <class P>
__global__ void __launch_bounds__(P::kThreads, 1)
    group_tf32_kernel(Gemm g, const __grid_constant__ CUtensorMap left,
                      const __grid_constant__ CUtensorMap right, const float* bias, float* c) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  extern __shared__ __align__(1024) char memory[];
  const int thread = static_cast<int>(threadIdx.x);
  const Share<P> share(g, kDepth);
  const Ring<P> ring(memory);
  const int entry = static_cast<int>(blockIdx.y);
  begin_group(ring, left, right);
  if (warp_index() == P::kUsers / 32) {
    if (thread == P::kUsers) ring.template fetch<kBoxes>(share, left, right, entry);
    stand_by<P>();
    return;
  }
  auto* added = reinterpret_cast<float*>(memory + P::kBiasAt);
  take_bias(g, share, bias, added);
  Tile sums = {};
  const auto use = [&](int slab, const Columns& columns) {
    use_slab(sums, ring.base + slab % P::kStages * kSlabBytes, columns);
  };
  const auto load = [&](int slab, Columns& columns) {
    ring.await(slab);
    columns.load(memory + slab % P::kStages * kSlabBytes, thread);
  };
  // One slab's columns come from shared memory while the products of the one before are made.
  Columns even, odd;
  if (share.slabs > 0) load(0, even);
  for (int slab = 0; slab < share.slabs; slab += 2) {
    use(slab, even);
    if (slab + 1 < share.slabs) load(slab + 1, odd);
    wg::await_products<0>();
    ring.leave(slab, share);
    if (slab + 1 >= share.slabs) break;
    use(slab + 1, odd);
    if (slab + 2 < share.slabs) load(slab + 2, even);
    wg::await_products<0>();
    ring.leave(slab + 1, share);
  }
  float* out = c + int64_t{entry} * g.m * g.n;
  char* staging = memory + P::kStagingAt;
  if constexpr (P::kSplit == 1) {
    sync_users<P>();  // bias is there, and nobody reads the ring any more
    stage_half<0>(g, sums, added, staging);
    stage_half<8>(g, sums, added, staging + 64 * kStagedRowBytes);
    sync_users<P>();
    write_staged(g, staging, kTile, out, share.row0, share.column0);
  } else {
    join_parts<8>(share, memory, [&](auto half, int j) -> float(&)[4] { return sums[half * 8 + j]; });
    if (share.part == 0) {
      stage_half<0>(g, sums, added, staging);
    } else {
      stage_half<8>(g, sums, added, staging);
    }
    sync_users<P>();
    write_staged(g, staging, kTile / 2, out, share.row0 + share.part * 64, share.column0);
  }
#endif
}

using Ways = Plans<Plan<1, 1, 1, 6>, Plan<1, 2, 2, 6>, Plan<2, 2, 2, 6>, Plan<2, 1, 2, 6>>;

struct Launcher {
  template <class P>
  fulcrum_status with(const Gemm& g, const GemmOperands& operands, cudaStream_t stream) const {
    return launch_group<P>(group_tf32_kernel<P>, MapType::tf32, g, operands, static_cast<float*>(operands.c),
                           stream);
  }
};

}  // namespace

fulcrum_status enqueue_group_tf32(const Gemm& g, const GemmOperands& operands, int plan,
                                  cudaStream_t stream) {
  return Ways::run(plan, Launcher{}, g, operands, stream);
}

}  // namespace fulcrum::backends::cuda
