// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// See group_gemm.h: the product of f32 operands. Tensor cores take f32 as tf32, of 11 bits, and want rows along k of
// those, which B's are not. So the transposed product is made: B's columns are the left operand, which registers hold,
// read from shared memory in any order, and A's rows are the right one. A CTA of two warpgroups makes 128 rows and 128
// columns, 64 columns each.
//
// Three products for one: an element is its upper 11 bits and a rest, both of tf32, and of the four products of two
// elements that of the rests is left out. The tensor cores' sums lose bits as they grow, so that every kBlock terms they
// are added to sums in f32. An Inf makes a rest of NaN: tiles in which a sum is not finite are made again by fma.
#include "backends/cuda/group_gemm.cuh"
#include "backends/cuda/tf32_parts.h"

namespace fulcrum::backends::cuda {
namespace {

namespace wg = warpgroup;
using group::kThreads, group::kTile, group::Tile;

constexpr int kDepth = 32;
constexpr int kBlock = 2 * kDepth;
constexpr int kPitch = kTile + 8;  // floats from term to term of B: the lanes of a load meet all banks
constexpr int kRowsBytes = kTile * wg::kRowBytes, kSlabBytes = kRowsBytes + kDepth * kPitch * 4;
static_assert(kSlabBytes % 1024 == 0);

/// What a CTA has in shared memory: the ring of slabs, the rests of the rows of three slabs, and its inbox.
template <int kProducts>
struct Memory {
  static constexpr int kStages = kProducts == 1 ? 5 : 4, kRests = kProducts == 1 ? 0 : 3;
  static constexpr int kRingBytes = kStages * kSlabBytes, kInboxAt = kRingBytes + kRests * kRowsBytes;
  static constexpr int kBytes = kInboxAt + group::kInboxBytes;
  /// Of a slab; in turn, because those of the two before may still be read.
  static constexpr int rests_at(int slab) { return kRingBytes + (kRests > 0 ? slab % 3 * kRowsBytes : 0); }
};

/// To tf32, as cvt.rna does, which takes longer. Bits below those of tf32 are not looked at.
__device__ __forceinline__ std::uint32_t tf32_of(float value) {
  const std::uint32_t bits = __float_as_uint(value);
  return isnan(value) ? bits : bits + 0x1000U;
}
__device__ __forceinline__ float rest_of(float value) { return value - tf32::cut(value); }

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
  /// The rests of the elements of A that this thread copied itself, and so sees before anyone else does.
  __device__ __forceinline__ void split_rows(const char* slab, char* rests) const {
#pragma unroll
    for (int i = 0; i < kTile / 32; ++i) {
      const std::uint32_t at = a_to + i * 32 * wg::kRowBytes;
      const float4 x = *reinterpret_cast<const float4*>(slab + at);
      *reinterpret_cast<float4*>(rests + at) = {rest_of(x.x), rest_of(x.y), rest_of(x.z), rest_of(x.w)};
    }
  }
};

/// A thread's elements of B in a slab, 16 columns a warp, as the tensor cores take them.
template <int kProducts>
struct LeftOperands {
  static constexpr int kSteps = kDepth / 8;
  std::uint32_t upper[kSteps][4], rest[kProducts == 1 ? 1 : kSteps][4];

  __device__ __forceinline__ void load(const char* slab, int first_column, int lane) {
    const float* at =
        reinterpret_cast<const float*>(slab + kRowsBytes) + lane % 4 * kPitch + first_column + lane / 4;
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        const float value = at[(step * 8 + e / 2 * 4) * kPitch + e % 2 * 8];
        if constexpr (kProducts == 1) {
          upper[step][e] = tf32_of(value);
        } else {
          const float most = tf32::rounded(value);
          upper[step][e] = __float_as_uint(most);
          rest[step][e] = __float_as_uint(tf32::rest(value, most));
        }
      }
    }
  }
  /// Begins the products of a slab.
  __device__ __forceinline__ void multiply(Tile& sums, std::uint32_t slab, std::uint32_t rests) const {
    wg::begin_products();
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
      const std::uint64_t rows = wg::describe(slab + step * 32);
      if constexpr (kProducts == 3) {
        wg::multiply_tf32(sums, rest[step], rows);
        wg::multiply_tf32(sums, upper[step], wg::describe(rests + step * 32));
      }
      wg::multiply_tf32(sums, upper[step], rows);
    }
    wg::commit_products();
  }
  /// Behind the wait for the products: until here the registers are theirs.
  __device__ __forceinline__ void release() const {
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
      hold(upper[step]);
      if constexpr (kProducts == 3) hold(rest[step]);
    }
  }

 private:
  static __device__ __forceinline__ void hold(const std::uint32_t (&four)[4]) {
    asm volatile("" ::"r"(four[0]), "r"(four[1]), "r"(four[2]), "r"(four[3]));
  }
};

__device__ __forceinline__ void move_sums(Tile& from, Tile& to) {
#pragma unroll
  for (int j = 0; j < 16; ++j) {
#pragma unroll
    for (int e = 0; e < 4; ++e) {
      to[j][e] += from[j][e];
      from[j][e] = 0;
    }
  }
}
template <int kFirst, int kCount>
__device__ __forceinline__ bool are_finite(const Tile& sums) {
  bool finite = true;
#pragma unroll
  for (int j = kFirst; j < kFirst + kCount; ++j) {
#pragma unroll
    for (int e = 0; e < 4; ++e) finite = finite && isfinite(sums[j][e]);
  }
  return finite;
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

/// The same rows by one chain of fma for each output.
__device__ __forceinline__ void write_chains(const Gemm& g, const float* a, const float* b, const float* bias,
                                             int rows, float* c, int64_t row0, int64_t column0) {
  const int64_t column = column0 + threadIdx.x % kTile;
  if (column >= g.n) return;
  for (int64_t row = row0 + threadIdx.x / kTile; row < min(g.m, row0 + rows); row += kThreads / kTile) {
    float sum = 0;
#pragma unroll 1
    for (int64_t k = 0; k < g.k; ++k) sum = __fmaf_rn(a[row * g.k + k], b[k * g.n + column], sum);
    c[row * g.n + column] = finished(bias ? sum + bias[column] : sum, g.activation);
  }
}

template <int kSplit, int kProducts>
__global__ void __launch_bounds__(kThreads, 1)
    group_f32_kernel(Gemm g, const float* a, const float* b, const float* bias, float* c) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  using Memory = Memory<kProducts>;
  constexpr int kStages = Memory::kStages;
  extern __shared__ __align__(1024) char memory[];
  const int thread = static_cast<int>(threadIdx.x), warp = thread / 32, lane = thread % 32;
  const group::Share<kSplit, kDepth> share(g);
  if constexpr (kSplit > 1) streaming::cluster_arrive();
  a += share.entry * g.m * g.k;
  b += share.entry * g.k * g.n;
  c += share.entry * g.m * g.n;
  Slabs copies(g, a, b, share.row0, share.column0, share.k0, share.k_end);
  const std::uint32_t base = wg::shared_of(memory);
  Tile sums = {}, totals = {};
  streaming::follow();
  const int column = warp * 16 + lane / 4;
  float added[2];  // asked for before the copies; adding -0 changes nothing
#pragma unroll
  for (int side = 0; side < 2; ++side) {
    const int64_t at = share.column0 + column + side * 8;
    added[side] = bias && at < g.n ? bias[at] : -0.0F;
  }
#pragma unroll
  for (int stage = 0; stage < kStages - 1; ++stage) copies.copy_next(base + stage * kSlabBytes, a);

  // A slab, as soon as it is there: its rests are made, then all threads see it.
  const auto take_slab = [&](int slab, LeftOperands<kProducts>& left) {
    char* at = memory + slab % kStages * kSlabBytes;
    if constexpr (kProducts == 3) copies.split_rows(at, memory + Memory::rests_at(slab));
    wg::show_to_products();
    __syncthreads();
    left.load(at, warp * 16, lane);
  };
  LeftOperands<kProducts> even = {}, odd = {};
  wg::await_copies<kStages - 2>();
  if (share.slabs > 0) take_slab(0, even);
  // While the products of a slab run, the next one is taken. The barrier in there comes behind everyone's wait for the
  // products of the slab before, whose place, and that of its rests, is free from then on.
  const auto turn = [&](int slab, const LeftOperands<kProducts>& left, LeftOperands<kProducts>& next) {
    left.multiply(sums, base + slab % kStages * kSlabBytes, base + Memory::rests_at(slab));
    wg::await_products<1>();
    next.release();
    wg::await_copies<kStages - 3>();
    if (slab + 1 < share.slabs) take_slab(slab + 1, next);
    copies.copy_next(base + (slab + kStages - 1) % kStages * kSlabBytes, a);
    if constexpr (kProducts == 3) {
      if (slab % (kBlock / kDepth) == kBlock / kDepth - 1 || slab + 1 == share.slabs) {
        wg::await_products<0>();
        move_sums(sums, totals);
      }
    }
  };
#pragma unroll 1
  for (int slab = 0; slab < share.slabs; slab += 2) {
    turn(slab, even, odd);
    if (slab + 1 < share.slabs) turn(slab + 1, odd, even);
  }
  wg::await_products<0>();
  even.release();
  odd.release();
  Tile& result = kProducts == 3 ? totals : sums;
  bool finite = true;
  if constexpr (kSplit == 1) {
    if constexpr (kProducts == 3) finite = are_finite<0, 16>(result);
    __syncthreads();  // nobody uses the ring any more
    stage_half<0>(g, result, added, column, memory);
    stage_half<8>(g, result, added, column, memory + 64 * kStagedRowBytes);
  } else {
    group::trade_halves(result, memory + Memory::kInboxAt, share.rank);
    if (share.rank == 0) {
      if constexpr (kProducts == 3) finite = are_finite<0, 8>(result);
      stage_half<0>(g, result, added, column, memory);
    } else {
      if constexpr (kProducts == 3) finite = are_finite<8, 8>(result);
      stage_half<8>(g, result, added, column, memory);
    }
  }
  constexpr int kRows = kTile / kSplit;
  const int64_t row0 = share.row0 + share.rank * kRows;
  if (__syncthreads_and(finite) || kProducts == 1) {
    write_staged(g, memory, kRows, c, row0, share.column0);
  } else {
    write_chains(g, a, b, bias, kRows, c, row0, share.column0);
  }
#endif
}

template <int kProducts>
fulcrum_status launch_f32(const Gemm& g, const GemmOperands& operands, int split, cudaStream_t stream) {
  constexpr int kBytes = Memory<kProducts>::kBytes;
  return split == 1 ? group::launch<group_f32_kernel<1, kProducts>, 1, kBytes, float>(g, operands, stream)
                    : group::launch<group_f32_kernel<2, kProducts>, 2, kBytes, float>(g, operands, stream);
}

}  // namespace

fulcrum_status enqueue_group_f32(const Gemm& g, const GemmOperands& operands, const GroupWay& way,
                                 cudaStream_t stream) {
  return way.products == 1 ? launch_f32<1>(g, operands, way.split, stream)
                           : launch_f32<3>(g, operands, way.split, stream);
}

}  // namespace fulcrum::backends::cuda
