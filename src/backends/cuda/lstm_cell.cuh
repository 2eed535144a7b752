// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// The kernels of lstm_cell (lstm.cuh says in which order they add). A warp takes one hidden unit and a few batch rows,
// its lanes the eight chains and either the four gates or four groups of rows, so that a call is one round trip to
// memory, a few fmas and shuffles. Large calls go in tiles: eight warps, one a chain, over slabs in shared memory.
#pragma once

#include "backends/cuda/lstm.cuh"

namespace fulcrum::backends::cuda::lstm {

inline constexpr int kCtaWarps = 8;

/// Copies one quad; those past the end of a row become zeros.
template <bool kAligned>
__device__ __forceinline__ void copy_quad(float* to_shared, const float* from, int64_t left) {
  const auto to = static_cast<unsigned>(__cvta_generic_to_shared(to_shared));
  if constexpr (kAligned) {
    const int bytes = left > 0 ? 16 : 0;
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(bytes) : "memory");
  } else {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int bytes = left > i ? 4 : 0;
      asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(to + 4 * i),
                   "l"(from + (left > i ? i : 0)), "r"(bytes)
                   : "memory");
    }
  }
}

/// Rounds of 32 terms: kRows batch rows meet one gate of a unit, or all four (kLines). Rows past the end are the last
/// again.
template <bool kWhole, int kLines, int kRows>
struct Rounds {
  const Cell& cell;
  int64_t weight_row, row0;
  int chain, input_rounds;

  /// kCount rounds, all asked for before the first is used.
  template <int kCount>
  __device__ __forceinline__ void add(int first, float (&sum)[kLines * kRows]) const {
    float4 weight[kCount][kLines], value[kCount][kRows];
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      const bool is_input = first + i < input_rounds;
      const int64_t quad = chain + int64_t{kChains} * (is_input ? first + i : first + i - input_rounds);
      const int64_t n = is_input ? cell.inputs : cell.hidden;
      const float* weights = is_input ? cell.input_weights : cell.hidden_weights;
#pragma unroll
      for (int l = 0; l < kLines; ++l)
        weight[i][l] = load_quad<kWhole>(weights + (weight_row + l * cell.hidden) * n, n, quad);
#pragma unroll
      for (int r = 0; r < kRows; ++r) {
        const float* rows = (is_input ? cell.x : cell.h) + min(row0 + r, cell.batch - 1) * n;
        value[i][r] = load_quad<kWhole>(rows, n, quad);
      }
    }
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
#pragma unroll
      for (int l = 0; l < kLines; ++l) {
#pragma unroll
        for (int r = 0; r < kRows; ++r)
          sum[l * kRows + r] = add_quad(weight[i][l], value[i][r], sum[l * kRows + r]);
      }
    }
  }

  template <int kBatch>
  __device__ __forceinline__ void add_all(float (&sum)[kLines * kRows]) const {
    const int rounds = input_rounds + static_cast<int>((cell.hidden + 4 * kChains - 1) / (4 * kChains));
    int round = 0;
#pragma unroll 1
    for (; round + kBatch <= rounds; round += kBatch) add<kBatch>(round, sum);
#pragma unroll 1
    for (; round < rounds; ++round) add<1>(round, sum);
  }
};

__device__ __forceinline__ int input_rounds_of(const Cell& cell) {
  return static_cast<int>((cell.inputs + 4 * kChains - 1) / (4 * kChains));
}

/// One batch row a warp: lanes are the four gates of a unit and the eight chains. CTA b has unit block b % unit_blocks;
/// `row_warps` of its warps take different rows, the others different units. Lanes ask for kBatch quads at once. kWhole:
/// rows are aligned and whole rounds of 32 terms, so that loads need no conditions, which would part them.
template <bool kWhole, int kBatch>
__global__ void __launch_bounds__(kCtaWarps* kWarp, 2)
    lstm_cell_row(Cell cell, int row_warps, int64_t unit_blocks) {
  const int lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp;
  const int chain = lane % kChains, gate = lane / kChains;
  const int64_t unit = blockIdx.x % unit_blocks * (kCtaWarps / row_warps) + warp / row_warps;
  const int64_t row = blockIdx.x / unit_blocks * row_warps + warp % row_warps;
  if (unit >= cell.hidden || row >= cell.batch) return;
  const int64_t weight_row = gate * cell.hidden + unit;
  streaming::follow();

  const float before = cell.c[row * cell.hidden + unit];
  const float bias = cell.bias[weight_row];
  float sum[1] = {};
  Rounds<kWhole, 1, 1>{cell, weight_row, row, chain, input_rounds_of(cell)}.template add_all<kBatch>(sum);
  add_chains<1>(sum, chain);
  const Next next = next_of(sum[0] + bias, gate == kCellGate, chain, kChains, before);
  if (lane == 0) cell.next_c[row * cell.hidden + unit] = next.c;
  if (lane == kChains) cell.next_h[row * cell.hidden + unit] = next.h;
}

inline constexpr int kWideWarps = 4;

/// More batch rows: a lane has all gates of kRows rows for one chain, and a warp four times the rows. A value serves four
/// gates and a weight kRows rows, where above they serve but one. CTA b has unit block b % unit_blocks.
template <bool kWhole, int kRows, int kBatch>
__global__ void __launch_bounds__(kWideWarps* kWarp, 2)
    lstm_cell_wide(Cell cell, int row_warps, int64_t unit_blocks) {
  const int lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp, chain = lane % kChains;
  const int64_t unit = blockIdx.x % unit_blocks * (kWideWarps / row_warps) + warp / row_warps;
  const int64_t warp_row = (blockIdx.x / unit_blocks * row_warps + warp % row_warps) * (4 * kRows);
  if (unit >= cell.hidden || warp_row >= cell.batch) return;
  const int64_t row0 = warp_row + lane / kChains * kRows;
  // Once the chains are added, two lanes have a gate of this group's rows: half of them each.
  constexpr int kOwn = kRows == 4 ? 2 : 1;
  const int gate = chain / 2, half = chain % 2;
  const int64_t first_own = row0 + (kRows == 1 ? 0 : half * kOwn);
  streaming::follow();

  const float bias = cell.bias[gate * cell.hidden + unit];
  float before[kOwn];
#pragma unroll
  for (int i = 0; i < kOwn; ++i) before[i] = cell.c[min(first_own + i, cell.batch - 1) * cell.hidden + unit];
  float sum[kGates * kRows] = {};
  Rounds<kWhole, kGates, kRows>{cell, unit, row0, chain, input_rounds_of(cell)}.template add_all<kBatch>(sum);
  add_chains<kGates * kRows>(sum, chain);
#pragma unroll
  for (int i = 0; i < kOwn; ++i) {
    const Next next = next_of(sum[i] + bias, gate == kCellGate, lane - chain + half, 2, before[i]);
    const int64_t row = first_own + i;
    if (row >= cell.batch || (kRows == 1 && half == 1)) continue;
    if (gate == 0) cell.next_c[row * cell.hidden + unit] = next.c;
    if (gate == 1) cell.next_h[row * cell.hidden + unit] = next.h;
  }
}

/// Shapes of a tile of kThreadRows * 8 batch rows and 8 hidden units. A slab is 128 terms of each of its rows.
template <int kThreadRows>
struct Tile {
  static constexpr int kUnits = 8, kColumns = kUnits * kGates;
  static constexpr int kRows = 8 * kThreadRows, kAll = kRows + kColumns;
  static constexpr int kSlabQuads = 32, kPitch = 4 * kSlabQuads + 4;  // rows one bank group apart
  static constexpr int kSlab = kAll * kPitch;                         // floats
  static constexpr int kStages = kThreadRows == 8 ? 4 : kThreadRows == 4 ? 5 : 7;
  static constexpr int kSumPitch = 40;
  static constexpr int kBytes = kStages * kSlab * static_cast<int>(sizeof(float));
  static_assert(kChains * kRows * kSumPitch <= kStages * kSlab);
};

/// Slab number `slab` of a tile: inputs first, then hidden units.
template <bool kAligned, class Tile>
__device__ __forceinline__ void copy_slab(const Cell& cell, int64_t row0, int64_t unit0, int64_t slab,
                                          int64_t input_slabs, float* to) {
  const bool is_input = slab < input_slabs;
  const int64_t n = is_input ? cell.inputs : cell.hidden;
  const int64_t first = (is_input ? slab : slab - input_slabs) * (4 * Tile::kSlabQuads);
  const int quad = threadIdx.x % Tile::kSlabQuads;
  const int64_t left = n - first - 4 * quad;
  const int64_t at = left > 0 ? first + 4 * quad : 0;
#pragma unroll 4
  for (int row = threadIdx.x / Tile::kSlabQuads; row < Tile::kAll;
       row += kCtaWarps * kWarp / Tile::kSlabQuads) {
    const float* from = nullptr;
    if (row < Tile::kRows) {  // rows and units past the end are the last again
      from = (is_input ? cell.x : cell.h) + min(row0 + row, cell.batch - 1) * n;
    } else {
      const int column = row - Tile::kRows;
      const int64_t unit = min(unit0 + column % Tile::kUnits, cell.hidden - 1);
      from = (is_input ? cell.input_weights : cell.hidden_weights) +
             (column / Tile::kUnits * cell.hidden + unit) * n;
    }
    copy_quad<kAligned>(to + row * Tile::kPitch + 4 * quad, from + at, left);
  }
}

/// This warp's chain over one slab: `left` is its batch rows, kPitch apart, `right` its columns. A lane has batch rows
/// lane / 4 + 8 i and columns lane % 4 + 4 j.
template <int kThreadRows, int kPitch>
__device__ __forceinline__ void add_slab(const float* left, const float* right, int right_pitch,
                                         float (&sum)[kThreadRows][8]) {
  constexpr int kSlabQuads = Tile<kThreadRows>::kSlabQuads;
  const int lane = threadIdx.x % kWarp, chain = threadIdx.x / kWarp;
  left += lane / 4 * kPitch + 4 * chain;
  right += lane % 4 * right_pitch + 4 * chain;
#pragma unroll 2
  for (int q = 0; q < kSlabQuads / kChains; ++q, left += 4 * kChains, right += 4 * kChains) {
    float4 a[kThreadRows];
#pragma unroll
    for (int i = 0; i < kThreadRows; ++i) a[i] = *reinterpret_cast<const float4*>(left + 8 * i * kPitch);
#pragma unroll
    for (int j = 0; j < 8; ++j) {
      const float4 b = *reinterpret_cast<const float4*>(right + 4 * j * right_pitch);
#pragma unroll
      for (int i = 0; i < kThreadRows; ++i) sum[i][j] = __fmaf_rn(a[i].x, b.x, sum[i][j]);
#pragma unroll
      for (int i = 0; i < kThreadRows; ++i) sum[i][j] = __fmaf_rn(a[i].y, b.y, sum[i][j]);
#pragma unroll
      for (int i = 0; i < kThreadRows; ++i) sum[i][j] = __fmaf_rn(a[i].z, b.z, sum[i][j]);
#pragma unroll
      for (int i = 0; i < kThreadRows; ++i) sum[i][j] = __fmaf_rn(a[i].w, b.w, sum[i][j]);
    }
  }
}

/// Puts this warp's sums where every thread finds them; a barrier of the CTA must follow.
template <int kThreadRows>
__device__ __forceinline__ void share_sums(const float (&sum)[kThreadRows][8], float* memory) {
  using T = Tile<kThreadRows>;
  const int lane = threadIdx.x % kWarp, chain = threadIdx.x / kWarp;
#pragma unroll
  for (int i = 0; i < kThreadRows; ++i) {
#pragma unroll
    for (int j = 0; j < 8; ++j)
      memory[(chain * T::kRows + lane / 4 + 8 * i) * T::kSumPitch + lane % 4 + 4 * j] = sum[i][j];
  }
}

/// The sum of one column for one batch row of the tile, all chains' being shared.
template <int kThreadRows>
__device__ __forceinline__ float shared_sum(const float* memory, int row, int column) {
  using T = Tile<kThreadRows>;
  float chains[kChains];
#pragma unroll
  for (int c = 0; c < kChains; ++c) chains[c] = memory[(c * T::kRows + row) * T::kSumPitch + column];
  return sum_of_chains(chains);
}

/// Unit `unit` of the tile for its batch row `row`.
template <int kThreadRows>
__device__ __forceinline__ Next finish_unit(const float* memory, int row, int unit,
                                            const float (&bias)[kGates], float before) {
  using T = Tile<kThreadRows>;
  float gates[kGates];
#pragma unroll
  for (int g = 0; g < kGates; ++g) {
    const float sum = shared_sum<kThreadRows>(memory, row, g * T::kUnits + unit);
    gates[g] = activate(sum + bias[g], g == kCellGate);
  }
  return next_of(gates[0], gates[1], gates[2], gates[3], before);
}

template <int kThreadRows>
__device__ __forceinline__ void finish_tile(const Cell& cell, int64_t row0, int64_t unit0, float* memory,
                                            const float (&sum)[kThreadRows][8]) {
  using T = Tile<kThreadRows>;
  share_sums<kThreadRows>(sum, memory);
  __syncthreads();
  for (int pair = threadIdx.x; pair < T::kRows * T::kUnits; pair += kCtaWarps * kWarp) {
    const int64_t row = row0 + pair / T::kUnits, unit = unit0 + pair % T::kUnits;
    if (row >= cell.batch || unit >= cell.hidden) continue;
    float bias[kGates];
#pragma unroll
    for (int g = 0; g < kGates; ++g) bias[g] = cell.bias[g * cell.hidden + unit];
    const int64_t at = row * cell.hidden + unit;
    const Next next = finish_unit<kThreadRows>(memory, pair / T::kUnits, pair % T::kUnits, bias, cell.c[at]);
    cell.next_c[at] = next.c;
    cell.next_h[at] = next.h;
  }
}

/// All slabs of a tile in their order, the next ones on their way; nobody uses the memory afterwards.
template <bool kAligned, int kThreadRows, class Use>
__device__ __forceinline__ void for_each_slab(const Cell& cell, int64_t row0, int64_t unit0, float* memory,
                                              const Use& use) {
  using T = Tile<kThreadRows>;
  constexpr int64_t kTerms = 4 * T::kSlabQuads;
  const int64_t input_slabs = (cell.inputs + kTerms - 1) / kTerms;
  const int64_t slabs = input_slabs + (cell.hidden + kTerms - 1) / kTerms;
  const auto copy = [&](int64_t slab) {
    if (slab < slabs)
      copy_slab<kAligned, T>(cell, row0, unit0, slab, input_slabs,
                             memory + static_cast<int>(slab % T::kStages) * T::kSlab);
    asm volatile("cp.async.commit_group;" ::: "memory");  // an empty group keeps the count of those in flight
  };
#pragma unroll 1
  for (int stage = 0; stage < T::kStages - 1; ++stage) copy(stage);
#pragma unroll 1
  for (int64_t slab = 0; slab < slabs; ++slab) {
    asm volatile("cp.async.wait_group %0;" ::"n"(T::kStages - 2) : "memory");
    __syncthreads();  // the slab is there for all, and nobody reads the one before it any more
    copy(slab + T::kStages - 1);
    use(memory + static_cast<int>(slab % T::kStages) * T::kSlab);
  }
  asm volatile("cp.async.wait_group 0;" ::: "memory");
  __syncthreads();
}

/// CTA b has unit block b % unit_blocks.
template <bool kAligned, int kThreadRows>
__global__ void __launch_bounds__(kCtaWarps* kWarp, 1) lstm_cell_tiles(Cell cell, int64_t unit_blocks) {
  using T = Tile<kThreadRows>;
  extern __shared__ __align__(16) float memory[];
  const int64_t unit0 = blockIdx.x % unit_blocks * T::kUnits, row0 = blockIdx.x / unit_blocks * T::kRows;
  float sum[kThreadRows][8] = {};
  streaming::follow();
  for_each_slab<kAligned, kThreadRows>(cell, row0, unit0, memory, [&](const float* slab) {
    add_slab<kThreadRows, T::kPitch>(slab, slab + T::kRows * T::kPitch, T::kPitch, sum);
  });
  finish_tile<kThreadRows>(cell, row0, unit0, memory, sum);
}

}  // namespace fulcrum::backends::cuda::lstm
