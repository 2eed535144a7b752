// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// softmax kernels whose CTAs stay and take one row after the other from a ring in shared memory, which bulk copies
// fill while earlier rows are reduced and written. They use at most half of an SM, so that in a programmatic launch
// the next call's CTAs come up when the last rows are asked for; `ahead`: and fetch their first rows into L2 then. Rows
// lie at multiples of 16 bytes.
#pragma once

#include "backends/cuda/bulk.cuh"
#include "backends/cuda/softmax_rows.cuh"

namespace fulcrum::backends::cuda::rows {

inline constexpr int kRingBytes = 96 * 1024;  // of a CTA
inline constexpr int kMostStages = 8;

/// A copy to shared memory whose arrival ends the barrier's phase; not of nothing.
__device__ inline void bulk_load(void* to, const float* from, unsigned bytes, streaming::Barrier* barrier) {
  streaming::arrive_expecting(barrier, bytes);
  streaming::copy_in(to, from, bytes, barrier, streaming::policy_of(true));
}

/// Where a ring is: the stage in turn, and the parity of its barrier's phase.
struct Turn {
  int stage = 0;
  std::uint32_t parity = 0;

  __device__ void next(int stages) {
    if (++stage == stages) stage = 0, parity ^= 1;
  }
};

__device__ inline void recall_four(const float* from, int left, float* to) {
  const float4 four = left > 0 ? *reinterpret_cast<const float4*>(from)
                               : make_float4(-INFINITY, -INFINITY, -INFINITY, -INFINITY);
  to[0] = four.x, to[1] = four.y, to[2] = four.z, to[3] = four.w;
}
__device__ inline void recall_unit(const float* from, int left, float (&v)[8]) {
  recall_four(from, left, v);
  recall_four(from + kUnit / 2, left - kUnit / 2, v + 4);
}

/// A ring for each warp: a stage is kRows rows of at most 128 * kVectors elements. Neighbouring groups of rows belong
/// to different CTAs, so that all have the same work.
template <bool kLog, int kVectors, int kRows, int kWarps>
__global__ void __launch_bounds__(kWarps* kWarp, 2) softmax_ring(Matrix m, int stages, bool ahead) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
  constexpr int kCount = kVectors == 1 ? 4 : 8;
  constexpr int kUnits = kVectors == 1 ? 1 : kVectors / 2;
  extern __shared__ float4 ring[];
  __shared__ streaming::Barrier full[kWarps][kMostStages];
  const int lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp;
  const std::int64_t groups = (m.rows + kRows - 1) / kRows, step = std::int64_t{gridDim.x} * kWarps;
  const int stage_elements = kRows * static_cast<int>(m.n);
  float* const stage_0 = reinterpret_cast<float*>(ring) + warp * stages * stage_elements;
  const auto bytes_of = [&](std::int64_t group) {
    return static_cast<unsigned>(min(std::int64_t{kRows}, m.rows - group * kRows) * m.n * sizeof(float));
  };
  const auto load_group = [&](std::int64_t group, int stage) {
    bulk_load(stage_0 + stage * stage_elements, m.x + group * stage_elements, bytes_of(group),
              &full[warp][stage]);
  };
  std::int64_t group = std::int64_t{warp} * gridDim.x + blockIdx.x;
  const auto stages_used =
      static_cast<int>(min(std::int64_t{stages}, max((groups - group + step - 1) / step, std::int64_t{0})));
  if (lane == 0) {
    streaming::init_barriers(full[warp], stages);
    for (int stage = 0; ahead && stage < stages_used; ++stage)
      streaming::fetch_ahead(m.x + (group + stage * step) * stage_elements, bytes_of(group + stage * step));
  }
  __syncwarp();
  streaming::await_previous();
  if (lane == 0) {
    for (int stage = 0; stage < stages_used; ++stage) load_group(group + stage * step, stage);
  }
  const int left = static_cast<int>(m.n) - 4 * lane;
  for (Turn turn; group < groups; group += step, turn.next(stages)) {
    float v[kRows * kUnits][kCount];
    Pair pairs[kRows * kUnits];
    const float* from = stage_0 + turn.stage * stage_elements + 4 * lane;
    streaming::wait_for(&full[warp][turn.stage], turn.parity);
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      const int here = group * kRows + r < m.rows ? left : 0;
#pragma unroll
      for (int u = 0; u < kUnits; ++u) {
        const float* unit = from + r * static_cast<int>(m.n) + u * kUnit;
        if constexpr (kCount == 4) {
          recall_four(unit, here, v[r]);
        } else {
          recall_unit(unit, here - u * kUnit, v[r * kUnits + u]);
        }
      }
    }
    summarize<kLog>(v, pairs);
    __syncwarp();  // all lanes have what the stage held
    const std::int64_t next = group + stages * step;
    if (lane == 0 && next < groups) load_group(next, turn.stage);
    if (next >= groups) streaming::release_next();
    float* const to = m.out + group * stage_elements + 4 * lane;
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      const int here = group * kRows + r < m.rows ? left : 0;
      finish_row<kLog, true, kUnits>(v + r * kUnits, pairs + r * kUnits, to + r * m.n, here);
    }
  }
#endif
}

inline constexpr int kPieceUnits = 32;  // of a row, most of a CTA
inline constexpr int kStreamCtas = 8;   // most of a cluster

/// A cluster takes one row after the other; CTA number r of it has the units from r * units_per_cta on, at most two a
/// warp, sends their pairs to all others, and has a ring with its pieces of the next rows.
template <bool kLog, int kUnits>
__global__ void __launch_bounds__(kPieceUnits / 2 * kWarp)
    softmax_stream(Matrix m, int cluster, int units_per_cta, int stages, bool ahead) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
  extern __shared__ float4 ring[];
  __shared__ streaming::Barrier full[kMostStages];
  __shared__ Pair units[2][kStreamCtas * kPieceUnits];  // by turns: some CTA may still read the last row's
  __shared__ Pair chunks[kWarp];
  cluster_arrive();  // a CTA that has not started has no shared memory to write to
  const int lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp, warps = blockDim.x / kWarp;
  const int n = static_cast<int>(m.n), count = (n + kUnit - 1) / kUnit;
  const int first = static_cast<int>(rank_in_cluster()) * units_per_cta;
  const int last = min(first + units_per_cta, count);
  const int piece = max(min(n, last * kUnit) - first * kUnit, 0);  // elements
  const int element = warp * kUnit + 4 * lane, stride = warps * kUnit;
  float* const stage_0 = reinterpret_cast<float*>(ring);
  const std::int64_t step = gridDim.x / cluster;
  std::int64_t row = blockIdx.x / cluster;
  const auto piece_bytes = static_cast<unsigned>(piece * sizeof(float));
  const auto load_piece = [&](std::int64_t of_row, int stage) {
    bulk_load(stage_0 + stage * units_per_cta * kUnit, m.x + of_row * n + first * kUnit, piece_bytes,
              &full[stage]);
  };
  const auto stages_used =
      piece == 0 ? 0 : static_cast<int>(min(std::int64_t{stages}, (m.rows - row + step - 1) / step));
  if (threadIdx.x == 0) {
    streaming::init_barriers(full, stages);
    for (int stage = 0; ahead && stage < stages_used; ++stage)
      streaming::fetch_ahead(m.x + (row + stage * step) * n + first * kUnit, piece_bytes);
  }
  __syncthreads();
  streaming::await_previous();
  if (threadIdx.x == 0) {
    for (int stage = 0; stage < stages_used; ++stage) load_piece(row + stage * step, stage);
  }
  __syncwarp();  // the barriers of the cluster want the warp together
  cluster_wait();
  int buffer = 0;
  for (Turn turn; row < m.rows; row += step, buffer ^= 1, turn.next(stages)) {
    float v[kUnits][8];
    Pair pairs[kUnits];
    const float* from = stage_0 + turn.stage * units_per_cta * kUnit + element;
    if (piece > 0) streaming::wait_for(&full[turn.stage], turn.parity);
#pragma unroll
    for (int u = 0; u < kUnits; ++u) recall_unit(from + u * stride, piece - element - u * stride, v[u]);
    summarize<kLog>(v, pairs);
#pragma unroll
    for (int u = 0; u < kUnits; ++u) {
      const int unit = first + warp + u * warps;
      if (lane < cluster && unit < last) store_in_cluster(&units[buffer][unit], lane, pairs[u]);
    }
    __syncwarp();
    cluster_arrive();
    cluster_wait();  // and all threads have what the stage held
    const std::int64_t next = row + stages * step;
    if (threadIdx.x == 0 && piece > 0 && next < m.rows) load_piece(next, turn.stage);
    if (next >= m.rows) streaming::release_next();
    __syncwarp();
    const Finish end = finish_of<kLog>(merge_units(units[buffer], count, chunks));
    float* const to = m.out + row * n + first * kUnit + element;
#pragma unroll
    for (int u = 0; u < kUnits; ++u) {
      finish<kLog>(v[u], pairs[u].max, end);
      store_unit<true>(to + u * stride, piece - element - u * stride, v[u]);
    }
  }
#endif
}

}  // namespace fulcrum::backends::cuda::rows
