// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// See wide_gemm.h and group_ring.cuh. Each of four warps makes 64 by 64 outputs of a tile: rows lane / 4 + 8 i and four
// times four columns. A's rows lie along k, so four terms of a row come in one load; B's come four columns at a time.
#include "backends/cuda/gemm_epilogue.cuh"
#include "backends/cuda/group_launch.h"
#include "backends/cuda/group_ring.cuh"
#include "backends/cuda/wide_gemm.h"

namespace fulcrum::backends::cuda {
namespace {

using namespace group;

constexpr int kBoxes = 4, kDepth = kTile / kBoxes, kUserThreads = 128;

/// A thread's outputs: eight rows of four vectors of columns.
using Tile = float[8][4][4];

__device__ __forceinline__ float nth(const float4& v, int i) {
  return i == 0 ? v.x : i == 1 ? v.y : i == 2 ? v.z : v.w;
}

/// Where a thread's operands lie in a slab, and loads of them. Chunks are permuted by their row's last three bits.
struct Operands {
  const char *rows, *columns;
  int lane_row, lane_column;

  __device__ Operands(const char* memory, int warp, int lane)
      : rows(memory + (warp / 2 * 64 + lane / 4) * wg::kRowBytes),
        columns(memory + kSideBytes + warp % 2 * 2 * kDepth * wg::kRowBytes),
        lane_row(lane / 4),
        lane_column(lane % 4) {}
  /// Terms [4 four, 4 four + 4) of the rows.
  __device__ __forceinline__ void load_rows(float4 (&to)[8], int slab_at, int four) const {
    const char* at = rows + slab_at + (four ^ lane_row) * 16;
#pragma unroll
    for (int i = 0; i < 8; ++i) to[i] = *reinterpret_cast<const float4*>(at + i * 8 * wg::kRowBytes);
  }
  /// Term k of the columns.
  __device__ __forceinline__ void load_columns(float4 (&to)[4], int slab_at, int k) const {
    const char* at = columns + slab_at + k * wg::kRowBytes;
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const int chunk = (j % 2 * 4 + lane_column) ^ (k & 7);
      to[j] = *reinterpret_cast<const float4*>(at + j / 2 * kDepth * wg::kRowBytes + chunk * 16);
    }
  }
};

__device__ __forceinline__ void add_term(Tile& sums, const float4 (&rows)[8], int k,
                                         const float4 (&columns)[4]) {
#pragma unroll
  for (int j = 0; j < 4; ++j) {
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      const float a = nth(rows[i], k);
      sums[i][j][0] = __fmaf_rn(a, columns[j].x, sums[i][j][0]);
      sums[i][j][1] = __fmaf_rn(a, columns[j].y, sums[i][j][1]);
      sums[i][j][2] = __fmaf_rn(a, columns[j].z, sums[i][j][2]);
      sums[i][j][3] = __fmaf_rn(a, columns[j].w, sums[i][j][3]);
    }
  }
}

/// The next operands are under way while products are made.
__device__ __forceinline__ void use_slab(Tile& sums, const Operands& operands, int slab_at) {
  float4 rows[8], next_rows[8], columns[4], next_columns[4];
  operands.load_rows(rows, slab_at, 0);
  operands.load_columns(columns, slab_at, 0);
#pragma unroll 2
  for (int four = 0; four < kDepth / 4; ++four) {
    if (four + 1 < kDepth / 4) operands.load_rows(next_rows, slab_at, four + 1);
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      if (four * 4 + k + 1 < kDepth) operands.load_columns(next_columns, slab_at, four * 4 + k + 1);
      add_term(sums, rows, k, columns);
#pragma unroll
      for (int j = 0; j < 4; ++j) columns[j] = next_columns[j];
    }
#pragma unroll
    for (int i = 0; i < 8; ++i) rows[i] = next_rows[i];
  }
}

/// The tile's columns of vector j with bias and activation.
template <int j>
__device__ __forceinline__ void write_vector(const Gemm& g, const Tile& sums, const float* bias, float* c,
                                             int64_t row0, int column0, int in_tile) {
  const int64_t column = column0 + in_tile;
  if (column >= g.n) return;
  const float4 added = *reinterpret_cast<const float4*>(bias + in_tile);
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    const int64_t row = row0 + i * 8;
    if (row >= g.m) return;
    const float value[4] = {
        finished(sums[i][j][0] + added.x, g.activation), finished(sums[i][j][1] + added.y, g.activation),
        finished(sums[i][j][2] + added.z, g.activation), finished(sums[i][j][3] + added.w, g.activation)};
    store_four(c + row * g.n + column, value);
  }
}

template <class P>
__global__ void __launch_bounds__(P::kThreads, 1)
    wide_kernel(Gemm g, const __grid_constant__ CUtensorMap left, const __grid_constant__ CUtensorMap right,
                const float* bias, float* c) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  extern __shared__ __align__(1024) char memory[];
  const int warp = warp_index(), lane = static_cast<int>(threadIdx.x) % 32;
  const Share<P> share(g, kDepth);
  const Ring<P> ring(memory);
  const int entry = static_cast<int>(blockIdx.y);
  begin_group(ring, left, right);
  if (warp == P::kUsers / 32) {
    if (threadIdx.x == P::kUsers) ring.template fetch<kBoxes>(share, left, right, entry);
    stand_by<P>();
    return;
  }
  auto* added = reinterpret_cast<float*>(memory + P::kBiasAt);
  take_bias(g, share, bias, added);
  const Operands operands(memory, warp, lane);
  Tile sums = {};
  for (int slab = 0; slab < share.slabs; ++slab) {
    ring.await(slab);
    use_slab(sums, operands, slab % P::kStages * kSlabBytes);
    __syncwarp();
    ring.leave(slab, share);
  }
  float* out = c + int64_t{entry} * g.m * g.n;
  const int64_t row = share.row0 + warp / 2 * 64 + lane / 4;
  const int column = warp % 2 * 64 + lane % 4 * 4;
  if constexpr (P::kSplit == 1) {
    sync_users<P>();  // bias is there
  } else {
    join_parts<16>(share, memory,
                   [&](auto half, int i) -> float(&)[4] { return sums[i / 2][half * 2 + i % 2]; });
  }
  if (P::kSplit == 1 || share.part == 0) {
    write_vector<0>(g, sums, added, out, row, share.column0, column);
    write_vector<1>(g, sums, added, out, row, share.column0, column + 16);
  }
  if (P::kSplit == 1 || share.part != 0) {
    write_vector<2>(g, sums, added, out, row, share.column0, column + 32);
    write_vector<3>(g, sums, added, out, row, share.column0, column + 48);
  }
#endif
}

using Ways =
    Plans<Plan<1, 1, 1, 6, kUserThreads>, Plan<1, 1, 2, 6, kUserThreads>, Plan<2, 2, 2, 6, kUserThreads>>;

struct Launcher {
  template <class P>
  fulcrum_status with(const Gemm& g, const GemmOperands& operands, cudaStream_t stream) const {
    return launch_group<P>(wide_kernel<P>, MapType::f32, g, operands, static_cast<float*>(operands.c),
                           stream);
  }
};

}  // namespace

int wide_plan_for(const Gemm& g) { return group_plan_for(g) == 0 ? 0 : 1; }

fulcrum_status enqueue_wide(const Gemm& g, const GemmOperands& operands, int plan, cudaStream_t stream) {
  return g.outputs() == 0 ? done() : Ways::run(plan, Launcher{}, g, operands, stream);
}

}  // namespace fulcrum::backends::cuda
