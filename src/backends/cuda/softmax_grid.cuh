// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// softmax of rows that are too long for one cluster, by all SMs together: CTA b has the chunks b, b + G, b + 2 G, ...
// of a row, leaves their pairs in memory, and after one barrier of the grid merges all pairs itself. Launched
// cooperatively with one CTA of 1024 threads on an SM. What fits stays on chip over the barrier; the rest is read
// again, last first, because the last is what the L2 cache still has.
#pragma once

#include "backends/cuda/softmax_rows.cuh"

namespace fulcrum::backends::cuda::rows {

/// What the CTAs of a grid share: in a plan's scratch memory, zero before the first launch.
struct GridState {
  Pair* pairs;          // of two rows, `chunks` each: a fast CTA may be a row ahead of a slow one
  std::uint32_t* word;  // of the barrier
};

/// Waits for all CTAs. Every barrier adds 2^31 to the word in all, so that its top bit turns when the last CTA has
/// come, and the next barrier, in this launch or a later one, finds it ready. The grid is the same for every launch.
__device__ inline void grid_barrier(std::uint32_t* word) {
  constexpr std::uint32_t kTop = 0x80000000u;
  constexpr std::uint32_t kMostPolls = 1u << 25;  // tens of seconds: an error is better than a hang
  __syncthreads();
  if (threadIdx.x == 0) {
    __threadfence();
    const std::uint32_t before = atomicAdd(word, blockIdx.x == 0 ? kTop - (gridDim.x - 1) : 1u);
    for (std::uint32_t polls = 0;; ++polls) {
      std::uint32_t now;
      asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(now) : "l"(word) : "memory");
      if ((before ^ now) & kTop) break;
      if (polls == kMostPolls) __trap();
    }
  }
  __syncthreads();
}

__device__ inline Pair fresh(const Pair* from) {  // another SM wrote it: not through the L1 cache
  const float2 pair = __ldcg(reinterpret_cast<const float2*>(from));
  return Pair{pair.x, pair.y};
}

/// The row's pair in every thread of 1024, which each add every 1024th chunk; then lanes, then warps.
__device__ inline Pair merge_chunks(const Pair* pairs, int count) {
  __shared__ float of_warp[2][kWarp];
  const int lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp;
  if (count <= kWarp) return merge_lanes(lane < count ? fresh(pairs + lane) : nothing());
  const int thread = threadIdx.x;
  const Pair first = thread < count ? fresh(pairs + thread) : nothing();
  float max = first.max;
  for (int c = thread + kMostThreads; c < count; c += kMostThreads) max = fmaxf(max, fresh(pairs + c).max);
  max = max_over_lanes(max);
  if (lane == 0) of_warp[0][warp] = max;
  __syncthreads();
  max = max_over_lanes(of_warp[0][lane]);
  const float shift = shift_of(max);
  float sum = rescaled(first, shift);
  for (int c = thread + kMostThreads; c < count; c += kMostThreads)
    sum = sum + rescaled(fresh(pairs + c), shift);
  sum = sum_over_lanes(sum);
  if (lane == 0) of_warp[1][warp] = sum;
  __syncthreads();
  return Pair{max, sum_over_lanes(of_warp[1][lane])};
}

__device__ inline int chunks_of(std::int64_t n) { return static_cast<int>((n + kChunk - 1) / kChunk); }

/// At most kHeld chunks a CTA, in registers.
template <bool kLog, bool kAligned, int kHeld>
__global__ void __launch_bounds__(kMostThreads, 1) softmax_grid_held(Matrix m, GridState state) {
  __shared__ Pair units[kHeld][kWarp];
  const int lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp;
  const int chunks = chunks_of(m.n);
  const std::int64_t first = blockIdx.x * kChunk + warp * kUnit + 4 * lane, stride = gridDim.x * kChunk;
  for (std::int64_t row = 0; row < m.rows; ++row) {
    Pair* pairs = state.pairs + (row % 2) * chunks;
    float v[kHeld][8];
    Pair of_units[kHeld];
#pragma unroll
    for (int i = 0; i < kHeld; ++i) {
      const std::int64_t at = first + i * stride;
      load_unit<kAligned, Reuse::once>(m.x + row * m.n + at, left_of(m.n, at), v[i]);
    }
    summarize<kLog>(v, of_units);
#pragma unroll
    for (int i = 0; i < kHeld; ++i) {
      if (lane == 0) units[i][warp] = of_units[i];
    }
    __syncthreads();
    const int mine = blockIdx.x + warp * gridDim.x;
    if (warp < kHeld && mine < chunks) {
      const Pair pair = merge_lanes(units[warp][lane]);
      if (lane == 0) pairs[mine] = pair;
    }
    grid_barrier(state.word);
    const Finish end = finish_of<kLog>(merge_chunks(pairs, chunks));
#pragma unroll
    for (int i = 0; i < kHeld; ++i) {
      const std::int64_t at = first + i * stride;
      finish<kLog>(v[i], of_units[i].max, end);
      store_unit<kAligned>(m.out + row * m.n + at, left_of(m.n, at), v[i]);
    }
  }
}

inline constexpr int kGroup = 3;                // chunks in flight: 96 KB an SM
inline constexpr int kBatch = 5 * kGroup;       // chunks between two barriers of a CTA
inline constexpr int kMostShared = 2 * kGroup;  // chunks in shared memory; a multiple of the group
inline constexpr int kSharedChunkBytes = static_cast<int>(kChunk * sizeof(float));

/// One CTA's part of one long row.
template <bool kLog, bool kAligned>
struct LongRow {
  const float* x;
  float* out;
  std::int64_t n;
  float4* held;              // chunks [0, shared) of this CTA
  float (*held_max)[kWarp];  // their units' maxima
  Pair (*units)[kBatch][kWarp];
  int count, shared, kept_from;  // chunks of this CTA; those from kept_from on should stay in the L2 cache
  int lane, warp;

  /// This lane's first element in this CTA's chunk i.
  __device__ std::int64_t element(int i) const {
    return (blockIdx.x + std::int64_t{i} * gridDim.x) * kChunk + warp * kUnit + 4 * lane;
  }
  template <Reuse kReuse>
  __device__ void load(int first, float (&v)[kGroup][8]) const {
#pragma unroll
    for (int i = 0; i < kGroup; ++i) {
      load_unit<kAligned, kReuse>(x + element(first + i), left_of(n, element(first + i)), v[i]);
    }
  }
  __device__ float4* place(int i, int half) const {
    return held + (2 * i + half) * kMostThreads + threadIdx.x;
  }
  __device__ void hold(int i, const float (&v)[8]) const {
    *place(i, 0) = make_float4(v[0], v[1], v[2], v[3]);
    *place(i, 1) = make_float4(v[4], v[5], v[6], v[7]);
  }
  __device__ void recall(int i, float (&v)[8]) const {
    const float4 low = *place(i, 0), high = *place(i, 1);
    v[0] = low.x, v[1] = low.y, v[2] = low.z, v[3] = low.w;
    v[4] = high.x, v[5] = high.y, v[6] = high.z, v[7] = high.w;
  }

  /// Pairs of all chunks of this CTA. A batch of units is complete after one barrier; its buffer is written again
  /// two batches, and so a barrier, later.
  __device__ void summarize_all(Pair* pairs) const {
    int buffer = 0;
    for (int first = 0; first < count; first += kGroup) {
      float v[kGroup][8];
      if (first >= kept_from) {
        load<Reuse::again>(first, v);
      } else {
        load<Reuse::once>(first, v);
      }
      Pair of_units[kGroup];
      summarize<kLog>(v, of_units);
#pragma unroll
      for (int i = 0; i < kGroup; ++i) {
        if (lane == 0) units[buffer][first % kBatch + i][warp] = of_units[i];
        if (first < shared) hold(first + i, v[i]);
        if (first < shared && lane == 0) held_max[first + i][warp] = of_units[i].max;
      }
      const int end = first + kGroup;
      if (end % kBatch != 0 && end < count) continue;
      __syncthreads();
      const int chunk = (end - 1) / kBatch * kBatch + warp;
      if (warp < kBatch && chunk < min(end, count)) {
        const Pair pair = merge_lanes(units[buffer][warp][lane]);
        if (lane == 0) pairs[blockIdx.x + std::int64_t{chunk} * gridDim.x] = pair;
      }
      buffer ^= 1;
    }
  }

  __device__ void write_all(Finish end) const {
    for (int first = (count - 1) / kGroup * kGroup; first >= shared; first -= kGroup) {
      float v[kGroup][8];
      load<Reuse::once>(first, v);
      float max[kGroup] = {};
      if constexpr (!kLog) exponentials<kWarp>(v, max);
#pragma unroll
      for (int i = 0; i < kGroup; ++i) {
        finish<kLog>(v[i], max[i], end);
        store_unit<kAligned>(out + element(first + i), left_of(n, element(first + i)), v[i]);
      }
    }
    for (int i = 0; i < min(shared, count); ++i) {
      float v[8];
      recall(i, v);
      finish<kLog>(v, held_max[i][warp], end);
      store_unit<kAligned>(out + element(i), left_of(n, element(i)), v);
    }
  }
};

/// Any number of chunks; `shared` of a CTA, a multiple of kGroup, stay in its dynamic shared memory, and the last
/// `kept` are worth keeping in the L2 cache.
template <bool kLog, bool kAligned>
__global__ void __launch_bounds__(kMostThreads, 1)
    softmax_grid_long(Matrix m, GridState state, int shared, int kept) {
  extern __shared__ float4 held[];
  __shared__ Pair units[2][kBatch][kWarp];
  __shared__ float held_max[kMostShared][kWarp];
  const int chunks = chunks_of(m.n);
  const int count =
      (chunks - static_cast<int>(blockIdx.x) + static_cast<int>(gridDim.x) - 1) / static_cast<int>(gridDim.x);
  for (std::int64_t row = 0; row < m.rows; ++row) {
    Pair* pairs = state.pairs + (row % 2) * chunks;
    const LongRow<kLog, kAligned> part{m.x + row * m.n,
                                       m.out + row * m.n,
                                       m.n,
                                       held,
                                       held_max,
                                       units,
                                       count,
                                       shared,
                                       max(count - kept, shared),
                                       static_cast<int>(threadIdx.x) % kWarp,
                                       static_cast<int>(threadIdx.x) / kWarp};
    part.summarize_all(pairs);
    grid_barrier(state.word);
    part.write_all(finish_of<kLog>(merge_chunks(pairs, chunks)));
    __syncthreads();  // the next row writes held_max
  }
}

}  // namespace fulcrum::backends::cuda::rows
