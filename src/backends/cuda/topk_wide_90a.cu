// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Candidates for hundreds of queries: what topk_candidates.cuh does, with products by wgmma, whose operands go from
// shared memory straight to the tensor cores. Two warpgroups share a tile of 128 rows and 256 queries. Compiled for 9.0
// alone, whose instructions these are.
#include "backends/cuda/topk_tensor.cuh"
#include "backends/cuda/topk_wide.h"

namespace fulcrum::backends::cuda::topk {
namespace {

constexpr int kQueries = kWideQueries, kThreads = 256, kWarps = kThreads / 32;
constexpr int kStages = 4;
constexpr int kRowBytes = kTileRows * kDepth * 4, kStageBytes = (kTileRows + kQueries) * kDepth * 4;
constexpr int kMaxima = 2 * kWarps;  // groups of rows: half of a warp's
constexpr int kPitch = kQueries + 8;
static_assert(kMaxima == kWideMostK);

struct State {
  unsigned maxima[kMaxima][kPitch];  // as order_of()
  float inverse[kTileRows];
  float limit[kQueries], margin[kQueries], bound[kQueries];
  int count[kQueries];
};
constexpr int kSharedBytes = kStages * kStageBytes + static_cast<int>(sizeof(State));

using Sums =
    float[kQueries / 8][4];  // of query 8 j + 2 (lane & 3) + (e & 1) and row (lane >> 2) + 8 (e >> 1)

/// A tile of rows of 128 bytes with their chunks permuted as slab_offset() does, for wgmma.
__device__ __forceinline__ std::uint64_t describe(std::uint32_t address) {
  constexpr std::uint64_t kSwizzle128 = std::uint64_t{1} << 62, kEightRows = std::uint64_t{1024 >> 4} << 32;
  return kSwizzle128 | kEightRows | std::uint64_t{1} << 16 | (address & 0x3FFFF) >> 4;
}

__device__ __forceinline__ void begin_products() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ __forceinline__ void commit_products() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
template <int kNewest>
__device__ __forceinline__ void await_products() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(kNewest) : "memory");
}

#define FULCRUM_FOUR(s, j) "+f"(s[j][0]), "+f"(s[j][1]), "+f"(s[j][2]), "+f"(s[j][3])
#define FULCRUM_SIXTEEN(s, j) \
  FULCRUM_FOUR(s, j), FULCRUM_FOUR(s, j + 1), FULCRUM_FOUR(s, j + 2), FULCRUM_FOUR(s, j + 3)

/// sums (+)= 64 rows times 256 queries, eight terms.
__device__ __forceinline__ void multiply(Sums& s, std::uint64_t rows, std::uint64_t queries, bool add) {
  asm volatile(
      "{\n"
      ".reg .pred p;\n"
      "setp.ne.b32 p, %130, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n256k8.f32.tf32.tf32 "
      "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
      "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
      "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, "
      "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, "
      "%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, "
      "%96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, "
      "%112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127}, "
      "%128, %129, p, 1, 1;\n"
      "}\n"
      : FULCRUM_SIXTEEN(s, 0), FULCRUM_SIXTEEN(s, 4), FULCRUM_SIXTEEN(s, 8), FULCRUM_SIXTEEN(s, 12),
        FULCRUM_SIXTEEN(s, 16), FULCRUM_SIXTEEN(s, 20), FULCRUM_SIXTEEN(s, 24), FULCRUM_SIXTEEN(s, 28)
      : "l"(rows), "l"(queries), "r"(static_cast<int>(add)));
}

#undef FULCRUM_SIXTEEN
#undef FULCRUM_FOUR

/// One slab of rows or queries by all threads; as SlabCopies, for the threads of this kernel.
template <int kRows>
__device__ __forceinline__ void copy_slab(std::uint32_t slab, const float* all, std::int64_t count,
                                          std::int64_t d, std::int64_t first, std::int64_t term) {
  constexpr int kStep = kThreads / kChunks;
  const int own = static_cast<int>(threadIdx.x) / kChunks, chunk = static_cast<int>(threadIdx.x) % kChunks;
  const float* from = all + (first + own) * d + term + chunk * 4;
  const std::uint32_t to = slab + slab_offset(own, chunk);
  const std::int64_t left = term + chunk * 4 < d ? count - first - own : 0;
#pragma unroll
  for (int i = 0; i < kRows / kStep; ++i) {
    const bool there = i * kStep < left;
    copy_16(to + i * kStep * kDepth * 4, there ? from : all, there);
    from += kStep * d;
  }
}

struct Slabs {
  const TensorSearch& s;
  std::int64_t tile, query0, left, term = 0;

  __device__ __forceinline__ void copy_next(std::uint32_t stage) {
    if (left > 0) {
      const Search& search = s.search;
      copy_slab<kTileRows>(stage, search.rows, search.row_count, search.d, tile * kTileRows, term);
      copy_slab<kQueries>(stage + kRowBytes, search.queries, search.query_count, search.d, query0, term);
      --left;
      term += kDepth;
      if (term >= search.d) term = 0, tile += s.chunks;
    }
    commit_copies();  // an empty group keeps the count of those in flight
  }
};

/// The CTA behind a tile of rows; see topk_candidates.cuh, whose steps these are. After the first tile the maxima learn
/// of candidates only: nothing below the bound can raise it.
struct Choice {
  const TensorSearch& s;
  State& state;
  std::int64_t chunk, query0;
  int warp, lane;

  __device__ __forceinline__ std::int64_t place(int query) const {
    return chunk * s.query_tiles * kQueries + query0 + query;
  }
  __device__ __forceinline__ int group() const { return warp * 2 + (lane >> 4); }
  __device__ __forceinline__ int first_row() const { return warp * 16 + (lane >> 2); }

  __device__ __forceinline__ void begin() {
    for (int i = threadIdx.x; i < kMaxima * kPitch; i += kThreads)
      (&state.maxima[0][0])[i] = order_of(-INFINITY);
    const int query = static_cast<int>(threadIdx.x);
    state.bound[query] = query0 + query < s.search.query_count ? -INFINITY : INFINITY;
    state.count[query] = 0;
  }

  __device__ __forceinline__ void learn_lengths(std::int64_t row0, float row_square, bool first,
                                                float query_square) {
    const std::int64_t row = row0 + threadIdx.x;
    if (threadIdx.x < kTileRows) {
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
    }
    if (!first) return;
    const float length = cosine::safe_square(query_square) ? sqrtf(query_square) : NAN;
    state.limit[threadIdx.x] = 4 * length;
    state.margin[threadIdx.x] = s.margin * length;
  }

  __device__ __forceinline__ void scale(Sums& sums) const {
    const float upper = state.inverse[first_row()], lower = state.inverse[first_row() + 8];
#pragma unroll
    for (int j = 0; j < kQueries / 8; ++j) {
      sums[j][0] = sums[j][0] * upper;
      sums[j][1] = sums[j][1] * upper;
      sums[j][2] = sums[j][2] * lower;
      sums[j][3] = sums[j][3] * lower;
    }
  }

  /// All products of the first tile.
  __device__ __forceinline__ void learn_maxima(const Sums& sums) {
#pragma unroll
    for (int j = 0; j < kQueries / 8; ++j) {
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        const int query = j * 8 + (lane & 3) * 2 + e;
        const float limit = state.limit[query], upper = sums[j][e], lower = sums[j][e + 2];
        float most = upper <= limit ? upper : -INFINITY;
        if (lower <= limit) most = fmaxf(most, lower);
        most = fmaxf(most, __shfl_xor_sync(kAll, most, 4));
        most = fmaxf(most, __shfl_xor_sync(kAll, most, 8));
        if ((lane & 12) == 0) state.maxima[group()][query] = order_of(most);
      }
    }
  }

  __device__ __forceinline__ unsigned best_bound() const {
    const std::int64_t query = query0 + threadIdx.x;
    return query < s.search.query_count ? __ldcg(s.bounds + query) : 0;
  }

  __device__ __forceinline__ void refresh(unsigned seen) {
    const int query = static_cast<int>(threadIdx.x);
    if (query0 + query >= s.search.query_count) return;
    float v[kMaxima];
#pragma unroll
    for (int i = 0; i < kMaxima; ++i) v[i] = score_of(state.maxima[i][query]);
    float bound = kth_largest(v, s.search.k) - state.margin[query];
    if (bound == bound) {
      if (order_of(bound) > seen) {
        atomicMax(s.bounds + query0 + query, order_of(bound));
      } else {
        bound = score_of(seen);
      }
    }
    state.bound[query] = bound;
  }

  __device__ __forceinline__ void append(const Sums& sums, std::int64_t row0) {
    Candidate* own_candidates = s.candidates + place(0) * kCandidates;
    const int rows_left = static_cast<int>(min(s.search.row_count - row0, std::int64_t{kTileRows}));
    const int row = first_row();
#pragma unroll
    for (int j = 0; j < kQueries / 8; j += 2) {
      constexpr int kColumns = 4,
                    kSites = 2;  // queries of two neighbours; this row, and the one eight behind it
      const int query = j * 8 + (lane & 3) * 2;
      std::uint64_t hits = 0;
#pragma unroll
      for (int c = 0; c < kColumns; ++c) {
        const float bound = state.bound[query + c / 2 * 8 + c % 2];
#pragma unroll
        for (int site = 0; site < kSites; ++site) {
          const bool hit = !(sums[j + c / 2][site * 2 + c % 2] < bound) && row + site * 8 < rows_left;
          hits |= static_cast<std::uint64_t>(hit) << (c * kSites + site);
        }
      }
      if (!__any_sync(kAll, hits != 0)) continue;
      int* const counts[kColumns] = {state.count + query, state.count + query + 1, state.count + query + 8,
                                     state.count + query + 9};
      const Slots<kColumns, kSites> slots(hits, counts, lane);
#pragma unroll
      for (int c = 0; c < kColumns; ++c) {
        const int column = query + c / 2 * 8 + c % 2;
#pragma unroll
        for (int site = 0; site < kSites; ++site) {
          if ((hits >> (c * kSites + site) & 1) == 0) continue;
          const float product = sums[j + c / 2][site * 2 + c % 2];
          if (product <= state.limit[column]) atomicMax(&state.maxima[group()][column], order_of(product));
          const int slot = slots.first[c] + slots.offset[c][site];
          if (slot < kCandidates)
            own_candidates[column * kCandidates + slot] = {product,
                                                           static_cast<std::int32_t>(row0) + row + site * 8};
        }
      }
    }
  }

  __device__ __forceinline__ bool is_full(int query) const {
    return state.count[query] > kCandidates - kTileRows && state.count[query] <= kCandidates;
  }
  __device__ __forceinline__ void make_room() {
    for (int query = warp; query < kQueries; query += kWarps) {
      if (!is_full(query)) continue;
      const int kept = keep_candidates(s.candidates + place(query) * kCandidates, state.count[query],
                                       state.bound[query], lane);
      if (lane == 0) state.count[query] = kept > kCandidates - kTileRows ? kCandidates + 1 : kept;
      __syncwarp();
    }
  }

  __device__ __forceinline__ void after_tile(Sums& sums, std::int64_t row0, std::int64_t tile,
                                             unsigned seen) {
    __syncthreads();
    scale(sums);
    if (tile == 0) learn_maxima(sums);
    if ((tile & (tile + 1)) == 0) {  // after 1, 2, 4, ... tiles
      __syncthreads();
      refresh(seen);
      __syncthreads();
    }
    append(sums, row0);
    __syncthreads();
    if (__syncthreads_or(is_full(static_cast<int>(threadIdx.x)))) {
      refresh(seen);
      __syncthreads();
      make_room();
      __syncthreads();
    }
  }
};

/// Grid and work as find_candidates. The stage of a slab is written again when the products of the slab after it have
/// begun: then its own are finished in both warpgroups.
__global__ void __launch_bounds__(kThreads, 1) find_wide(TensorSearch s) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  extern __shared__ __align__(1024) char memory[];
  auto& state = *reinterpret_cast<State*>(memory + kStages * kStageBytes);
  const int thread = static_cast<int>(threadIdx.x), warp = thread / 32, lane = thread % 32;
  const std::int64_t chunk = blockIdx.x / s.query_tiles, query0 = blockIdx.x % s.query_tiles * kQueries;
  const std::int64_t tiles = (s.search.row_count + kTileRows - 1) / kTileRows;
  const std::int64_t own_tiles = (tiles - chunk + s.chunks - 1) / s.chunks;
  const std::int64_t slabs = (s.search.d + kDepth - 1) / kDepth;
  Choice choice{s, state, chunk, query0, warp, lane};
  choice.begin();
  streaming::follow();
  Slabs copies{s, chunk, query0, own_tiles * slabs};
  const std::uint32_t base = shared_of(memory);
#pragma unroll
  for (int stage = 0; stage < kStages - 2; ++stage) copies.copy_next(base + stage * kStageBytes);
  int stage = 0;
  for (std::int64_t tile = 0; tile < own_tiles; ++tile) {
    Sums sums;
    float row_square = 0, query_square = 0;
    const unsigned seen = choice.best_bound();  // not needed before the tile is done
    for (std::int64_t slab = 0; slab < slabs; ++slab) {
      await_copies<kStages - 3>();
      asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
      __syncthreads();  // the slab is there for all
      const std::uint32_t now = base + stage * kStageBytes;
      begin_products();
#pragma unroll
      for (int step = 0; step < kDepth / 8; ++step) {
        multiply(sums, describe(now + warp / 4 * 64 * kDepth * 4 + step * 32),
                 describe(now + kRowBytes + step * 32), slab > 0 || step > 0);
      }
      commit_products();
      copies.copy_next(base + (stage + kStages - 2) % kStages * kStageBytes);
      const char* slab_memory = memory + stage * kStageBytes;
      if (!s.search.known && thread < kTileRows) row_square = add_squares(slab_memory, thread, row_square);
      if (tile == 0) query_square = add_squares(slab_memory + kRowBytes, thread, query_square);
      await_products<1>();
      stage = (stage + 1) % kStages;
    }
    await_products<0>();
    const std::int64_t row0 = (chunk + tile * s.chunks) * kTileRows;
    choice.learn_lengths(row0, row_square, tile == 0, query_square);
    choice.after_tile(sums, row0, tile, seen);
  }
  __syncthreads();
  s.counts[choice.place(thread)] = state.count[thread];
#endif
}

}  // namespace

fulcrum_status enqueue_wide(const TensorSearch& search, bool programmatic, void* stream) {
  FULCRUM_CUDA(cudaFuncSetAttribute(find_wide, cudaFuncAttributeMaxDynamicSharedMemorySize, kSharedBytes));
  return streaming::launch(find_wide,
                           streaming::Launch{.ctas = search.query_tiles * search.chunks,
                                             .threads = kThreads,
                                             .programmatic = programmatic,
                                             .shared_bytes = kSharedBytes},
                           stream, 1, search);
}

}  // namespace fulcrum::backends::cuda::topk
