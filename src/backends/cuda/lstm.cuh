// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// What the kernels of lstm_cell and lstm_sequence share. The products of a gate are added in eight chains of fmas: quad
// q (four neighbours in k) belongs to chain q mod 8, inputs come before hidden units, and the chains are then added as a
// tree of 4, 2, 1, the bias last. Every kernel keeps to that, so the bits of an output depend on its own row and weights
// alone, not on the batch, the tile or the number of steps in a launch.
#pragma once

#include "backends/cuda/functors.h"
#include "backends/cuda/streaming.cuh"

namespace fulcrum::backends::cuda::lstm {

inline constexpr int kWarp = 32;
inline constexpr int kChains = 8;
inline constexpr int kGates = 4;  // input, forget, cell, output
inline constexpr int kCellGate = 2;
inline constexpr unsigned kEveryLane = 0xFFFFFFFFU;

/// A call of lstm_cell. next_c may be c: the thread that reads an element writes it.
struct Cell {
  const float *x, *h, *c, *input_weights, *hidden_weights, *bias;
  float *next_h, *next_c;
  int64_t batch, inputs, hidden;
};

/// A call of lstm_sequence: x is [steps, batch, inputs]; cell.next_h takes [steps, batch, hidden].
struct Sequence {
  Cell cell;
  int64_t steps;
};

/// Ways to do it: by its shape; warps with one batch row, or with 4, 8 or 16; tiles; tensor cores.
enum class Form { best, row, wide4, wide8, wide16, tiled, tensor };

/// Enqueues `count` calls; defined with the kernels of lstm_cell.
fulcrum_status enqueue_cell(const Cell& cell, Form form, void* stream, int64_t count);

/// Whether rows of the operands are whole quads at addresses of 16 bytes.
inline bool has_quads(const Cell& cell) {
  const auto bits = reinterpret_cast<uintptr_t>(cell.x) | reinterpret_cast<uintptr_t>(cell.h) |
                    reinterpret_cast<uintptr_t>(cell.input_weights) |
                    reinterpret_cast<uintptr_t>(cell.hidden_weights);
  return bits % sizeof(float4) == 0 && cell.inputs % 4 == 0 && cell.hidden % 4 == 0;
}

/// Quad `quad` of a row of n floats. kWhole: it is there, at an address of 16 bytes; else what lies past the end is zero.
template <bool kWhole>
__device__ __forceinline__ float4 load_quad(const float* row, int64_t n, int64_t quad) {
  const float* at = row + 4 * quad;
  if constexpr (kWhole) {
    return *reinterpret_cast<const float4*>(at);
  } else {
    const int64_t left = n - 4 * quad;
    return make_float4(left > 0 ? at[0] : 0, left > 1 ? at[1] : 0, left > 2 ? at[2] : 0,
                       left > 3 ? at[3] : 0);
  }
}

__device__ __forceinline__ float add_quad(float4 a, float4 b, float sum) {
  sum = __fmaf_rn(a.x, b.x, sum);
  sum = __fmaf_rn(a.y, b.y, sum);
  sum = __fmaf_rn(a.z, b.z, sum);
  return __fmaf_rn(a.w, b.w, sum);
}

/// Adds the chains, which are the lanes' low three bits, for kCount sums. Up to eight: sum i ends as the first in the
/// lanes of chains i * 8 / kCount and on. More: chain c has those from c * kCount / 8 on.
template <int kCount, int kOffset = kChains / 2, int kSize>
__device__ __forceinline__ void add_chains(float (&sum)[kSize], int chain) {
  constexpr int kHalf = kCount / 2;
  if constexpr (kCount == 1) {
    sum[0] += __shfl_xor_sync(kEveryLane, sum[0], kOffset);
  } else {
#pragma unroll
    for (int i = 0; i < kHalf; ++i) {
      const float sent = chain & kOffset ? sum[i] : sum[i + kHalf];
      const float kept = chain & kOffset ? sum[i + kHalf] : sum[i];
      sum[i] = kept + __shfl_xor_sync(kEveryLane, sent, kOffset);
    }
  }
  if constexpr (kOffset > 1) add_chains<kCount == 1 ? 1 : kHalf, kOffset / 2>(sum, chain);
}

/// The tree of add_chains() over values in one thread.
__device__ __forceinline__ float sum_of_chains(const float (&sum)[kChains]) {
  return ((sum[0] + sum[4]) + (sum[2] + sum[6])) + ((sum[1] + sum[5]) + (sum[3] + sum[7]));
}

/// What a unit becomes.
struct Next {
  float c, h;
};

__device__ __forceinline__ float activate(float sum, bool is_cell) {
  return is_cell ? streaming::Tanh{}(sum) : streaming::Sigmoid{}(sum);
}

__device__ __forceinline__ Next next_of(float input, float forget, float cell, float output, float before) {
  const float c = __fmaf_rn(input, cell, forget * before);
  return Next{c, output * streaming::Tanh{}(c)};
}

/// The same where the sum of a gate is in lane first + gate * stride, and each of these lanes wants the result.
__device__ __forceinline__ Next next_of(float sum, bool is_cell, int first, int stride, float before) {
  const float gate = activate(sum, is_cell);
  const float input = __shfl_sync(kEveryLane, gate, first);
  const float forget = __shfl_sync(kEveryLane, gate, first + stride);
  const float cell = __shfl_sync(kEveryLane, gate, first + 2 * stride);
  const float output = __shfl_sync(kEveryLane, gate, first + 3 * stride);
  return next_of(input, forget, cell, output, before);
}

}  // namespace fulcrum::backends::cuda::lstm
