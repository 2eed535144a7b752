// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// All steps of lstm_sequence in one launch. A cluster takes a few batch rows, a warp of it one hidden unit, whose
// weights stay in the registers of its lanes (four gates, eight chains: lstm.cuh). A step ends with every CTA's new
// hidden states stored into the shared memory of all, and a barrier of the cluster; while it waits there a warp adds up
// the inputs of the next step. Clusters need nothing of each other.
#pragma once

#include "backends/cuda/fold.cuh"
#include "backends/cuda/lstm.cuh"

namespace fulcrum::backends::cuda::lstm {

inline constexpr int kMostClusterWarps = 16;

/// Stores into the shared memory of CTA `rank` of the cluster, at the place `to` has in this one.
__device__ __forceinline__ void store_in(int rank, float* to, float value) {
#if __CUDA_ARCH__ >= 900
  const auto here = static_cast<unsigned>(__cvta_generic_to_shared(to));
  unsigned there;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(here), "r"(rank));
  asm volatile("st.shared::cluster.f32 [%0], %1;" ::"r"(there), "f"(value) : "memory");
#endif
}

/// Steps whose inputs are in shared memory: one is added up, one may still be read by a slower warp, one is there, one
/// on its way.
inline constexpr int kRing = 4;

/// This lane's quads of a row of n weights; zeros past its end.
template <int kRounds>
__device__ __forceinline__ void load_weights(const float* row, int n, int chain, float4 (&weight)[kRounds]) {
  row += 4 * chain;
  n -= 4 * chain;
#pragma unroll
  for (int i = 0; i < kRounds; ++i) {
    const int k = 4 * kChains * i;
    weight[i] = make_float4(k < n ? row[k] : 0, k + 1 < n ? row[k + 1] : 0, k + 2 < n ? row[k + 2] : 0,
                            k + 3 < n ? row[k + 3] : 0);
  }
}

/// This lane's part of the sums over one operand of one step, weights in registers.
template <int kRows, int kRounds>
__device__ __forceinline__ void add_operand(const float (&rows)[kRows][32 * kRounds], int chain,
                                            const float4 (&weight)[kRounds], float (&sum)[kRows]) {
#pragma unroll
  for (int i = 0; i < kRounds; ++i) {
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      const float4 value = *reinterpret_cast<const float4*>(&rows[r][4 * (chain + kChains * i)]);
      sum[r] = add_quad(weight[i], value, sum[r]);
    }
    // Loads that run further ahead than this want registers that hold weights.
    if (kRows * kRounds > 16 && (kRows == 8 || i % 2 == 1)) asm volatile("" ::: "memory");
  }
}

/// Asks for the inputs of step t; rows past the end are the last again.
template <int kRows, int kWidth>
__device__ __forceinline__ void copy_inputs(const Sequence& s, int64_t t, int64_t row0,
                                            float (&to)[kRows][kWidth]) {
  const Cell& cell = s.cell;
  const int lane = threadIdx.x % kWarp, warps = blockDim.x / kWarp;
  if (t >= s.steps) return;
  for (int r = threadIdx.x / kWarp; r < kRows; r += warps) {
    const float* from = cell.x + (t * cell.batch + min(row0 + r, cell.batch - 1)) * cell.inputs;
    for (int k = lane; k < cell.inputs; k += kWarp) {
      const auto place = static_cast<unsigned>(__cvta_generic_to_shared(&to[r][k]));
      asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(place), "l"(from + k) : "memory");
    }
  }
}

__device__ __forceinline__ void await_copies() { asm volatile("cp.async.wait_all;" ::: "memory"); }

/// Up to 32 kInputRounds inputs and 32 kHiddenRounds hidden units; `cluster` CTAs of as many warps as each has units.
template <int kRows, int kInputRounds, int kHiddenRounds>
__global__ void __launch_bounds__(kMostClusterWarps* kWarp) lstm_sequence_cluster(Sequence s, int cluster) {
  constexpr int kInputWidth = 32 * kInputRounds, kWidth = 32 * kHiddenRounds;
  __shared__ __align__(16) float inputs[kRing][kRows][kInputWidth];
  __shared__ __align__(16) float state[2][kRows][kWidth];
  const Cell& cell = s.cell;
  const int lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp;
  const int chain = lane % kChains, gate = lane / kChains;
  const int rank = static_cast<int>(blockIdx.x) % cluster;
  const int64_t row0 = static_cast<int64_t>(blockIdx.x) / cluster * kRows;
  const int unit = rank * static_cast<int>(blockDim.x / kWarp) + warp;
  const bool has_unit = unit < cell.hidden;
  const int64_t weight_row = gate * cell.hidden + (has_unit ? unit : 0);
  streaming::follow();

  float4 input_weight[kInputRounds], hidden_weight[kHiddenRounds];
#pragma unroll
  for (int i = 0; i < kInputRounds; ++i)
    input_weight[i] =
        load_quad<false>(cell.input_weights + weight_row * cell.inputs, cell.inputs, chain + kChains * i);
#pragma unroll
  for (int i = 0; i < kHiddenRounds; ++i)
    hidden_weight[i] =
        load_quad<false>(cell.hidden_weights + weight_row * cell.hidden, cell.hidden, chain + kChains * i);
  const float bias = cell.bias[weight_row];
  for (int i = threadIdx.x; i < kRows * kWidth; i += blockDim.x) {
    const int64_t row = min(row0 + i / kWidth, cell.batch - 1);
    const int k = i % kWidth;
    state[0][i / kWidth][k] = k < cell.hidden ? cell.h[row * cell.hidden + k] : 0;
    state[1][i / kWidth][k] = 0;  // what no unit writes stays zero
  }
  for (int i = threadIdx.x; i < kRing * kRows * kInputWidth; i += blockDim.x) {
    if (i % kInputWidth >= cell.inputs) (&inputs[0][0][0])[i] = 0;  // and what is no input
  }
#pragma unroll 1
  for (int t = 0; t < kRing - 1; ++t) copy_inputs(s, t, row0, inputs[t]);
  const int own = chain / (kChains / kRows);  // whose sum this lane will have
  const int64_t row = row0 + own;
  const bool stores = has_unit && row < cell.batch && lane % (kChains / kRows) == 0;
  float c = has_unit ? cell.c[min(row, cell.batch - 1) * cell.hidden + unit] : 0;
  // Lanes with the same sum share the CTAs that must know it.
  constexpr int kCopies = kWarp / kRows;
  const int copy = gate * (kChains / kRows) + chain % (kChains / kRows);
  await_copies();
  streaming::cluster_arrive();  // all CTAs are there, and everything in shared memory
  streaming::cluster_wait();
  float sum[kRows] = {};
  add_operand(inputs[0], chain, input_weight, sum);

  const auto steps = static_cast<int>(s.steps);
  for (int t = 0; t < steps; ++t) {
    add_operand(state[t % 2], chain, hidden_weight, sum);
    const Next next = next_of(add_chains(sum, chain) + bias, lane, c);
    c = next.c;
    if (t + 1 < steps) {
      // Nobody reads the other state any more: all have passed the last barrier.
      for (int to = copy; has_unit && to < cluster; to += kCopies)
        store_in(to, &state[(t + 1) % 2][own][unit], next.h);
      await_copies();
      streaming::cluster_arrive();
    }
    if (stores && gate == 0) cell.next_h[(int64_t{t} * cell.batch + row) * cell.hidden + unit] = next.h;
    if (t + 1 == steps) break;
    copy_inputs(s, t + kRing - 1, row0, inputs[(t + kRing - 1) % kRing]);
#pragma unroll
    for (int r = 0; r < kRows; ++r) sum[r] = 0;
    add_operand(inputs[(t + 1) % kRing], chain, input_weight, sum);
    streaming::cluster_wait();
  }
  if (stores && gate == 1) cell.next_c[row * cell.hidden + unit] = c;
}

}  // namespace fulcrum::backends::cuda::lstm
