// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// From candidates to results: those that reach the k-th best approximate score less twice the error are scored exactly.
// Where a chunk's candidates were more than it could keep, or where nearly all rows score the same, the CTA of that
// query scores every row.
#pragma once

#include "backends/cuda/topk_tensor.cuh"

namespace fulcrum::backends::cuda::topk {

inline constexpr int kFinishMostThreads = 512, kFinishMostWarps = kFinishMostThreads / 32;
inline constexpr int kMostPicked = 1024;

/// What a CTA of the last step shares.
struct Picks {
  Key lists[kFinishMostWarps * 32];
  Key keys[kMostPicked];
  std::int32_t rows[kMostPicked];
  int starts[kMostChunks + 1];   // of the chunks' candidates, one behind the other
  int totals[kFinishMostWarps];  // of the candidates of each warp's chunks
  unsigned count;
  float bound;
  bool in_list;
};

template <bool kAligned, bool kRowSquares>
struct Finish {
  const TensorSearch& s;
  Picks& picks;
  std::int64_t query, padded_queries;
  int warp, lane, warps;
  float length = 0;  // of the query
  WarpList best = {};

  __device__ __forceinline__ bool is_plain(float product) const { return fabsf(product) <= 4 * length; }

  /// How many candidates the thread's first chunk has.
  __device__ __forceinline__ int first_count() const {
    return threadIdx.x < s.chunks ? __ldcg(s.counts + threadIdx.x * padded_queries + query) : 0;
  }
  /// Where each chunk's candidates begin; false when some were not kept.
  __device__ __forceinline__ bool learn_starts(int count) {
    bool complete = true;
    const int chunks = static_cast<int>(s.chunks), threads = static_cast<int>(blockDim.x);
    int before = 0;  // in the chunks of earlier rounds
    for (int base = 0; base < chunks; base += threads) {
      const int chunk = base + static_cast<int>(threadIdx.x);
      if (base > 0) count = chunk < chunks ? __ldcg(s.counts + chunk * padded_queries + query) : 0;
      complete &= count <= kCandidates;
      int sum = count;
#pragma unroll
      for (int distance = 1; distance < 32; distance *= 2) {
        const int other = __shfl_up_sync(kAll, sum, distance);
        if (lane >= distance) sum += other;
      }
      if (lane == 31) picks.totals[warp] = sum;
      __syncthreads();
      sum += before;
#pragma unroll 4
      for (int other = 0; other < warps; ++other) {
        const int total = picks.totals[other];
        if (other < warp) sum += total;
        before += total;
      }
      if (chunk < chunks) picks.starts[chunk + 1] = sum;
      __syncthreads();  // the totals are written again
    }
    if (threadIdx.x == 0) picks.starts[0] = 0;
    return __syncthreads_or(!complete) == 0;
  }

  /// Candidate number i of all.
  __device__ __forceinline__ Candidate load_candidate(int i) const {
    int low = 0, high = static_cast<int>(s.chunks) - 1;  // the last chunk that begins at i or before
    while (low < high) {
      const int middle = (low + high + 1) / 2;
      if (picks.starts[middle] <= i) {
        low = middle;
      } else {
        high = middle - 1;
      }
    }
    const std::int64_t place = (low * padded_queries + query) * kCandidates + i - picks.starts[low];
    const float2 loaded = __ldcg(reinterpret_cast<const float2*>(s.candidates) + place);
    return Candidate{loaded.x, __float_as_int(loaded.y)};
  }

  /// Calls use(candidate, whether there is one) for all of them, 32 at a time by whole warps.
  template <class Use>
  __device__ __forceinline__ void for_candidates(const Use& use) const {
    const int all = picks.starts[s.chunks], step = warps * 32;
    Candidate next{};
    if (warp * 32 + lane < all) next = load_candidate(warp * 32 + lane);
    for (int base = warp * 32; base < all; base += step) {
      const Candidate now = next;
      if (base + step + lane < all) next = load_candidate(base + step + lane);
      use(now, base + lane < all);
    }
  }

  __device__ __forceinline__ Key key_of_row(std::int64_t row) const {
    cosine::Tile<kAligned, 1, 1, kRowSquares> tile{s.search.queries + query * s.search.d,
                                                   s.search.rows + row * s.search.d, s.search.d, lane};
    tile.multiply();
    const float score = tile.score(0, s.search.inverse ? s.search.inverse + row : nullptr);
    return key_of(__shfl_sync(kAll, score, 0), row);
  }

  /// The rows that may be among the best; false when they are not known. `reached` is the best bound that was found.
  __device__ __forceinline__ bool pick(int count, float reached) {
    if (!learn_starts(count)) return false;
    WarpList list;
    bool plain = true;
    for_candidates([&](const Candidate& candidate, bool there) {
      const bool counts = there && is_plain(candidate.product);
      plain &= counts == there;
      list.offer(counts && !(candidate.product < reached) ? key_of(candidate.product, candidate.row) : 0, 32,
                 lane);
    });
    plain = !__syncthreads_or(!plain);
    merge_block(list, picks.lists, 32, lane, warp, warps);
    if (warp == 0) {
      const Key kth = __shfl_sync(kAll, list.mine, s.search.k - 1);
      float best = key_score(kth);
      if (s.packed.scales) best = fminf(best, 1.0F);
      const float bound = kth == 0 ? -INFINITY : best - s.margin * length;
      const bool reaches = list.mine != 0 && !(key_score(list.mine) < bound);
      const unsigned reaching = __ballot_sync(kAll, reaches);
      if (reaches) picks.rows[lane] = key_row(list.mine);
      if (lane == 0) {
        picks.bound = bound;
        picks.in_list = plain && reaching != kAll;
        picks.count = picks.in_list ? __popc(reaching) : 0;
      }
    }
    __syncthreads();
    if (picks.in_list) return true;
    const float bound = picks.bound;
    for_candidates([&](const Candidate& candidate, bool there) {
      if (!there || (is_plain(candidate.product) && candidate.product < bound)) return;
      const unsigned slot = atomicAdd(&picks.count, 1u);
      if (slot < kMostPicked) picks.rows[slot] = candidate.row;
    });
    __syncthreads();
    return picks.count <= kMostPicked;
  }

  /// Exact scores of the rows that were picked, or of all; the best of them in warp 0's list.
  __device__ __forceinline__ void score(bool picked) {
    const std::int64_t count = picked ? static_cast<std::int64_t>(picks.count) : s.search.row_count;
#pragma unroll 1
    for (std::int64_t i = warp; i < count; i += warps) {
      const Key key = key_of_row(picked ? picks.rows[i] : i);
      if (picked) {
        if (lane == 0) picks.keys[i] = key;
      } else if (key > best.worst) {
        best.insert(key, s.search.k, lane);
      }
    }
    if (!picked) {
      merge_block(best, picks.lists, s.search.k, lane, warp, warps);
      return;
    }
    __syncthreads();
    for (int base = 0; warp == 0 && base < count; base += 32)
      best.offer(base + lane < count ? picks.keys[base + lane] : 0, s.search.k, lane);
  }

  __device__ __forceinline__ void run() {
    bool safe;  // known before candidates are: what find_candidates() reads was there when it began
    if (s.packed.scales) {
      length = 1;
      safe = !isnan(__ldcg(s.packed.query_scales + query));
    } else {
      const float square =
          cosine::square_of_query<kAligned, 1>(s.search.queries + query * s.search.d, s.search.d, lane);
      length = sqrtf(square);
      safe = cosine::safe_square(square);
    }
    streaming::follow();
    const int count = first_count();
    const unsigned seen = __ldcg(s.bounds + query);
    score(safe && pick(count, seen == 0 ? -INFINITY : score_of(seen)));
    const std::int64_t at = query * s.search.k;
    if (warp == 0) write_lane(best.mine, s.search.k, lane, s.search.ids + at, s.search.scores + at);
    // For the next call; all have read them.
    if (threadIdx.x == 0) s.bounds[query] = 0;
    if (s.tops && threadIdx.x < kTops) s.tops[query * kTops + threadIdx.x] = 0;
  }
};

/// One CTA a query. More threads than there are: the registers of a kernel of which several CTAs share an SM.
template <bool kAligned, bool kRowSquares>
__global__ void __launch_bounds__(768, 1) finish_search(TensorSearch s, int queries_of_tile) {
  __shared__ Picks picks;
  Finish<kAligned, kRowSquares> finish{.s = s,
                                       .picks = picks,
                                       .query = blockIdx.x,
                                       .padded_queries = s.query_tiles * queries_of_tile,
                                       .warp = static_cast<int>(threadIdx.x) / 32,
                                       .lane = static_cast<int>(threadIdx.x) % 32,
                                       .warps = static_cast<int>(blockDim.x) / 32};
  finish.run();
}

}  // namespace fulcrum::backends::cuda::topk
