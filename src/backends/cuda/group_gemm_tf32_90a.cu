// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// See group_gemm.h: the product of f32 operands as tf32. Tensor cores want rows along k of those, and B's are not. So
// the transposed product is made: B's columns are the left operand, which registers hold, read from shared memory in
// any order, and A's rows are the right one. A CTA of two warpgroups makes 128 rows and 128 columns, 64 columns each.
#include "backends/cuda/fold.cuh"
#include "backends/cuda/gemm_epilogue.cuh"
#include "backends/cuda/group_gemm.h"
#include "backends/cuda/streaming.cuh"
#include "backends/cuda/warpgroup.cuh"

namespace fulcrum::backends::cuda {
namespace {

namespace wg = warpgroup;

constexpr int kThreads = 256, kTile = 128, kDepth = 32, kStages = 5;
constexpr int kPitch = kTile + 8;  // floats from term to term of B: the lanes of a load meet all banks
constexpr int kRowsBytes = kTile * wg::kRowBytes, kSlabBytes = kRowsBytes + kDepth * kPitch * 4;
constexpr int kRingBytes = kStages * kSlabBytes;
constexpr int kInboxBytes = kThreads * 32 * 4;  // half of each thread's sums
static_assert(kSlabBytes % 1024 == 0);

using Tile = wg::Sums<16>;

/// This thread's share of the slabs on their way to shared memory. Terms, rows and columns behind the last are zeros.
struct Slabs {
  const float *a, *b;  // the first chunk of the next slab
  int64_t a_step, b_step, b_slab;
  int64_t rows_left;
  int k_left, a_term, b_term;
  bool has_column;
  std::uint32_t a_to, b_to;

  __device__ Slabs(const Gemm& g, const float* left, const float* right, int64_t row0, int64_t column0,
                   int k0, int k_end) {
    const int thread = static_cast<int>(threadIdx.x);
    const int a_row = thread / 8, b_column = thread % 32 * 4;
    a_term = thread % 8 * 4;
    b_term = thread / 32;
    a = left + (row0 + a_row) * g.k + k0 + a_term;
    b = right + (int64_t{k0} + b_term) * g.n + column0 + b_column;
    a_step = 32 * g.k;
    b_step = 8 * g.n;
    b_slab = kDepth * g.n;
    rows_left = g.m - row0 - a_row;
    has_column = column0 + b_column < g.n;
    k_left = k_end - k0;
    a_to = wg::chunk_offset(a_row, thread % 8);
    b_to = static_cast<std::uint32_t>(kRowsBytes + (b_term * kPitch + b_column) * 4);
  }
  /// `first` is any address that may be read.
  __device__ __forceinline__ void copy_next(std::uint32_t stage, const float* first) {
    if (k_left > 0) {
#pragma unroll
      for (int i = 0; i < kTile / 32; ++i) {
        const bool is_there = i * 32 < rows_left && a_term < k_left;
        wg::copy_chunk(stage + a_to + i * 32 * wg::kRowBytes, is_there ? a + i * a_step : first, is_there);
      }
#pragma unroll
      for (int i = 0; i < kDepth / 8; ++i) {
        const bool is_there = b_term + i * 8 < k_left && has_column;
        wg::copy_chunk(stage + b_to + i * 8 * kPitch * 4, is_there ? b + i * b_step : first, is_there);
      }
      a += kDepth;
      b += b_slab;
      k_left -= kDepth;
    }
    wg::commit_copies();  // an empty group keeps the count of those in flight
  }
};

__device__ __forceinline__ std::uint32_t tf32_of(float value) {
  std::uint32_t rounded;
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(rounded) : "f"(value));
  return rounded;
}

/// The columns' operands of a slab: 16 columns a warp.
struct Columns {
  std::uint32_t terms[kDepth / 8][4];

  __device__ __forceinline__ void load(const char* slab, int first_column, int lane) {
    const float* at =
        reinterpret_cast<const float*>(slab + kRowsBytes) + lane % 4 * kPitch + first_column + lane / 4;
#pragma unroll
    for (int step = 0; step < kDepth / 8; ++step) {
#pragma unroll
      for (int e = 0; e < 4; ++e) terms[step][e] = tf32_of(at[(step * 8 + e / 2 * 4) * kPitch + e % 2 * 8]);
    }
  }
};

__device__ __forceinline__ void use_slab(Tile& sums, std::uint32_t slab, const Columns& columns) {
  wg::begin_products();
#pragma unroll
  for (int step = 0; step < kDepth / 8; ++step)
    wg::multiply_tf32(sums, columns.terms[step], wg::describe(slab + step * 32));
  wg::commit_products();
}

/// Rows on their way to C: 128 floats each, chunks of four permuted so that neither side meets a bank twice.
constexpr int kStagedRowBytes = kTile * 4;
__device__ __forceinline__ int staged_chunk(int row, int chunk) { return chunk ^ (row & 6); }

/// Rows [8 kFirst, 8 kFirst + 64) of the tile, bias and activation on them, to shared memory. `column` is this thread's
/// first in the tile.
template <int kFirst>
__device__ __forceinline__ void stage_half(const Gemm& g, const Tile& sums, const float (&bias)[2],
                                           int column, char* staging) {
#pragma unroll
  for (int side = 0; side < 2; ++side) {
    const int at = column + side * 8;
#pragma unroll
    for (int j = 0; j < 8; ++j) {
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        const int row = j * 8 + static_cast<int>(threadIdx.x) % 4 * 2 + e;
        char* to = staging + row * kStagedRowBytes + staged_chunk(row, at / 4) * 16 + at % 4 * 4;
        *reinterpret_cast<float*>(to) = finished(sums[kFirst + j][side * 2 + e] + bias[side], g.activation);
      }
    }
  }
}
/// Staged rows to C, from `row0` on, in whole lines: a warp takes every eighth.
__device__ __forceinline__ void write_staged(const Gemm& g, const char* staging, int rows, float* c,
                                             int64_t row0, int64_t column0) {
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  const int64_t column = column0 + lane * 4;
  if (column >= g.n) return;
#pragma unroll 4
  for (int staged = warp; staged < rows; staged += kThreads / 32) {
    const int64_t row = row0 + staged;
    if (row >= g.m) return;
    *reinterpret_cast<float4*>(c + row * g.n + column) = *reinterpret_cast<const float4*>(
        staging + staged * kStagedRowBytes + staged_chunk(staged, lane) * 16);
  }
}

/// A thread's sums of one half of the rows, to its like in the other CTA.
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

template <int kSplit>
__global__ void __launch_bounds__(kThreads, 1)
    group_tf32_kernel(Gemm g, const float* a, const float* b, const float* bias, float* c) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  extern __shared__ __align__(1024) char memory[];
  const int thread = static_cast<int>(threadIdx.x), warp = thread / 32, lane = thread % 32;
  const auto along = static_cast<unsigned>((g.n + kTile - 1) / kTile);
  const unsigned tile = blockIdx.x / kSplit, rank = blockIdx.x % kSplit;
  const int64_t row0 = int64_t{tile / along} * kTile, column0 = int64_t{tile % along} * kTile;
  const int64_t entry = blockIdx.y;
  const int k = static_cast<int>(g.k), share = (k + kDepth * kSplit - 1) / (kDepth * kSplit) * kDepth;
  const int k0 = min(k, static_cast<int>(rank) * share), k_end = min(k, k0 + share);
  const int slabs = (k_end - k0 + kDepth - 1) / kDepth;
  if constexpr (kSplit > 1) streaming::cluster_arrive();
  Slabs copies(g, a + entry * g.m * g.k, b + entry * g.k * g.n, row0, column0, k0, k_end);
  const std::uint32_t base = wg::shared_of(memory);
  Tile sums = {};
  streaming::follow();
#pragma unroll
  for (int stage = 0; stage < kStages - 1; ++stage) copies.copy_next(base + stage * kSlabBytes, a);
  const int column = warp * 16 + lane / 4;
  float added[2];  // long before it is needed; adding -0 changes nothing
#pragma unroll
  for (int side = 0; side < 2; ++side)
    added[side] = bias && column0 + column + side * 8 < g.n ? bias[column0 + column + side * 8] : -0.0F;
  int stage = 0;
  for (int slab = 0; slab < slabs; ++slab) {
    wg::await_copies<kStages - 2>();
    wg::show_to_products();
    __syncthreads();  // the slab is there for all, and nobody uses the one before it any more
    Columns columns;
    columns.load(memory + stage * kSlabBytes, warp * 16, lane);
    use_slab(sums, base + stage * kSlabBytes, columns);
    copies.copy_next(base + (stage + kStages - 1) % kStages * kSlabBytes, a);
    wg::await_products<0>();
    stage = (stage + 1) % kStages;
  }
  float* out = c + entry * g.m * g.n;
  if constexpr (kSplit == 1) {
    __syncthreads();  // nobody uses the ring any more
    stage_half<0>(g, sums, added, column, memory);
    stage_half<8>(g, sums, added, column, memory + 64 * kStagedRowBytes);
    __syncthreads();
    write_staged(g, memory, kTile, out, row0, column0);
  } else {
    std::uint32_t there;
    asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(base + kRingBytes), "r"(rank ^ 1));
    const auto* inbox = reinterpret_cast<const float4*>(memory + kRingBytes);
    streaming::cluster_wait();  // the other CTA is there
    if (rank == 0) {
      send_half<8>(sums, there);
    } else {
      send_half<0>(sums, there);
    }
    streaming::cluster_arrive();
    streaming::cluster_wait();
    if (rank == 0) {
      add_half<0>(sums, inbox);
      stage_half<0>(g, sums, added, column, memory);
    } else {
      add_half<8>(sums, inbox);
      stage_half<8>(g, sums, added, column, memory);
    }
    __syncthreads();
    write_staged(g, memory, kTile / 2, out, row0 + rank * 64, column0);
  }
#endif
}

template <int kSplit>
fulcrum_status launch(const Gemm& g, const GemmOperands& operands, cudaStream_t stream) {
  constexpr int kBytes = kRingBytes + (kSplit > 1 ? kInboxBytes : 0);
  const auto kernel = group_tf32_kernel<kSplit>;
  static const cudaError_t allowed =
      cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kBytes);
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
  FULCRUM_CUDA(cudaLaunchKernelEx(&config, kernel, g, static_cast<const float*>(operands.a),
                                  static_cast<const float*>(operands.b), operands.bias,
                                  static_cast<float*>(operands.c)));
  return done();
}

}  // namespace

fulcrum_status enqueue_group_tf32(const Gemm& g, const GemmOperands& operands, int split,
                                  cudaStream_t stream) {
  return split == 1 ? launch<1>(g, operands, stream) : launch<2>(g, operands, stream);
}

}  // namespace fulcrum::backends::cuda
