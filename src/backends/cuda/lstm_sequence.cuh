// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// All steps of lstm_sequence in one launch. A cluster takes a few batch rows, a warp of it one hidden unit, whose
// weights stay in the registers of its lanes (four gates, eight chains: lstm.cuh). At the end of a step a CTA sends the
// new hidden states of its units to all CTAs of the cluster, as one block each, and comes to the cluster's barrier; while
// the others' blocks are on their way a warp adds up the inputs of the next step. Clusters need nothing of each other.
#pragma once

#include "backends/cuda/bulk.cuh"
#include "backends/cuda/fold.cuh"
#include "backends/cuda/lstm.cuh"

namespace fulcrum::backends::cuda::lstm {

/// Up to 32 kInputRounds inputs and 32 kHiddenRounds hidden units, kRows batch rows.
template <int kRows, int kInputRounds, int kHiddenRounds>
struct ClusterShape {
  static constexpr int kUnits = kHiddenRounds <= 4 ? 8 : 16;  // of a CTA: its warps
  static constexpr int kThreads = kUnits * kWarp;
  static constexpr int kMostCtas = 32 * kHiddenRounds / kUnits;
  static constexpr int kInputWidth = 32 * kInputRounds;
  // A block is a CTA's units of all rows, [row][unit]. Blocks are so far apart that lanes meet in no bank.
  static constexpr int kBlock = kRows * kUnits, kBlockStride = kRows == 1 ? kBlock : kBlock + kUnits;
  static constexpr int kBlockQuads = kBlock / 4;
  static constexpr int kState = kMostCtas * kBlockStride;
  static_assert(kMostCtas * kBlockQuads <= kThreads);  // a quad a thread when blocks are sent
};

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

/// This lane's part of the sums over one operand of one step: row r's quad of round i lies at
/// first[i * kRoundStride + r * kRowStride].
template <int kRows, int kRounds, int kRoundStride, int kRowStride>
__device__ __forceinline__ void add_operand(const float* first, const float4 (&weight)[kRounds],
                                            float (&sum)[kRows]) {
#pragma unroll
  for (int i = 0; i < kRounds; ++i) {
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      const float4 value = *reinterpret_cast<const float4*>(first + i * kRoundStride + r * kRowStride);
      sum[r] = add_quad(weight[i], value, sum[r]);
    }
    // Loads that run further ahead than this want registers that hold weights.
    if (kRows * kRounds >= 32 || (kRows * kRounds > 16 && i % 2 == 1)) asm volatile("" ::: "memory");
  }
}

/// Asks for the inputs of step t; rows past the end are the last again.
template <int kRows, int kWidth>
__device__ __forceinline__ void copy_inputs(const Sequence& s, int t, int64_t row0,
                                            float (&to)[kRows][kWidth]) {
  const Cell& cell = s.cell;
  const int lane = threadIdx.x % kWarp, warps = blockDim.x / kWarp;
  if (t >= s.steps) return;
  for (int r = threadIdx.x / kWarp; r < kRows; r += warps) {
    const float* from = cell.x + (int64_t{t} * cell.batch + min(row0 + r, cell.batch - 1)) * cell.inputs;
    for (int k = lane; k < cell.inputs; k += kWarp) {
      const auto place = static_cast<unsigned>(__cvta_generic_to_shared(&to[r][k]));
      asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(place), "l"(from + k) : "memory");
    }
  }
}

__device__ __forceinline__ void await_copies() { asm volatile("cp.async.wait_all;" ::: "memory"); }

#if __CUDA_ARCH__ >= 900

/// The address that a place of this CTA's shared memory has in CTA `rank` of the cluster.
__device__ __forceinline__ unsigned address_in(int rank, const void* here) {
  unsigned there;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;"
               : "=r"(there)
               : "r"(streaming::shared_address(here)), "r"(rank));
  return there;
}

__device__ __forceinline__ void send(unsigned there, float4 value) {
  asm volatile("st.shared::cluster.v4.f32 [%0], {%1, %2, %3, %4};" ::"r"(there), "f"(value.x), "f"(value.y),
               "f"(value.z), "f"(value.w)
               : "memory");
}

#else  // never launched

__device__ __forceinline__ unsigned address_in(int, const void*) { return 0; }
__device__ __forceinline__ void send(unsigned, float4) {}

#endif

/// `cluster` CTAs. Step t's hidden states go into state[(t + 1) % 2]. That two are enough: a CTA comes to the barrier of
/// step t when all its warps have read the state before those of step t, so who is through it may write over that.
template <int kRows, int kInputRounds, int kHiddenRounds>
__global__ void __launch_bounds__(ClusterShape<kRows, kInputRounds, kHiddenRounds>::kThreads, 1)
    lstm_sequence_cluster(Sequence s, int cluster) {
  using S = ClusterShape<kRows, kInputRounds, kHiddenRounds>;
  __shared__ __align__(16) float inputs[2][kRows][S::kInputWidth];
  __shared__ __align__(16) float state[2][S::kState];
  const Cell& cell = s.cell;
  const int lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp;
  const int chain = lane % kChains, gate = lane / kChains;
  const int rank = static_cast<int>(blockIdx.x) % cluster;
  const int64_t row0 = static_cast<int64_t>(blockIdx.x) / cluster * kRows;
  const int unit = rank * S::kUnits + warp;
  const bool has_unit = unit < cell.hidden;
  const int64_t weight_row = gate * cell.hidden + (has_unit ? unit : 0);
  streaming::follow();

  float4 input_weight[kInputRounds], hidden_weight[kHiddenRounds];
  load_weights(cell.input_weights + weight_row * cell.inputs, static_cast<int>(cell.inputs), chain,
               input_weight);
  load_weights(cell.hidden_weights + weight_row * cell.hidden, static_cast<int>(cell.hidden), chain,
               hidden_weight);
  const float bias = cell.bias[weight_row];
  float *all_states = &state[0][0], *all_inputs = &inputs[0][0][0];
  for (int i = threadIdx.x; i < 2 * S::kState; i += S::kThreads) {
    const int in_block = i % S::kState % S::kBlockStride, r = in_block / S::kUnits;
    const int64_t k = i % S::kState / S::kBlockStride * S::kUnits + in_block % S::kUnits;
    const bool is_first =
        i < S::kState && r < kRows && k < cell.hidden;  // all else is zero, and stays if no unit's
    all_states[i] = is_first ? cell.h[min(row0 + r, cell.batch - 1) * cell.hidden + k] : 0;
  }
  for (int i = threadIdx.x; i < 2 * kRows * S::kInputWidth; i += S::kThreads) {
    if (i % S::kInputWidth >= cell.inputs) all_inputs[i] = 0;
  }
  copy_inputs(s, 0, row0, inputs[0]);
  copy_inputs(s, 1, row0, inputs[1]);
  const int own = chain / (kChains / kRows);  // whose sum this lane will have
  const int64_t row = row0 + own;
  const bool keeps =
      has_unit && gate == 0 && chain % (kChains / kRows) == 0;  // lanes with the same sum: the first
  float c = has_unit ? cell.c[min(row, cell.batch - 1) * cell.hidden + unit] : 0;
  await_copies();
  __syncthreads();              // everything in shared memory is there
  streaming::cluster_arrive();  // and so are all CTAs, before somebody sends them a block
  streaming::cluster_wait();

  // Where this lane reads hidden states, and what this thread sends where.
  const int first_quad = 4 * chain / S::kUnits * S::kBlockStride + 4 * chain % S::kUnits;
  constexpr int kRoundStride = 32 / S::kUnits * S::kBlockStride;
  const int to = static_cast<int>(threadIdx.x) / S::kBlockQuads;
  const int sent = rank * S::kBlockStride + 4 * (static_cast<int>(threadIdx.x) % S::kBlockQuads);
  const bool sends = to < cluster && to != rank;  // its own block is in place

  float sum[kRows] = {};
  add_operand<kRows, kInputRounds, 32, S::kInputWidth>(&inputs[0][0][4 * chain], input_weight, sum);
  const auto steps = static_cast<int>(s.steps);
  float* y = cell.next_h + row * cell.hidden + unit;
  for (int t = 0; t < steps; ++t) {
    add_operand<kRows, kHiddenRounds, kRoundStride, S::kUnits>(&state[t % 2][first_quad], hidden_weight, sum);
    add_chains<kRows>(sum, chain);
    const Next next = next_of(sum[0] + bias, gate == kCellGate, chain, kChains, c);
    c = next.c;
    const int after = (t + 1) % 2;
    if (keeps) state[after][rank * S::kBlockStride + own * S::kUnits + warp] = next.h;
    await_copies();
    __syncthreads();
    if (t + 1 < steps) {
      if (sends)
        send(address_in(to, &state[after][sent]), *reinterpret_cast<const float4*>(&state[after][sent]));
      streaming::cluster_arrive();
    }
    if (keeps && row < cell.batch) *y = next.h;
    y += cell.batch * cell.hidden;
    if (t + 1 == steps) break;
    copy_inputs(s, t + 2, row0, inputs[t % 2]);
#pragma unroll
    for (int r = 0; r < kRows; ++r) sum[r] = 0;
    add_operand<kRows, kInputRounds, 32, S::kInputWidth>(&inputs[after][0][4 * chain], input_weight, sum);
    streaming::cluster_wait();
  }
  if (keeps && row < cell.batch) cell.next_c[row * cell.hidden + unit] = c;
}

}  // namespace fulcrum::backends::cuda::lstm
