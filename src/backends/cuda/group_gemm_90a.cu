// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// See group_gemm.h. A CTA of two warpgroups makes a tile of 128 rows and 128 columns, 64 rows each; slabs of 64 terms
// wait in a ring in shared memory, rows of A along k and rows of B as they come: the tensor cores take both.
#include "backends/cuda/group_gemm.h"

#include <limits>

#include "backends/cuda/group_gemm.cuh"
#include "backends/cuda/tf32_parts.h"

namespace fulcrum::backends::cuda {
namespace {

namespace wg = warpgroup;
using group::kTile, group::Tile;

constexpr int kDepth = 64, kStages = 6;
constexpr int kHalfBytes = kDepth * wg::kRowBytes;  // 64 columns of a slab of B
constexpr int kLeftBytes = kTile * wg::kRowBytes, kSlabBytes = kLeftBytes + 2 * kHalfBytes;
constexpr int kRingBytes = kStages * kSlabBytes;
constexpr int kBytes = kRingBytes + group::kInboxBytes + kTile * 4;  // the last are the tile's bias

/// This thread's share of the slabs on their way to shared memory. Terms, rows and columns behind the last are zeros.
struct Slabs {
  const char *a, *b;              // the first chunk of the next slab
  int64_t a_step, b_step;         // bytes from chunk to chunk
  int64_t rows_left, terms_left;  // from this thread's first on
  int64_t b_slab;                 // bytes of a slab of B
  int k_left, a_chunk_k;          // terms left in all; where this thread's chunk begins in a slab
  bool has_column;
  std::uint32_t a_to, b_to;

  __device__ Slabs(const Gemm& g, const void* left, const void* right, int64_t row0, int64_t column0, int k0,
                   int k_end) {
    const int thread = static_cast<int>(threadIdx.x);
    const int a_row = thread / 8, a_chunk = thread % 8, b_row = thread / 16, b_chunk = thread % 16;
    a = static_cast<const char*>(left) + ((row0 + a_row) * g.k + k0 + a_chunk * 8) * 2;
    b = static_cast<const char*>(right) + ((int64_t{k0} + b_row) * g.n + column0 + b_chunk * 8) * 2;
    a_step = 32 * g.k * 2;
    b_step = 16 * g.n * 2;
    b_slab = int64_t{kDepth} * g.n * 2;
    rows_left = g.m - row0 - a_row;
    has_column = column0 + b_chunk * 8 < g.n;
    k_left = k_end - k0;
    terms_left = k_left - b_row;
    a_chunk_k = a_chunk * 8;
    a_to = wg::chunk_offset(a_row, a_chunk);
    b_to = kLeftBytes + b_chunk / 8 * kHalfBytes + wg::chunk_offset(b_row, b_chunk % 8);
  }
  /// `first` is any address that may be read.
  __device__ __forceinline__ void copy_next(std::uint32_t stage, const void* first) {
    if (k_left > 0) {
#pragma unroll
      for (int i = 0; i < kTile / 32; ++i) {
        const bool is_there = i * 32 < rows_left && a_chunk_k < k_left;
        wg::copy_chunk(stage + a_to + i * 32 * wg::kRowBytes, is_there ? a + i * a_step : first, is_there);
      }
#pragma unroll
      for (int i = 0; i < kDepth / 16; ++i) {
        const bool is_there = i * 16 < terms_left && has_column;
        wg::copy_chunk(stage + b_to + i * 16 * wg::kRowBytes, is_there ? b + i * b_step : first, is_there);
      }
      a += kDepth * 2;
      b += b_slab;
      k_left -= kDepth;
      terms_left -= kDepth;
    }
    wg::commit_copies();  // an empty group keeps the count of those in flight
  }
};

template <bool kBf16>
__device__ __forceinline__ void use_slab(Tile& sums, std::uint32_t slab, int group, bool add) {
  wg::begin_products();
#pragma unroll
  for (int step = 0; step < kDepth / 16; ++step) {
    const std::uint32_t left = slab + group * 64 * wg::kRowBytes + step * 32,
                        right = slab + kLeftBytes + step * 16 * wg::kRowBytes;
    wg::multiply<kBf16, true>(sums, wg::describe(left), wg::describe(right, kHalfBytes), add || step > 0);
  }
  wg::commit_products();
}

/// Columns [8 kFirst, 8 kFirst + 64) of the tile, bias and activation on them. A warp's 16 rows go through shared memory,
/// so that they are stored in whole lines.
template <class T, int kFirst>
__device__ __forceinline__ void write_half(const Gemm& g, const Tile& sums, const float* bias, T* c,
                                           int64_t row0, int64_t column0, char* staging) {
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

template <class T, bool kBf16, int kSplit>
__global__ void __launch_bounds__(group::kThreads, 1)
    group_kernel(Gemm g, const T* a, const T* b, const float* bias, T* c) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  extern __shared__ __align__(1024) char memory[];
  const int thread = static_cast<int>(threadIdx.x), warpgroup_index = thread / 128;
  const group::Share<kSplit, kDepth> share(g);
  if constexpr (kSplit > 1) streaming::cluster_arrive();
  Slabs copies(g, a + share.entry * g.m * g.k, b + share.entry * g.k * g.n, share.row0, share.column0,
               share.k0, share.k_end);
  const std::uint32_t base = wg::shared_of(memory);
  Tile sums = {};
  streaming::follow();
  // Before the copies: a load behind them comes back when all of them have, and the first slab would wait for the last.
  // Adding -0 changes nothing.
  float mine = -0.0F;
  if (bias && thread < kTile && share.column0 + thread < g.n) mine = bias[share.column0 + thread];
#pragma unroll
  for (int stage = 0; stage < kStages - 2; ++stage) copies.copy_next(base + stage * kSlabBytes, a);
  auto* added = reinterpret_cast<float*>(memory + kRingBytes + group::kInboxBytes);
  if (thread < kTile) added[thread] = mine;
  int stage = 0;
  for (int slab = 0; slab < share.slabs; ++slab) {
    wg::await_copies<kStages - 3>();
    wg::show_to_products();
    __syncthreads();  // the slab is there for all, and the products of the one before the last are done
    use_slab<kBf16>(sums, base + stage * kSlabBytes, warpgroup_index, true);
    copies.copy_next(base + (stage + kStages - 2) % kStages * kSlabBytes, a);
    wg::await_products<1>();
    stage = (stage + 1) % kStages;
  }
  wg::await_products<0>();
  T* out = c + share.entry * g.m * g.n;
  if constexpr (kSplit == 1) {
    __syncthreads();  // bias is there, and nobody uses the ring any more
    write_half<T, 0>(g, sums, added, out, share.row0, share.column0, memory);
    write_half<T, 8>(g, sums, added, out, share.row0, share.column0, memory + kLeftBytes);
  } else {
    group::trade_halves(sums, memory + kRingBytes, share.rank);
    if (share.rank == 0) {
      write_half<T, 0>(g, sums, added, out, share.row0, share.column0, memory);
    } else {
      write_half<T, 8>(g, sums, added, out, share.row0, share.column0, memory);
    }
  }
#endif
}

template <class T, bool kBf16>
fulcrum_status launch_halves(const Gemm& g, const GemmOperands& operands, int split, cudaStream_t stream) {
  return split == 1 ? group::launch<group_kernel<T, kBf16, 1>, 1, kBytes, T>(g, operands, stream)
                    : group::launch<group_kernel<T, kBf16, 2>, 2, kBytes, T>(g, operands, stream);
}

}  // namespace

bool group_takes(const Gemm& g, const GemmOperands& operands, int products) {
  constexpr int64_t kMostEntries = 65535, kMost = std::numeric_limits<int32_t>::max();
  const int64_t least_k = products > 1 ? tf32::kLeftOut + 2 : 1;  // K + 8 roundings of a term are allowed
  const auto bits = reinterpret_cast<uintptr_t>(operands.a) | reinterpret_cast<uintptr_t>(operands.b) |
                    reinterpret_cast<uintptr_t>(operands.c);
  const int64_t tiles = (g.m + kTile - 1) / kTile * ((g.n + kTile - 1) / kTile);
  const int64_t vector = wg::kChunkBytes / static_cast<int64_t>(bytes_of(g.element));
  return available() && device().major == 9 && device().minor == 0 && bits % wg::kChunkBytes == 0 &&
         g.k >= least_k && g.k < kMost / 2 && g.k % vector == 0 && g.n % vector == 0 &&
         g.batch <= kMostEntries && tiles <= kMost / 2;
}

int group_split_for(const Gemm& g) {
  const int64_t tiles = (g.m + kTile - 1) / kTile * ((g.n + kTile - 1) / kTile) * g.batch;
  return tiles * 2 <= device().sms && g.k > kDepth ? 2 : 1;
}

fulcrum_status enqueue_group(const Gemm& g, const GemmOperands& operands, const GroupWay& way,
                             cudaStream_t stream) {
  if (g.outputs() == 0) return done();
  if (g.element == Element::f32) return enqueue_group_f32(g, operands, way, stream);
  return g.element == Element::bf16 ? launch_halves<__nv_bfloat16, true>(g, operands, way.split, stream)
                                    : launch_halves<__half, false>(g, operands, way.split, stream);
}

}  // namespace fulcrum::backends::cuda
