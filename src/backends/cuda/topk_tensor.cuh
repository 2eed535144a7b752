// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Candidates for the best rows of many queries. CTAs multiply tiles of 128 rows with tiles of queries on tensor cores;
// products never leave registers. An approximate score is off by `error` at most, so when k rows have at least B, no row
// below B - 2 error is among the best k by exact scores: B is the k-th largest of the maxima of disjoint groups of rows,
// and only rows that reach the bound are written down. Rows whose length f32 does not carry are always.
#pragma once

#include "backends/cuda/cosine.cuh"
#include "backends/cuda/topk.h"
#include "backends/cuda/topk_select.cuh"

namespace fulcrum::backends::cuda::topk {

struct Candidate {
  float product;  // with the query, over the row's length
  std::int32_t row;
};

/// Copies of rows and queries in halves (topk_pack.cu), which have the same length. Null: there are none.
struct Packed {
  unsigned char* rows = nullptr;
  const unsigned char* queries = nullptr;
  float* scales = nullptr;  // of the rows: what makes a cosine of a product; NaN: the row has no known length
  const float* query_scales = nullptr;
  std::int64_t pitch = 0;  // bytes of a row
};

struct TensorSearch {
  Search search;
  std::int64_t query_tiles, chunks;
  Candidate* candidates;  // [chunk][query][kCandidates]
  int* counts;            // [chunk][query]; more than kCandidates: not all are there
  unsigned* bounds;       // [query], as order_of(): the best bound of any CTA
  float margin;           // twice the error of a score
  Packed packed = {};
  unsigned* tops =
      nullptr;    // [query][kTops], as order_of(): the largest product in each of so many groups of all rows
  int given = 1;  // groups of a CTA's rows: enough for all of them to fill the tops
  // How L2 treats rows, few queries only: it lets all go first (`once`, a policy) but so many terms of every CTA's first
  // tile, which the next search then finds there. 0: as it likes. The host says it because ptxas 13.0 loses a policy
  // that the kernel makes for cp.async.
  std::uint64_t once = 0;
  std::int64_t kept_terms = 0;
};

inline constexpr int kDepth = 32;  // terms of a slab: 128 bytes of a row
inline constexpr int kChunks = 8;  // of 16 bytes in it
inline constexpr int kTensorThreads = 128;
inline constexpr int kMoreQuestions = 6;  // about other CTAs' first tiles

/// How the four warps share a tile of kTileRows rows and kQueries queries.
template <int kQueries>
struct TensorTile {
  static constexpr int kWarpsDown = kQueries >= 64 ? 2 : 4, kWarpsAlong = 4 / kWarpsDown;
  static constexpr int kWarpRows = kTileRows / kWarpsDown, kWarpQueries = kQueries / kWarpsAlong;
  static constexpr int kDown = kWarpRows / 16, kAlong = kWarpQueries / 8;
  static constexpr int kGroups = kWarpsDown * 8;  // of rows; a thread's rows belong to one
  // Where a warp's rows are cut in two there are twice as many.
  static constexpr int kHalves = kQueries == 64 ? 2 : 1, kMaxima = kGroups * kHalves;
  static constexpr int kRowBytes = kTileRows * kDepth * 4, kStageBytes = (kTileRows + kQueries) * kDepth * 4;
  static constexpr int kPitch = kQueries + 8;  // of the maxima: spreads groups over banks
  static_assert(kAlong % 2 == 0 && kDown % kHalves == 0);

  struct State {
    float maxima[kMaxima][kPitch];
    float inverse[kTileRows];  // 1 / |row|; NaN: unknown
    float limit[kQueries];     // products above it are no products of finite rows
    float margin[kQueries];
    float bound[kQueries];
    int count[kQueries];
  };
};

/// Slabs in a CTA's ring, and CTAs of a multiprocessor. Three products a term leave less time to wait for memory: few
/// queries then have more warps and fewer slabs.
template <int kTerms, int kQueries>
struct TensorRing {
  static constexpr int kCtas = kTerms == 3 && kQueries == 16 ? 3 : 2;
  static constexpr int kStages = kQueries == 128 || kCtas == 3 ? 3 : kQueries == 64 ? 4 : 5;
  static constexpr int kSharedBytes = kStages * TensorTile<kQueries>::kStageBytes +
                                      static_cast<int>(sizeof(typename TensorTile<kQueries>::State));
};

__device__ __forceinline__ std::uint32_t shared_of(const void* pointer) {
  return static_cast<std::uint32_t>(__cvta_generic_to_shared(pointer));
}
/// Bytes from the beginning of a tile's slab. Chunks are permuted so that eight rows of ldmatrix meet all banks.
__device__ __forceinline__ std::uint32_t slab_offset(int row, int chunk) {
  return static_cast<std::uint32_t>(row * (kDepth * 4) + ((chunk ^ (row & 7)) << 4));
}
/// 16 bytes, or zeros. kPairs: the 256 around them come to L2 together, for a slab has 128 of a row and the next one the
/// others. Where memory is the limit 128 at a time are faster: docs/gpu.md.
template <bool kPairs = true>
__device__ __forceinline__ void copy_16(std::uint32_t to, const float* from, bool there) {
  if constexpr (kPairs) {
    asm volatile("cp.async.cg.shared.global.L2::256B [%0], [%1], 16, %2;" ::"r"(to), "l"(from),
                 "r"(there ? 16 : 0)
                 : "memory");
  } else {
    asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;" ::"r"(to), "l"(from),
                 "r"(there ? 16 : 0)
                 : "memory");
  }
}
/// The same with a policy of L2.
__device__ __forceinline__ void copy_16(std::uint32_t to, const float* from, bool there,
                                        std::uint64_t policy) {
  asm volatile("cp.async.cg.shared.global.L2::cache_hint.L2::128B [%0], [%1], 16, %2, %3;" ::"r"(to),
               "l"(from), "r"(there ? 16 : 0), "l"(policy)
               : "memory");
}
__device__ __forceinline__ void copy_4(std::uint32_t to, const float* from, bool there) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(to), "l"(from), "r"(there ? 4 : 0)
               : "memory");
}
__device__ __forceinline__ void commit_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int kNewest>
__device__ __forceinline__ void await_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kNewest) : "memory");
}
__device__ __forceinline__ void load_matrices(std::uint32_t (&into)[4], std::uint32_t row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(into[0]), "=r"(into[1]), "=r"(into[2]), "=r"(into[3])
               : "r"(row)
               : "memory");
}
/// Bits that tf32 does not have are ignored.
__device__ __forceinline__ void multiply_tf32(float (&sum)[4], const std::uint32_t (&left)[4],
                                              std::uint32_t right0, std::uint32_t right1) {
  asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};"
      : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
      : "r"(left[0]), "r"(left[1]), "r"(left[2]), "r"(left[3]), "r"(right0), "r"(right1));
}
/// Cuts a value down to tf32; returns the rest, which is exact.
__device__ __forceinline__ std::uint32_t split(std::uint32_t& bits) {
  const float whole = __uint_as_float(bits);
  bits &= 0xFFFFE000u;
  return __float_as_uint(whole - __uint_as_float(bits));
}

/// One matrix's slabs on their way to shared memory: kRows rows from `first` of `count`. kPairs: as in copy_16().
template <int kRows, bool kAligned, bool kPairs>
struct SlabCopies {
  static constexpr int kStep = kTensorThreads / kChunks, kCopies = kRows / kStep;
  const float* all;
  std::int64_t count, d;

  template <bool kOnce = false>
  __device__ __forceinline__ void run(std::uint32_t slab, std::int64_t first, std::int64_t term,
                                      [[maybe_unused]] std::uint64_t policy = 0) const {
    const int own = static_cast<int>(threadIdx.x) / kChunks, chunk = static_cast<int>(threadIdx.x) % kChunks;
    const std::int64_t at = term + chunk * 4;
    const float* from = all + (first + own) * d + at;
    const std::uint32_t to = slab + slab_offset(own, chunk);
#pragma unroll
    for (int i = 0; i < kCopies; ++i) {
      const bool row_there = first + own + i * kStep < count;
      if constexpr (kAligned) {
        const bool there = row_there && at < d;
        const float* own_from = there ? from + i * kStep * d : all;
        if constexpr (kOnce) {
          copy_16(to + i * kStep * kDepth * 4, own_from, there, policy);
        } else {
          copy_16<kPairs>(to + i * kStep * kDepth * 4, own_from, there);
        }
      } else {
#pragma unroll
        for (int e = 0; e < 4; ++e) {
          const bool there = row_there && at + e < d;
          copy_4(to + i * kStep * kDepth * 4 + e * 4, there ? from + i * kStep * d + e : all, there);
        }
      }
    }
  }
};

/// The slabs of a CTA's tiles, one behind the other.
template <int kQueries, bool kAligned>
struct Slabs {
  static constexpr bool kFew = kQueries == 16 && kAligned;
  SlabCopies<kTileRows, kAligned, !kFew> rows;
  SlabCopies<kQueries, kAligned, !kFew> queries;
  std::int64_t tile, tile_step, query0;
  std::uint64_t once;
  std::int64_t kept;  // terms, until there are no more to keep
  std::int64_t left;  // slabs
  std::int64_t term = 0;

  __device__ __forceinline__ void copy_next(std::uint32_t stage) {
    if (left > 0) {
      if (kFew && once != 0 && term >= kept) {
        rows.template run<kFew>(stage, tile * kTileRows, term, once);
      } else {
        rows.run(stage, tile * kTileRows, term);
      }
      queries.run(stage + TensorTile<kQueries>::kRowBytes, query0, term);
      --left;
      term += kDepth;
      if (term >= rows.d) term = 0, kept = 0, tile += tile_step;
    }
    commit_copies();  // an empty group keeps the count of those in flight
  }
};

template <int kQueries>
using Sums = float[TensorTile<kQueries>::kDown][TensorTile<kQueries>::kAlong][4];

/// A warp's operands: rows of the tile for one step of eight terms, and queries for two fragments of it. Rows that lie
/// eight apart have the same permutation of chunks: that of row lane & 7.
template <int kQueries>
struct Operands {
  using Tile = TensorTile<kQueries>;
  std::uint32_t left_at, right_at;
  int lane;

  __device__ __forceinline__ Operands(std::uint32_t stage, int warp, int own_lane) : lane(own_lane) {
    const int row = warp / Tile::kWarpsAlong * Tile::kWarpRows,
              query = warp % Tile::kWarpsAlong * Tile::kWarpQueries;
    left_at = stage + (row + (lane & 15)) * (kDepth * 4);
    right_at = stage + Tile::kRowBytes + (query + (lane & 7) + (lane >> 4) * 8) * (kDepth * 4);
  }
  __device__ __forceinline__ void load_left(std::uint32_t (&into)[Tile::kDown][4], int step) const {
    const std::uint32_t chunk = ((step * 2 + (lane >> 4)) ^ (lane & 7)) << 4;
#pragma unroll
    for (int i = 0; i < Tile::kDown; ++i) load_matrices(into[i], left_at + chunk + i * 16 * (kDepth * 4));
  }
  __device__ __forceinline__ void load_right(std::uint32_t (&into)[4], int step, int pair) const {
    const std::uint32_t chunk = ((step * 2 + (lane >> 3 & 1)) ^ (lane & 7)) << 4;
    load_matrices(into, right_at + chunk + pair * 16 * (kDepth * 4));
  }
};

/// Adds the products of a slab. What comes next is loaded before the products of what is there.
template <int kTerms, int kQueries>
__device__ __forceinline__ void use_slab(std::uint32_t stage, Sums<kQueries>& sums, int warp, int lane) {
  using Tile = TensorTile<kQueries>;
  constexpr int kSteps = kDepth / 8, kPairs = Tile::kAlong / 2;
  const Operands<kQueries> operands(stage, warp, lane);
  std::uint32_t left[2][Tile::kDown][4], right[2][4];
  operands.load_left(left[0], 0);
  operands.load_right(right[0], 0, 0);
#pragma unroll
  for (int step = 0; step < kSteps; ++step) {
    std::uint32_t rest[kTerms == 3 ? Tile::kDown : 1][4];
    if constexpr (kTerms == 3) {
#pragma unroll
      for (int i = 0; i < Tile::kDown; ++i) {
#pragma unroll
        for (int e = 0; e < 4; ++e) rest[i][e] = split(left[step % 2][i][e]);
      }
    }
#pragma unroll
    for (int pair = 0; pair < kPairs; ++pair) {
      const int now = (step * kPairs + pair) % 2;
      if (pair + 1 < kPairs) {
        operands.load_right(right[1 - now], step, pair + 1);
      } else if (step + 1 < kSteps) {
        operands.load_right(right[1 - now], step + 1, 0);
      }
      if (pair == 0 && step + 1 < kSteps) operands.load_left(left[(step + 1) % 2], step + 1);
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        std::uint32_t right0 = right[now][half * 2], right1 = right[now][half * 2 + 1];
        if constexpr (kTerms == 3) {
          const std::uint32_t rest0 = split(right0), rest1 = split(right1);
#pragma unroll
          for (int i = 0; i < Tile::kDown; ++i)
            multiply_tf32(sums[i][pair * 2 + half], rest[i], right0, right1);
#pragma unroll
          for (int i = 0; i < Tile::kDown; ++i)
            multiply_tf32(sums[i][pair * 2 + half], left[step % 2][i], rest0, rest1);
        }
#pragma unroll
        for (int i = 0; i < Tile::kDown; ++i)
          multiply_tf32(sums[i][pair * 2 + half], left[step % 2][i], right0, right1);
      }
    }
  }
}

/// Adds the squares of one row of a slab.
__device__ __forceinline__ float add_squares(const char* slab, int row, float sum) {
  float parts[2] = {sum, 0};
#pragma unroll
  for (int chunk = 0; chunk < kChunks; ++chunk) {
    const float4 x = *reinterpret_cast<const float4*>(slab + slab_offset(row, chunk));
    parts[chunk % 2] = cosine::add_product(x, x, parts[chunk % 2]);
  }
  return parts[0] + parts[1];
}

/// The k-th largest of kCount values, in registers.
template <int kCount>
__device__ __forceinline__ float kth_largest(float (&v)[kCount], int k) {
#pragma unroll
  for (int run = 2; run <= kCount; run *= 2) {
#pragma unroll
    for (int distance = run / 2; distance > 0; distance /= 2) {
#pragma unroll
      for (int i = 0; i < kCount; ++i) {
        if ((i & distance) != 0) continue;
        const float a = v[i], b = v[i + distance];
        const bool descending = (i & run) == 0;
        v[i] = descending ? fmaxf(a, b) : fminf(a, b);
        v[i + distance] = descending ? fminf(a, b) : fmaxf(a, b);
      }
    }
  }
  float result = v[0];  // the least of the first k: an index at run time would put them into memory
#pragma unroll
  for (int i = 1; i < kCount; ++i) result = fminf(result, i < k ? v[i] : INFINITY);
  return result;
}

/// kCount values a lane to descending order over groups of `size` lanes each, a power of two. In short code: it runs
/// once or twice a call, and instructions have to be fetched.
template <int kCount>
__device__ __forceinline__ void sort_over_lanes(float (&v)[kCount], int size, int lane) {
#pragma unroll 1
  for (int run = 2; run <= size; run *= 2) {
#pragma unroll 1
    for (int distance = run / 2; distance > 0; distance /= 2) {
      const bool takes_larger = ((lane & distance) == 0) == ((lane & run) == 0 || run == size);
#pragma unroll
      for (float& mine : v) {
        const float other = __shfl_xor_sync(kAll, mine, distance);
        mine = takes_larger ? fmaxf(mine, other) : fminf(mine, other);
      }
    }
  }
}

/// Tells all CTAs of the largest products in kCount groups of this one's rows, a power of two. Leaves others in `v`.
template <int kCount>
__device__ __forceinline__ void give_tops(const TensorSearch& s, std::int64_t query, int chunk,
                                          float (&v)[kCount]) {
#pragma unroll
  for (int step = 0; step < 5; ++step) {
    const int width = 16 >> step;
#pragma unroll
    for (int i = 0; i < kCount / 2; ++i) {
      if (i < width && i + width < kCount) v[i] = s.given <= width ? fmaxf(v[i], v[i + width]) : v[i];
    }
  }
#pragma unroll
  for (int i = 0; i < kTops; ++i) {
    if (i < s.given && v[i] > -INFINITY)
      atomicMax(s.tops + query * kTops + ((chunk * s.given + i) & (kTops - 1)), order_of(v[i]));
  }
}
/// The k-th largest of what all CTAs told, k at most kTops. Asks up to `more` times again while some groups are silent:
/// CTAs come to the end of their first tiles at about the same time.
__device__ __forceinline__ float kth_of_tops(const TensorSearch& s, std::int64_t query, int more) {
  float v[kTops];
  for (bool complete = false; !complete; --more) {
    complete = true;
#pragma unroll
    for (int i = 0; i < kTops; i += 4) {
      std::uint32_t told[4];
      asm volatile("ld.volatile.global.v4.u32 {%0, %1, %2, %3}, [%4];"
                   : "=r"(told[0]), "=r"(told[1]), "=r"(told[2]), "=r"(told[3])
                   : "l"(s.tops + query * kTops + i)
                   : "memory");
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        v[i + e] = told[e] == 0 ? -INFINITY : score_of(told[e]);
        complete &= told[e] != 0 || more <= 0;
      }
    }
  }
  return kth_largest(v, s.search.k);
}

/// Where a warp writes the candidates that its lanes have for kColumns queries each, kSites a query: lanes with the same
/// lane & 3 have the same queries. One addition to a query's count serves the warp, and those of all queries are on
/// their way at once.
template <int kColumns, int kSites>
struct Slots {
  int first[kColumns];  // of the warp's
  unsigned char offset[kColumns][kSites];

  /// Bit c * kSites + i of `hits`: candidate i of query c. `counts` are of the lane's queries.
  __device__ __forceinline__ Slots(std::uint64_t hits, int* const (&counts)[kColumns], int lane) {
    const unsigned column = 0x11111111u << (lane & 3), before = (1u << lane) - 1;
    int total[kColumns];
#pragma unroll
    for (int c = 0; c < kColumns; ++c) {
      total[c] = 0;
#pragma unroll
      for (int i = 0; i < kSites; ++i) {
        const unsigned lanes = __ballot_sync(kAll, (hits >> (c * kSites + i) & 1) != 0) & column;
        offset[c][i] = static_cast<unsigned char>(total[c] + __popc(lanes & before));
        total[c] += __popc(lanes);
      }
    }
#pragma unroll
    for (int c = 0; c < kColumns; ++c) {
      first[c] = 0;
      if (lane < 4 && total[c] > 0) first[c] = atomicAdd(counts[c], total[c]);
    }
#pragma unroll
    for (int c = 0; c < kColumns; ++c) first[c] = __shfl_sync(kAll, first[c], lane & 3);
  }
};

/// Leaves out the candidates of a query that have fallen below the bound, by one warp; returns how many stay.
__device__ __forceinline__ int keep_candidates(Candidate* own, int count, float bound, int lane) {
  int kept = 0;
  for (int base = 0; base < count; base += 32) {
    Candidate candidate{};
    if (base + lane < count) candidate = own[base + lane];
    const bool stays = base + lane < count && !(candidate.product < bound);
    const unsigned staying = __ballot_sync(kAll, stays);
    if (stays) own[kept + __popc(staying & ((1u << lane) - 1))] = candidate;
    kept += __popc(staying);
    __syncwarp();
  }
  return kept;
}

}  // namespace fulcrum::backends::cuda::topk
