// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// The kernel that finds candidates: products of topk_tensor.cuh, and behind each tile of rows the choice of those that
// may be among the best.
#pragma once

#include "backends/cuda/topk_tensor.cuh"

namespace fulcrum::backends::cuda::topk {

/// A CTA behind a tile of rows.
template <int kQueries>
struct Choice {
  using Tile = TensorTile<kQueries>;
  const TensorSearch& s;
  typename Tile::State& state;
  std::int64_t chunk, query0;
  int warp, lane;

  __device__ __forceinline__ std::int64_t place(int query) const {
    return chunk * s.query_tiles * kQueries + query0 + query;
  }

  __device__ __forceinline__ void begin() {
    constexpr float kInfinity = INFINITY;
    for (int i = threadIdx.x; i < Tile::kMaxima * Tile::kPitch; i += kTensorThreads)
      (&state.maxima[0][0])[i] = -kInfinity;
    for (int i = threadIdx.x; i < kQueries; i += kTensorThreads) {
      state.bound[i] = -kInfinity;
      state.count[i] = 0;
    }
  }

  /// The thread's row, and at the first tile its query. Rows behind the end have no length.
  __device__ __forceinline__ void learn_lengths(std::int64_t row0, float row_square, bool first,
                                                float query_square) {
    const std::int64_t row = row0 + threadIdx.x;
    float inverse = NAN;
    if (row < s.search.row_count) {
      if (!s.search.known) {
        if (cosine::safe_square(row_square)) inverse = 1 / sqrtf(row_square);
      } else if (s.search.inverse) {
        const float given = s.search.inverse[row];
        if (cosine::safe_norm(given)) inverse = given;
      } else {
        inverse = 1;
      }
    }
    state.inverse[threadIdx.x] = inverse;
    if (!first || threadIdx.x >= kQueries) return;
    const float length = cosine::safe_square(query_square) ? sqrtf(query_square) : NAN;
    state.limit[threadIdx.x] = 4 * length;
    state.margin[threadIdx.x] = s.margin * length;
  }

  /// Sums become products with rows of length one; the maxima of the groups learn of them.
  __device__ __forceinline__ void scale(Sums<kQueries>& sums) {
    const int down = warp / Tile::kWarpsAlong, group = lane >> 2;
    const int row = down * Tile::kWarpRows + group;
    const int query = warp % Tile::kWarpsAlong * Tile::kWarpQueries + (lane & 3) * 2;
    constexpr int kPart = Tile::kDown / Tile::kHalves;
#pragma unroll
    for (int part = 0; part < Tile::kHalves; ++part) {
      float inverse[kPart][2];
#pragma unroll
      for (int i = 0; i < kPart; ++i) {
        inverse[i][0] = state.inverse[row + (part * kPart + i) * 16];
        inverse[i][1] = state.inverse[row + (part * kPart + i) * 16 + 8];
      }
      float* maxima = state.maxima[(down * 8 + group) * Tile::kHalves + part];
#pragma unroll
      for (int j = 0; j < Tile::kAlong; ++j) {
#pragma unroll
        for (int e = 0; e < 2; ++e) {
          const int column = query + j * 8 + e;
          const float limit = state.limit[column];
          float most = maxima[column];
#pragma unroll
          for (int i = 0; i < kPart; ++i) {
#pragma unroll
            for (int half = 0; half < 2; ++half) {
              float& sum = sums[part * kPart + i][j][half * 2 + e];
              sum = sum * inverse[i][half];
              if (sum <= limit) most = fmaxf(most, sum);
            }
          }
          maxima[column] = most;
        }
      }
    }
  }

  /// As refresh(), for few queries: each warp has some of them, each lane a group of rows.
  __device__ __forceinline__ void refresh_few(bool first) {
    constexpr int kOwn = kQueries / (kTensorThreads / 32), kHalf = 16;
    static_assert(Tile::kMaxima == 32 && kOwn == 4 && kTops == kHalf);
    const int own = warp * kOwn, k = s.search.k;
    const std::int64_t left =
        s.search.query_count - query0 - own;  // of the warp's queries those that are there
    constexpr float kInfinity = INFINITY;
    float v[kOwn];
#pragma unroll
    for (int j = 0; j < kOwn; ++j) v[j] = state.maxima[lane][own + j];
    for (int j = 0; s.tops && j < kOwn && j < left; ++j) {
      float most = state.maxima[lane][own + j];
      for (int width = 16; width >= s.given; width /= 2)
        most = fmaxf(most, __shfl_xor_sync(kAll, most, width));
      const int top = (static_cast<int>(chunk) * s.given + lane) & (kTops - 1);
      if (lane < s.given && most > -kInfinity)
        atomicMax(s.tops + (query0 + own + j) * kTops + top, order_of(most));
    }
    sort_over_lanes(v, 32, lane);
    float best = -kInfinity;  // of query `lane` of the warp
#pragma unroll
    for (int j = 0; j < kOwn; ++j) {
      const float kth = __shfl_sync(kAll, v[j], k - 1);
      if (lane == j) best = kth;
    }
    if (s.tops) {
      float told[kOwn / 2];  // each half of the lanes has those of a query
      bool complete = false;
      for (int more = first ? kMoreQuestions : 0; !complete; --more) {
        complete = true;
#pragma unroll
        for (int i = 0; i < kOwn / 2; ++i) {
          const int query = 2 * i + lane / kHalf;
          std::uint32_t order = order_of(-kInfinity);
          if (query < left)
            asm volatile("ld.volatile.global.u32 %0, [%1];"
                         : "=r"(order)
                         : "l"(s.tops + (query0 + own + query) * kTops + lane % kHalf)
                         : "memory");
          told[i] = order == 0 ? -kInfinity : score_of(order);
          complete &= order != 0;
        }
        complete = __all_sync(kAll, complete) != 0 || more <= 0;
      }
      sort_over_lanes(told, kHalf, lane);
#pragma unroll
      for (int j = 0; j < kOwn; ++j) {
        const float kth = __shfl_sync(kAll, told[j / 2], j % 2 * kHalf + k - 1);
        if (lane == j) best = fmaxf(best, kth);
      }
    }
    if (lane >= kOwn) return;
    float bound = kInfinity;
    if (lane < left) {
      bound = best - state.margin[own + lane];
      if (bound == bound) {
        const unsigned seen = atomicMax(s.bounds + query0 + own + lane, order_of(bound));
        if (seen != 0) bound = fmaxf(bound, score_of(seen));
      }
    }
    state.bound[own + lane] = bound;
  }

  /// New bounds from the maxima, shared with the CTAs of other rows. Barriers around it.
  __device__ __forceinline__ void refresh(bool first) {
    if constexpr (kQueries == 16) {
      refresh_few(first);
    } else {
      refresh_many(first);
    }
  }
  __device__ __forceinline__ void refresh_many(bool first) {
    const int query = static_cast<int>(threadIdx.x);
    if (query >= kQueries) return;
    constexpr float kInfinity = INFINITY;
    if (query0 + query >= s.search.query_count) {
      state.bound[query] = kInfinity;
      return;
    }
    float v[Tile::kMaxima];
    if (s.tops) {
#pragma unroll
      for (int i = 0; i < Tile::kMaxima; ++i) v[i] = state.maxima[i][query];
      give_tops(s, query0 + query, static_cast<int>(chunk), v);
    }
#pragma unroll
    for (int i = 0; i < Tile::kMaxima; ++i) v[i] = state.maxima[i][query];
    float best = kth_largest(v, s.search.k);
    if (s.tops) best = fmaxf(best, kth_of_tops(s, query0 + query, first ? kMoreQuestions : 0));
    float bound = best - state.margin[query];
    if (bound == bound) {
      const unsigned seen = atomicMax(s.bounds + query0 + query, order_of(bound));
      if (seen != 0) bound = fmaxf(bound, score_of(seen));
    }
    state.bound[query] = bound;
  }

  /// A few queries: a warp has few candidates at a time, and each finds its own place.
  __device__ __forceinline__ void append_few(const Sums<kQueries>& sums, std::int64_t row0) {
    const int row = warp / Tile::kWarpsAlong * Tile::kWarpRows + (lane >> 2);
    const int query = warp % Tile::kWarpsAlong * Tile::kWarpQueries + (lane & 3) * 2;
    Candidate* own_candidates = s.candidates + place(0) * kCandidates;
    const int rows_left = static_cast<int>(min(s.search.row_count - row0, std::int64_t{kTileRows}));
#pragma unroll
    for (int j = 0; j < Tile::kAlong; ++j) {
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        const int column = query + j * 8 + e;
        const float bound = state.bound[column];
#pragma unroll
        for (int site = 0; site < 2 * Tile::kDown; ++site) {
          const float product = sums[site / 2][j][site % 2 * 2 + e];
          const int own = row + site * 8;
          if (!(product < bound) && own < rows_left) {
            const int slot = atomicAdd(state.count + column, 1);
            if (slot < kCandidates)
              own_candidates[column * kCandidates + slot] = {product, static_cast<std::int32_t>(row0) + own};
          }
        }
      }
    }
  }
  __device__ __forceinline__ void append(const Sums<kQueries>& sums, std::int64_t row0) {
    const int row = warp / Tile::kWarpsAlong * Tile::kWarpRows + (lane >> 2);
    const int query = warp % Tile::kWarpsAlong * Tile::kWarpQueries + (lane & 3) * 2;
    Candidate* own_candidates = s.candidates + place(0) * kCandidates;
    const int rows_left = static_cast<int>(min(s.search.row_count - row0, std::int64_t{kTileRows}));
    constexpr int kSites = 2 * Tile::kDown;
#pragma unroll
    for (int j = 0; j < Tile::kAlong; ++j) {
      std::uint64_t hits = 0;
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        const float bound = state.bound[query + j * 8 + e];
#pragma unroll
        for (int site = 0; site < kSites; ++site) {
          const bool hit = !(sums[site / 2][j][site % 2 * 2 + e] < bound) && row + site * 8 < rows_left;
          hits |= static_cast<std::uint64_t>(hit) << (e * kSites + site);
        }
      }
      if (!__any_sync(kAll, hits != 0)) continue;
      int* const counts[2] = {state.count + query + j * 8, state.count + query + j * 8 + 1};
      const Slots<2, kSites> slots(hits, counts, lane);
#pragma unroll
      for (int e = 0; e < 2; ++e) {
#pragma unroll
        for (int site = 0; site < kSites; ++site) {
          const int slot = slots.first[e] + slots.offset[e][site];
          if ((hits >> (e * kSites + site) & 1) != 0 && slot < kCandidates) {
            own_candidates[(query + j * 8 + e) * kCandidates + slot] = {
                sums[site / 2][j][site % 2 * 2 + e], static_cast<std::int32_t>(row0) + row + site * 8};
          }
        }
      }
    }
  }

  /// Whether a query may have no room for the next tile.
  __device__ __forceinline__ bool is_full(int query) const {
    return state.count[query] > kCandidates - kTileRows && state.count[query] <= kCandidates;
  }
  /// Leaves out what has fallen below the bound; a query that still has no room is given up.
  __device__ __forceinline__ void make_room() {
    for (int query = warp; query < kQueries; query += kTensorThreads / 32) {
      if (!is_full(query)) continue;
      const int kept = keep_candidates(s.candidates + place(query) * kCandidates, state.count[query],
                                       state.bound[query], lane);
      if (lane == 0) state.count[query] = kept > kCandidates - kTileRows ? kCandidates + 1 : kept;
      __syncwarp();
    }
  }

  /// `tile` counts the CTA's tiles from 0.
  __device__ __forceinline__ void after_tile(Sums<kQueries>& sums, std::int64_t row0, std::int64_t tile) {
    __syncthreads();
    scale(sums);
    // After 1, 2, 4, ... tiles. It asks others, and answers come behind the rows that are on their way: 5 us of the 26
    // that a tile takes. With few queries all of that counts, and the second time finds little.
    if ((tile & (tile + 1)) == 0 && (kQueries > 16 || tile != 1)) {
      __syncthreads();
      refresh(tile == 0);
      __syncthreads();
    }
    if constexpr (kQueries == 16) {
      append_few(sums, row0);
    } else {
      append(sums, row0);
    }
    __syncthreads();
    bool full = false;
    for (int query = threadIdx.x; query < kQueries; query += kTensorThreads) full |= is_full(query);
    if (__syncthreads_or(full)) {
      refresh(false);
      __syncthreads();
      make_room();
      __syncthreads();
    }
  }
};

/// CTA number b has queries of tile b % query_tiles, and of rows the tiles b / query_tiles, + chunks, ...
template <int kTerms, int kQueries, bool kAligned>
__global__ void __launch_bounds__(kTensorThreads, (TensorRing<kTerms, kQueries>::kCtas))
    find_candidates(TensorSearch s) {
  using Tile = TensorTile<kQueries>;
  constexpr int kStages = TensorRing<kTerms, kQueries>::kStages;
  extern __shared__ __align__(128) char memory[];
  auto& state = *reinterpret_cast<typename Tile::State*>(memory + kStages * Tile::kStageBytes);
  const int thread = static_cast<int>(threadIdx.x), warp = thread / 32, lane = thread % 32;
  const std::int64_t chunk = blockIdx.x / s.query_tiles, query0 = blockIdx.x % s.query_tiles * kQueries;
  const std::int64_t tiles = (s.search.row_count + kTileRows - 1) / kTileRows;
  const std::int64_t own_tiles = (tiles - chunk + s.chunks - 1) / s.chunks;
  const std::int64_t slabs = (s.search.d + kDepth - 1) / kDepth;
  Choice<kQueries> choice{s, state, chunk, query0, warp, lane};
  choice.begin();
  streaming::follow();
  Slabs<kQueries, kAligned> copies{{s.search.rows, s.search.row_count, s.search.d},
                                   {s.search.queries, s.search.query_count, s.search.d},
                                   chunk,
                                   s.chunks,
                                   query0,
                                   s.once,
                                   s.kept_terms,
                                   own_tiles * slabs};
  const std::uint32_t base = shared_of(memory);
#pragma unroll
  for (int stage = 0; stage < kStages - 1; ++stage) copies.copy_next(base + stage * Tile::kStageBytes);
  int stage = 0;
  for (std::int64_t tile = 0; tile < own_tiles; ++tile) {
    Sums<kQueries> sums = {};
    float row_square = 0, query_square = 0;
    for (std::int64_t slab = 0; slab < slabs; ++slab) {
      await_copies<kStages - 2>();
      __syncthreads();  // the slab is there for all, and nobody reads the one before it any more
      copies.copy_next(base + (stage == 0 ? kStages - 1 : stage - 1) * Tile::kStageBytes);
      const char* slab_memory = memory + stage * Tile::kStageBytes;
      if (!s.search.known) row_square = add_squares(slab_memory, thread, row_square);
      if (tile == 0 && thread < kQueries)
        query_square = add_squares(slab_memory + Tile::kRowBytes, thread, query_square);
      use_slab<kTerms, kQueries>(base + stage * Tile::kStageBytes, sums, warp, lane);
      stage = stage + 1 == kStages ? 0 : stage + 1;
    }
    const std::int64_t row0 = (chunk + tile * s.chunks) * kTileRows;
    choice.learn_lengths(row0, row_square, tile == 0, query_square);
    choice.after_tile(sums, row0, tile);
  }
  __syncthreads();
  for (int query = thread; query < kQueries; query += kTensorThreads)
    s.counts[choice.place(query)] = state.count[query];
}

}  // namespace fulcrum::backends::cuda::topk
