// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Candidates for hundreds of queries: what topk_candidates.cuh does, among the copies of rows and queries that
// topk_pack.cu makes. Products go by wgmma, whose operands come from shared memory straight to the tensor cores; two
// warpgroups share a tile of 128 rows. Compiled for 9.0 alone, whose instructions these are.
#include "backends/cuda/topk_packed.h"

namespace fulcrum::backends::cuda::topk {
namespace {

constexpr int kThreads = 256, kWarps = kThreads / 32;
constexpr int kSlab = kPackedSlab;
constexpr int kMaxima = 2 * kWarps;  // groups of rows: half of a warp's
static_assert(kMaxima == kPackedMostK);

/// How a tile of kTileRows rows and kQueries queries lies in shared memory.
template <int kQueries>
struct Tile {
  static constexpr int kRowBytes = kTileRows * kSlab, kStageBytes = (kTileRows + kQueries) * kSlab;
  static constexpr int kStages = kQueries > 64 ? 4 : 8;
  static constexpr int kPitch = kQueries + 8;
  struct State {
    unsigned maxima[kMaxima][kPitch];  // as order_of()
    float scale[kTileRows];
    float bound[kQueries];
    int count[kQueries];
  };
  static constexpr int kSharedBytes = kStages * kStageBytes + static_cast<int>(sizeof(State));
};

/// Of query 8 j + 2 (lane & 3) + (e & 1) and row (lane >> 2) + 8 (e >> 1).
template <int kQueries>
using Sums = float[kQueries / 8][4];

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

/// sums (+)= 64 rows times 256 queries, 16 terms.
__device__ __forceinline__ void multiply(Sums<256>& s, std::uint64_t rows, std::uint64_t queries, bool add) {
  asm volatile(
      "{\n"
      ".reg .pred p;\n"
      "setp.ne.b32 p, %130, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n256k16.f32.f16.f16 "
      "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
      "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
      "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, "
      "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, "
      "%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, "
      "%96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, "
      "%112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127}, "
      "%128, %129, p, 1, 1, 0, 0;\n"
      "}\n"
      : FULCRUM_SIXTEEN(s, 0), FULCRUM_SIXTEEN(s, 4), FULCRUM_SIXTEEN(s, 8), FULCRUM_SIXTEEN(s, 12),
        FULCRUM_SIXTEEN(s, 16), FULCRUM_SIXTEEN(s, 20), FULCRUM_SIXTEEN(s, 24), FULCRUM_SIXTEEN(s, 28)
      : "l"(rows), "l"(queries), "r"(static_cast<int>(add)));
}
/// The same for 64 queries.
__device__ __forceinline__ void multiply(Sums<64>& s, std::uint64_t rows, std::uint64_t queries, bool add) {
  asm volatile(
      "{\n"
      ".reg .pred p;\n"
      "setp.ne.b32 p, %34, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 "
      "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, "
      "%32, %33, p, 1, 1, 0, 0;\n"
      "}\n"
      : FULCRUM_SIXTEEN(s, 0), FULCRUM_SIXTEEN(s, 4)
      : "l"(rows), "l"(queries), "r"(static_cast<int>(add)));
}

#undef FULCRUM_SIXTEEN
#undef FULCRUM_FOUR

/// The products of a slab: `rows` of this warpgroup and `queries` in shared memory. Two halves are high ones and, 64
/// bytes behind them, low ones; low times low is left out.
template <int kTerms, int kQueries>
__device__ __forceinline__ void use_slab(Sums<kQueries>& sums, std::uint32_t rows, std::uint32_t queries,
                                         bool add) {
  begin_products();
  if constexpr (kTerms == 1) {
#pragma unroll
    for (int step = 0; step < 4; ++step)
      multiply(sums, describe(rows + step * 32), describe(queries + step * 32), add || step > 0);
  } else {
#pragma unroll
    for (int step = 0; step < 2; ++step) {
      const std::uint32_t row = rows + step * 32, query = queries + step * 32;
      multiply(sums, describe(row), describe(query), add || step > 0);
      multiply(sums, describe(row), describe(query + kSlab / 2), true);
      multiply(sums, describe(row + kSlab / 2), describe(query), true);
    }
  }
  commit_products();
}

/// The slabs of a CTA's tiles on their way to shared memory, one behind the other.
template <int kQueries>
struct Slabs {
  const TensorSearch& s;
  int tile, query0, tiles;
  int byte = 0;

  template <int kRows>
  __device__ __forceinline__ void copy(std::uint32_t slab, const unsigned char* all, std::int64_t count,
                                       std::int64_t first) const {
    constexpr int kStep = kThreads / kChunks;
    const int own = static_cast<int>(threadIdx.x) / kChunks, chunk = static_cast<int>(threadIdx.x) % kChunks;
    const unsigned char* from = all + (first + own) * s.packed.pitch + byte + chunk * 16;
    const std::uint32_t to = slab + slab_offset(own, chunk);
    const std::int64_t there = count - first - own;
#pragma unroll
    for (int i = 0; i < kRows / kStep; ++i) {
      copy_16(to + i * kStep * kSlab, reinterpret_cast<const float*>(i * kStep < there ? from : all),
              i * kStep < there);
      from += kStep * s.packed.pitch;
    }
  }
  __device__ __forceinline__ void copy_next(std::uint32_t stage) {
    if (tile < tiles) {
      copy<kTileRows>(stage, s.packed.rows, s.search.row_count, std::int64_t{tile} * kTileRows);
      copy<kQueries>(stage + Tile<kQueries>::kRowBytes, s.packed.queries, s.search.query_count, query0);
      byte += kSlab;
      if (byte >= s.packed.pitch) byte = 0, tile += static_cast<int>(s.chunks);
    }
    commit_copies();  // an empty group keeps the count of those in flight
  }
};

/// The CTA behind a tile of rows; see topk_candidates.cuh, whose steps these are. After the first tile the maxima learn
/// of candidates only: nothing below the bound can raise it. Products are cosines here.
template <int kQueries>
struct Choice {
  static constexpr float kLimit = 4;  // products of known rows are below it
  const TensorSearch& s;
  typename Tile<kQueries>::State& state;
  int chunk, query0;
  int thread, warp, lane;
  bool has_query = false;  // the thread's, and its length is known

  __device__ __forceinline__ std::int64_t place(int query) const {
    return s.query_tiles * chunk * kQueries + query0 + query;
  }
  __device__ __forceinline__ int group() const { return warp * 2 + (lane >> 4); }
  __device__ __forceinline__ int first_row() const { return warp * 16 + (lane >> 2); }

  __device__ __forceinline__ void begin() {
    for (int i = thread; i < kMaxima * Tile<kQueries>::kPitch; i += kThreads)
      (&state.maxima[0][0])[i] = order_of(-INFINITY);
    if (thread >= kQueries) return;
    const std::int64_t query = query0 + thread;
    has_query = query < s.search.query_count && !isnan(__ldcg(s.packed.query_scales + query));
    state.bound[thread] = has_query ? -INFINITY : INFINITY;
    state.count[thread] = 0;
  }

  /// NaN for rows whose length is not known, and behind the last.
  __device__ __forceinline__ float scale_of(std::int64_t row0) const {
    const std::int64_t row = row0 + thread;
    return thread < kTileRows && row < s.search.row_count ? __ldcg(s.packed.scales + row) : NAN;
  }

  __device__ __forceinline__ void scale(Sums<kQueries>& sums) const {
    const float upper = state.scale[first_row()], lower = state.scale[first_row() + 8];
#pragma unroll
    for (int j = 0; j < kQueries / 8; ++j) {
      sums[j][0] = sums[j][0] * upper;
      sums[j][1] = sums[j][1] * upper;
      sums[j][2] = sums[j][2] * lower;
      sums[j][3] = sums[j][3] * lower;
    }
  }

  /// All products of the first tile.
  __device__ __forceinline__ void learn_maxima(const Sums<kQueries>& sums) {
#pragma unroll
    for (int j = 0; j < kQueries / 8; ++j) {
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        const float upper = sums[j][e], lower = sums[j][e + 2];
        float most = upper <= kLimit ? upper : -INFINITY;
        if (lower <= kLimit) most = fmaxf(most, lower);
        most = fmaxf(most, __shfl_xor_sync(kAll, most, 4));
        most = fmaxf(most, __shfl_xor_sync(kAll, most, 8));
        if ((lane & 12) == 0) state.maxima[group()][j * 8 + (lane & 3) * 2 + e] = order_of(most);
      }
    }
  }

  __device__ __forceinline__ unsigned best_bound() const {
    return has_query ? __ldcg(s.bounds + query0 + thread) : 0;
  }

  /// Scores are cut at 1, where equal ones are in the order of their rows: nothing near 1 is left out.
  __device__ __forceinline__ void refresh(unsigned seen, bool first) {
    if (!has_query) return;
    const std::int64_t query = query0 + thread;
    float v[kMaxima];
#pragma unroll
    for (int i = 0; i < kMaxima; ++i) v[i] = score_of(state.maxima[i][thread]);
    give_tops(s, query, chunk, v);
#pragma unroll
    for (int i = 0; i < kMaxima; ++i) v[i] = score_of(state.maxima[i][thread]);
    float best = kth_largest(v, s.search.k);
    best = fmaxf(best, kth_of_tops(s, query, first ? kMoreQuestions : 0));
    const float bound = fminf(best, 1.0F) - s.margin;
    if (order_of(bound) > seen) atomicMax(s.bounds + query, order_of(bound));
    state.bound[thread] = order_of(bound) > seen ? bound : score_of(seen);
  }

  /// `learns`: the maxima do not know of these products yet.
  __device__ __forceinline__ void append(const Sums<kQueries>& sums, std::int64_t row0, bool learns) {
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
          if (learns && product <= kLimit) atomicMax(&state.maxima[group()][column], order_of(product));
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
      __syncwarp();
      if (lane == 0) state.count[query] = kept > kCandidates - kTileRows ? kCandidates + 1 : kept;
      __syncwarp();
    }
  }

  /// `turn` counts the CTA's tiles from 0; `row_scale` is of the thread's row of this one; `seen` the best bound of all.
  __device__ __forceinline__ void after_tile(Sums<kQueries>& sums, std::int64_t row0, int turn,
                                             float row_scale, unsigned seen) {
    if (thread < kTileRows) state.scale[thread] = row_scale;
    __syncthreads();
    scale(sums);
    if (turn == 0) learn_maxima(sums);
    if ((turn & (turn + 1)) == 0) {  // after 1, 2, 4, ... tiles
      __syncthreads();
      refresh(seen, turn == 0);
      __syncthreads();
    }
    append(sums, row0, turn > 0);
    __syncthreads();
    if (__syncthreads_or(thread < kQueries && is_full(thread))) {
      refresh(seen, false);
      __syncthreads();
      make_room();
      __syncthreads();
    }
  }
};

/// Grid and work as find_candidates. The stage of a slab is written again when the products of the slab after it have
/// begun: then its own are finished in both warpgroups.
template <int kTerms, int kQueries>
__global__ void __launch_bounds__(kThreads, 1) find_packed(TensorSearch s) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  using T = Tile<kQueries>;
  constexpr int kStages = T::kStages;
  extern __shared__ __align__(1024) char memory[];
  auto& state = *reinterpret_cast<typename T::State*>(memory + kStages * T::kStageBytes);
  const int thread = static_cast<int>(threadIdx.x), warp = thread / 32, lane = thread % 32;
  const auto query_tiles = static_cast<unsigned>(s.query_tiles);
  const int chunk = static_cast<int>(blockIdx.x / query_tiles);
  const int query0 = static_cast<int>(blockIdx.x % query_tiles) * kQueries;
  const int tiles = static_cast<int>((s.search.row_count + kTileRows - 1) / kTileRows);
  const int slabs = static_cast<int>(s.packed.pitch) / kSlab;
  streaming::follow();
  Slabs<kQueries> copies{s, chunk, query0, tiles};
  const std::uint32_t base = shared_of(memory);
#pragma unroll
  for (int stage = 0; stage < kStages - 2; ++stage) copies.copy_next(base + stage * T::kStageBytes);
  Choice<kQueries> choice{s, state, chunk, query0, thread, warp, lane};
  choice.begin();
  int stage = 0, turn = 0;
  for (int tile = chunk; tile < tiles; tile += static_cast<int>(s.chunks), ++turn) {
    Sums<kQueries> sums;
    const std::int64_t row0 = std::int64_t{tile} * kTileRows;
    const unsigned seen = choice.best_bound();  // neither is needed before the tile is done
    const float row_scale = choice.scale_of(row0);
    for (int slab = 0; slab < slabs; ++slab) {
      await_copies<kStages - 3>();
      asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
      __syncthreads();  // the slab is there for all
      const std::uint32_t now = base + stage * T::kStageBytes;
      use_slab<kTerms, kQueries>(sums, now + warp / 4 * 64 * kSlab, now + T::kRowBytes, slab > 0);
      copies.copy_next(base + (stage + kStages - 2) % kStages * T::kStageBytes);
      await_products<1>();
      stage = (stage + 1) % kStages;
    }
    await_products<0>();
    choice.after_tile(sums, row0, turn, row_scale, seen);
  }
  __syncthreads();
  if (thread < kQueries) s.counts[choice.place(thread)] = state.count[thread];
#endif
}

template <int kTerms, int kQueries>
fulcrum_status launch(const TensorSearch& search, bool programmatic, void* stream) {
  const auto kernel = find_packed<kTerms, kQueries>;
  constexpr int kBytes = Tile<kQueries>::kSharedBytes;
  FULCRUM_STATUS(streaming::allow_shared<kBytes>(kernel));
  return streaming::launch(kernel,
                           streaming::Launch{.ctas = search.query_tiles * search.chunks,
                                             .threads = kThreads,
                                             .programmatic = programmatic,
                                             .shared_bytes = kBytes},
                           stream, 1, search);
}

}  // namespace

fulcrum_status enqueue_packed(const TensorSearch& search, int terms, int queries_of_tile, bool programmatic,
                              void* stream) {
  if (queries_of_tile == kPackedWide) {
    return terms == 1 ? launch<1, kPackedWide>(search, programmatic, stream)
                      : launch<3, kPackedWide>(search, programmatic, stream);
  }
  return terms == 1 ? launch<1, kPackedNarrow>(search, programmatic, stream)
                    : launch<3, kPackedNarrow>(search, programmatic, stream);
}

}  // namespace fulcrum::backends::cuda::topk
