// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// All steps of lstm_sequence in one cooperative launch, for networks whose weights fit the shared memory of all
// multiprocessors but not a cluster: a CTA keeps the weights of 8 hidden units and takes 32 batch rows through all steps,
// as tiles of lstm_cell.cuh. Between steps the CTAs of the same rows meet at a barrier in memory; the inputs of the next
// step are added up before anybody waits there.
#pragma once

#include "backends/cuda/lstm_cell.cuh"

namespace fulcrum::backends::cuda::lstm {

struct GridTile {
  using T = Tile<4>;
  static constexpr int kTerms = 4 * T::kSlabQuads;
  static constexpr int kStages = 4, kStage = T::kRows * T::kPitch;  // floats
  static constexpr int kWordStride = 32;                            // barriers, a cache line apart

  __host__ __device__ static int64_t slabs(int64_t terms) { return (terms + kTerms - 1) / kTerms; }
  __host__ __device__ static int64_t weight_pitch(const Cell& cell) {
    return kTerms * (slabs(cell.inputs) + slabs(cell.hidden)) + 4;
  }
  static int64_t bytes(const Cell& cell) {
    return int64_t{sizeof(float)} * (kStages * kStage + T::kColumns * weight_pitch(cell));
  }
  static_assert(kChains * T::kRows * T::kSumPitch <= kStages * kStage);
  static_assert(T::kRows * T::kUnits == kCtaWarps * kWarp);  // a thread has one unit of one row
};

/// `count` CTAs meet. Each meeting adds 2^31 to the word in all, so that its top bit turns when the last has come; the
/// next, in this launch or a later one, finds it ready.
struct Meeting {
  uint32_t* word;
  uint32_t added;  // by this CTA
  uint32_t before = 0;

  static constexpr uint32_t kTop = 0x80000000U;

  __device__ Meeting(uint32_t* of, bool is_first, uint32_t count)
      : word(of), added(is_first ? kTop - (count - 1) : 1) {}

  /// All that this CTA wrote is seen by those that wait.
  __device__ void arrive() {
    __syncthreads();
    if (threadIdx.x != 0) return;
    __threadfence();
    before = atomicAdd(word, added);
  }
  __device__ void wait() const {
    constexpr uint32_t kMostPolls = 1U << 25;  // tens of seconds: an error is better than a hang
    if (threadIdx.x == 0) {
      for (uint32_t polls = 0;; ++polls) {
        uint32_t now;
        asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(now) : "l"(word) : "memory");
        if ((before ^ now) & kTop) break;
        if (polls == kMostPolls) __trap();
      }
    }
    __syncthreads();
  }
};

/// Sums of one operand of one step: rows of [batch, n] from row0 on, in slabs through a ring. Copies go past the L1
/// cache: other CTAs wrote these rows. `right` is the resident weights of the operand. Nobody uses the ring afterwards.
__device__ __forceinline__ void add_operand(const float* rows, int64_t n, int64_t row0, int64_t batch,
                                            float* ring, const float* right, int right_pitch,
                                            float (&sum)[4][8]) {
  using G = GridTile;
  using T = G::T;
  const int quad = threadIdx.x % T::kSlabQuads;
  const int slabs = static_cast<int>(G::slabs(n));
  const auto copy = [&](int slab) {
    const int64_t left = n - slab * G::kTerms - 4 * quad;
    const int64_t at = left > 0 ? slab * G::kTerms + 4 * quad : 0;
    for (int row = threadIdx.x / T::kSlabQuads; slab < slabs && row < T::kRows;
         row += kCtaWarps * kWarp / T::kSlabQuads) {
      copy_quad<true>(ring + slab % G::kStages * G::kStage + row * T::kPitch + 4 * quad,
                      rows + min(row0 + row, batch - 1) * n + at, left);
    }
    asm volatile("cp.async.commit_group;" ::: "memory");  // an empty group keeps the count of those in flight
  };
#pragma unroll 1
  for (int stage = 0; stage < G::kStages - 1; ++stage) copy(stage);
#pragma unroll 1
  for (int slab = 0; slab < slabs; ++slab) {
    asm volatile("cp.async.wait_group %0;" ::"n"(G::kStages - 2) : "memory");
    __syncthreads();  // the slab is there for all, and nobody reads the one before it any more
    copy(slab + G::kStages - 1);
    add_slab<4, T::kPitch>(ring + slab % G::kStages * G::kStage, right + slab * G::kTerms, right_pitch, sum);
  }
  __syncthreads();
}

/// The weights of this CTA's units, columns as in a tile, both operands in whole slabs.
__device__ __forceinline__ void keep_weights(const Cell& cell, int64_t unit0, float* weights, int pitch) {
  using G = GridTile;
  const int input_quads = static_cast<int>(G::slabs(cell.inputs)) * G::T::kSlabQuads;
  for (int column = threadIdx.x / kWarp; column < G::T::kColumns; column += kCtaWarps) {
    const int64_t unit = min(unit0 + column % G::T::kUnits, cell.hidden - 1);
    const int64_t row = column / G::T::kUnits * cell.hidden + unit;
    for (int quad = threadIdx.x % kWarp; 4 * quad < pitch - 4; quad += kWarp) {
      const bool is_input = quad < input_quads;
      const int64_t n = is_input ? cell.inputs : cell.hidden;
      const int64_t at = 4 * (is_input ? quad : quad - input_quads), left = n - at;
      copy_quad<true>(weights + column * pitch + 4 * quad,
                      (is_input ? cell.input_weights : cell.hidden_weights) + row * n + (left > 0 ? at : 0),
                      left);
    }
  }
  asm volatile("cp.async.commit_group;" ::: "memory");
}

/// CTA b has unit block b % unit_blocks and row block b / unit_blocks, whose barrier is words[32 * row block].
__global__ void __launch_bounds__(kCtaWarps* kWarp, 1)
    lstm_sequence_grid(Sequence s, unsigned unit_blocks, uint32_t* words) {
  using G = GridTile;
  using T = G::T;
  extern __shared__ __align__(16) float memory[];
  const Cell& cell = s.cell;
  const int64_t unit0 = static_cast<int64_t>(blockIdx.x % unit_blocks) * T::kUnits;
  const int64_t row0 = static_cast<int64_t>(blockIdx.x / unit_blocks) * T::kRows;
  const int pitch = static_cast<int>(G::weight_pitch(cell));
  float* weights = memory + G::kStages * G::kStage;
  const float* hidden_weights = weights + G::slabs(cell.inputs) * G::kTerms;
  keep_weights(cell, unit0, weights, pitch);
  const int own_row = threadIdx.x / T::kUnits, own_unit = threadIdx.x % T::kUnits;
  const int64_t row = row0 + own_row, unit = unit0 + own_unit, at = row * cell.hidden + unit;
  const bool exists = row < cell.batch && unit < cell.hidden;
  float bias[kGates];
#pragma unroll
  for (int g = 0; g < kGates; ++g) bias[g] = exists ? cell.bias[g * cell.hidden + unit] : 0;
  float c = exists ? cell.c[at] : 0;
  Meeting meeting(words + blockIdx.x / unit_blocks * G::kWordStride, blockIdx.x % unit_blocks == 0,
                  unit_blocks);

  for (int64_t t = 0; t < s.steps; ++t) {
    float sum[4][8] = {};
    add_operand(cell.x + t * cell.batch * cell.inputs, cell.inputs, row0, cell.batch, memory, weights, pitch,
                sum);
    if (t > 0) meeting.wait();
    const float* before = t == 0 ? cell.h : cell.next_h + (t - 1) * cell.batch * cell.hidden;
    add_operand(before, cell.hidden, row0, cell.batch, memory, hidden_weights, pitch, sum);
    share_sums<4>(sum, memory);
    __syncthreads();
    const Next next = finish_unit<4>(memory, own_row, own_unit, bias, c);
    c = next.c;
    if (exists) cell.next_h[t * cell.batch * cell.hidden + at] = next.h;
    if (t + 1 < s.steps) meeting.arrive();
  }
  if (exists) cell.next_c[at] = c;
}

}  // namespace fulcrum::backends::cuda::lstm
