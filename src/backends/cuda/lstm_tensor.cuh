// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// lstm_cell for large networks on tensor cores, in fp32 by three products of tf32: a factor is hi + lo, and hi hi +
// hi lo + lo hi loses less than fp32 rounding does. Tiles, slabs and the last part are those of lstm_cell.cuh; a warp
// takes octets of k where a chain takes quads, so the bits are other ones than the chains', and again depend on the row
// and the weights alone. Inf has no lo: sums that are not finite are computed again, plainly.
#pragma once

#include "backends/cuda/lstm_cell.cuh"

namespace fulcrum::backends::cuda::lstm {

/// hi keeps the bits of tf32, lo the rest, rounded to what the tensor core will read of it.
struct Parts {
  uint32_t hi, lo;

  __device__ __forceinline__ explicit Parts(float x) {
    hi = __float_as_uint(x) & 0xFFFFE000U;
    lo = __float_as_uint(x - __uint_as_float(hi)) + 0x1000U;
  }
};

__device__ __forceinline__ void multiply(float (&sum)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
  asm volatile(
      "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};"
      : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

inline constexpr int kWeightTiles = Tile<1>::kColumns / 16;  // of 16 columns, weights being the left operand

/// Sums of a warp: [16 columns][8 batch rows] each.
template <int kBatchTiles>
using TensorSums = float[kWeightTiles][kBatchTiles][4];

/// This warp's octets of one slab.
template <int kBatchTiles>
__device__ __forceinline__ void add_octets(const float* slab, TensorSums<kBatchTiles>& sum) {
  using T = Tile<kBatchTiles>;
  const int lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp;
  const float* values = slab + lane / 4 * T::kPitch + lane % 4;
  const float* weights = values + T::kRows * T::kPitch;
#pragma unroll
  for (int octet = 0; octet < T::kSlabQuads / 2; octet += kCtaWarps) {
    const int k = 8 * (octet + warp);
    uint32_t a_hi[kWeightTiles][4], a_lo[kWeightTiles][4];
#pragma unroll
    for (int m = 0; m < kWeightTiles; ++m) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const Parts parts(weights[(16 * m + i % 2 * 8) * T::kPitch + k + i / 2 * 4]);
        a_hi[m][i] = parts.hi, a_lo[m][i] = parts.lo;
      }
    }
#pragma unroll
    for (int n = 0; n < kBatchTiles; ++n) {
      const Parts first(values[8 * n * T::kPitch + k]), second(values[8 * n * T::kPitch + k + 4]);
      const uint32_t b_hi[2] = {first.hi, second.hi}, b_lo[2] = {first.lo, second.lo};
#pragma unroll
      for (int m = 0; m < kWeightTiles; ++m) multiply(sum[m][n], a_lo[m], b_hi);
#pragma unroll
      for (int m = 0; m < kWeightTiles; ++m) multiply(sum[m][n], a_hi[m], b_lo);
#pragma unroll
      for (int m = 0; m < kWeightTiles; ++m) multiply(sum[m][n], a_hi[m], b_hi);
    }
  }
}

/// Puts this warp's sums where share_sums() puts those of a chain; a barrier of the CTA must follow.
template <int kBatchTiles>
__device__ __forceinline__ void share_tensor_sums(const TensorSums<kBatchTiles>& sum, float* memory) {
  using T = Tile<kBatchTiles>;
  const int lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp;
#pragma unroll
  for (int m = 0; m < kWeightTiles; ++m) {
#pragma unroll
    for (int n = 0; n < kBatchTiles; ++n) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int row = 8 * n + 2 * (lane % 4) + i % 2, column = 16 * m + lane / 4 + i / 2 * 8;
        memory[(warp * T::kRows + row) * T::kSumPitch + column] = sum[m][n][i];
      }
    }
  }
}

/// More of one chain of fmas, for sums with NaN or Inf among their terms.
__device__ __noinline__ float add_plainly(const float* weights, const float* values, int64_t n, float sum) {
  for (int64_t k = 0; k < n; ++k) sum = __fmaf_rn(weights[k], values[k], sum);
  return sum;
}

template <int kBatchTiles>
__device__ __forceinline__ void finish_tensor_tile(const Cell& cell, int64_t row0, int64_t unit0,
                                                   const float* memory) {
  using T = Tile<kBatchTiles>;
  for (int pair = threadIdx.x; pair < T::kRows * T::kUnits; pair += kCtaWarps * kWarp) {
    const int64_t row = row0 + pair / T::kUnits, unit = unit0 + pair % T::kUnits;
    if (row >= cell.batch || unit >= cell.hidden) continue;
    float gates[kGates];
#pragma unroll
    for (int g = 0; g < kGates; ++g) {
      const int64_t weight_row = g * cell.hidden + unit;
      float sum = shared_sum<kBatchTiles>(memory, pair / T::kUnits, g * T::kUnits + pair % T::kUnits);
      if (!(fabsf(sum) < INFINITY)) {
        sum = add_plainly(cell.input_weights + weight_row * cell.inputs, cell.x + row * cell.inputs,
                          cell.inputs, 0);
        sum = add_plainly(cell.hidden_weights + weight_row * cell.hidden, cell.h + row * cell.hidden,
                          cell.hidden, sum);
      }
      gates[g] = activate(sum + cell.bias[weight_row], g == kCellGate);
    }
    const int64_t at = row * cell.hidden + unit;
    const Next next = next_of(gates[0], gates[1], gates[2], gates[3], cell.c[at]);
    cell.next_c[at] = next.c;
    cell.next_h[at] = next.h;
  }
}

/// CTA b has unit block b % unit_blocks and 8 kBatchTiles batch rows.
template <bool kAligned, int kBatchTiles>
__global__ void __launch_bounds__(kCtaWarps* kWarp, 1) lstm_cell_tensor(Cell cell, int64_t unit_blocks) {
  using T = Tile<kBatchTiles>;
  extern __shared__ __align__(16) float memory[];
  const int64_t unit0 = blockIdx.x % unit_blocks * T::kUnits, row0 = blockIdx.x / unit_blocks * T::kRows;
  TensorSums<kBatchTiles> sum = {};
  streaming::follow();
  for_each_slab<kAligned, kBatchTiles>(cell, row0, unit0, memory,
                                       [&](const float* slab) { add_octets<kBatchTiles>(slab, sum); });
  share_tensor_sums<kBatchTiles>(sum, memory);
  __syncthreads();
  finish_tensor_tile<kBatchTiles>(cell, row0, unit0, memory);
}

}  // namespace fulcrum::backends::cuda::lstm
