// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Products of rows with queries on the device and the scores they become. A product belongs to one warp: lane l adds
// elements 128 k + 4 l .. + 3 in one fp32 chain, and the lanes are added by halves. That order does not depend on how
// many rows and queries a warp takes at once, so a score's bits depend on its row and query alone.
#pragma once

#include <cstdint>

#include "backends/cuda/streaming.cuh"

namespace fulcrum::backends::cuda::cosine {

inline constexpr int kWarp = 32;
inline constexpr int kStep = 4 * kWarp;  // elements a warp takes at once

struct Vectors {
  const float* queries;
  const float* rows;
  const float* inverse;  // 1 / |row|; null: 1, or computed
  float* out;
  std::int64_t query_count, row_count, d;
};

/// Four elements of which `left` exist; the others are 0. Not by the read-only path: a kernel may be up before the one
/// that writes its input has finished.
template <bool kAligned>
__device__ inline float4 load_four(const float* from, std::int64_t left) {
  if constexpr (kAligned) {  // lengths are multiples of four then
    return left > 0 ? __ldca(reinterpret_cast<const float4*>(from)) : make_float4(0, 0, 0, 0);
  } else {
    return make_float4(left > 0 ? from[0] : 0, left > 1 ? from[1] : 0, left > 2 ? from[2] : 0,
                       left > 3 ? from[3] : 0);
  }
}

/// Four elements of an aligned row that is read once: it passes the first cache by, where it would take the queries'
/// place, and `policy` says how the second treats it.
__device__ inline float4 load_once(const float* from, std::int64_t left,
                                   [[maybe_unused]] std::uint64_t policy) {
  float4 four = make_float4(0, 0, 0, 0);
  if (left <= 0) return four;
#if __CUDA_ARCH__ >= 900  // as policy_of()
  asm volatile("ld.global.L1::no_allocate.L2::cache_hint.v4.f32 {%0, %1, %2, %3}, [%4], %5;"
               : "=f"(four.x), "=f"(four.y), "=f"(four.z), "=f"(four.w)
               : "l"(__cvta_generic_to_global(from)), "l"(policy));
#else
  asm volatile("ld.global.L1::no_allocate.v4.f32 {%0, %1, %2, %3}, [%4];"
               : "=f"(four.x), "=f"(four.y), "=f"(four.z), "=f"(four.w)
               : "l"(__cvta_generic_to_global(from)));
#endif
  return four;
}

__device__ inline float add_product(float4 a, float4 b, float sum) {
  return __fmaf_rn(a.w, b.w, __fmaf_rn(a.z, b.z, __fmaf_rn(a.y, b.y, __fmaf_rn(a.x, b.x, sum))));
}

template <class Real>
__device__ inline Real sum_over_lanes(Real value) {
#pragma unroll
  for (int distance = kWarp / 2; distance > 0; distance /= 2) {
    value = value + __shfl_xor_sync(0xFFFFFFFFu, value, distance);
  }
  return value;
}

/// 2 * kHalf values over 2 * kHalf lanes to value l in lane l: each half of the lanes gives the other half's values away.
template <int kHalf>
__device__ inline void exchange(float (&v)[kWarp], int lane) {
  const bool upper = (lane & kHalf) != 0;
#pragma unroll
  for (int i = 0; i < kHalf; ++i) {
    const float given = upper ? v[i] : v[i + kHalf];
    const float kept = upper ? v[i + kHalf] : v[i];
    v[i] = kept + __shfl_xor_sync(0xFFFFFFFFu, given, kHalf);
  }
  if constexpr (kHalf > 1) exchange<kHalf / 2>(v, lane);
}

/// The sum over lanes of v[index], where index may differ between lanes, with the additions of sum_over_lanes(). As in
/// exchange(), a half of the lanes gives the other half's values away while there are several, so that it takes few
/// exchanges.
template <int kCount>
__device__ inline float sum_chosen(float (&v)[kCount], int index) {
  static_assert(kCount > 0 && kCount <= kWarp && (kCount & (kCount - 1)) == 0);
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
#pragma unroll
  for (int step = 0; step < 5; ++step) {
    const int distance = kWarp / 2 >> step, half = kCount / 2 >> step;
    if (half == 0) {
      v[0] = v[0] + __shfl_xor_sync(0xFFFFFFFFu, v[0], distance);
      continue;
    }
    const bool upper = (lane & distance) != 0;
#pragma unroll
    for (int i = 0; i < kCount / 2; ++i) {
      if (i >= half) continue;
      const float given = upper ? v[i] : v[i + half], kept = upper ? v[i + half] : v[i];
      v[i] = kept + __shfl_xor_sync(0xFFFFFFFFu, given, distance);
    }
  }
  // Lanes from index * kWarp / kCount on have the sum.
  return kCount == 1 ? v[0] : __shfl_sync(0xFFFFFFFFu, v[0], index * (kWarp / kCount));
}

/// The sum of value l in lane l, with the additions of sum_over_lanes().
template <int kCount>
__device__ inline float sums_by_lane(float (&v)[kCount], int lane) {
  if constexpr (kCount == kWarp) {
    exchange<kWarp / 2>(v, lane);
    return v[0];
  } else {
    return sum_chosen(v, lane);
  }
}

/// One score in fp64 by the whole warp, in every lane: 0 when either is zero, NaN when either holds a NaN or Inf.
__device__ inline float exact_score(const float* q, const float* t, std::int64_t d, int lane) {
  double product = 0, q_square = 0, t_square = 0;
  for (std::int64_t i = lane; i < d; i += kWarp) {
    const double x = q[i], y = t[i];
    product = __fma_rn(x, y, product);
    q_square = __fma_rn(x, x, q_square);
    t_square = __fma_rn(y, y, t_square);
  }
  product = sum_over_lanes(product), q_square = sum_over_lanes(q_square), t_square = sum_over_lanes(t_square);
  if (!isfinite(q_square) || !isfinite(t_square)) return NAN;
  if (q_square == 0 || t_square == 0) return 0;
  return static_cast<float>(fmin(fmax(product / (sqrt(q_square) * sqrt(t_square)), -1.0), 1.0));
}

/// What fp32 carries, with room for the products: norms in [2^-50, 2^50]. NaN is not in it.
__device__ inline bool safe_square(float square) { return square >= 0x1p-100F && square <= 0x1p100F; }
__device__ inline bool safe_norm(float norm) { return norm >= 0x1p-50F && norm <= 0x1p50F; }

/// The square of query `lane` % kQueries of kQueries.
template <bool kAligned, int kQueries>
__device__ inline float square_of_query(const float* q, std::int64_t d, int lane) {
  float squares[kQueries] = {};
  for (std::int64_t at = 4 * lane; at < d; at += kStep) {
#pragma unroll
    for (int j = 0; j < kQueries; ++j) {
      const float4 query = load_four<kAligned>(q + j * d + at, d - at);
      squares[j] = add_product(query, query, squares[j]);
    }
  }
  return sum_chosen(squares, lane % kQueries);
}

/// kRows rows against kQueries queries, all of them there. kRowSquares: with the rows' norms, which are not known. kOnce:
/// nobody else reads these rows.
template <bool kAligned, int kRows, int kQueries, bool kRowSquares, bool kOnce = false>
struct Tile {
  static_assert(kAligned || !kOnce);
  static constexpr int kPairs = kRows * kQueries;
  static constexpr bool kQuerySquares =
      kQueries <= 4;  // in the same pass: more of them cost more than their own pass

  const float *q, *t;  // the first query and row
  std::int64_t d;
  int lane;
  std::uint64_t policy = 0;      // with kOnce
  float dot[kPairs] = {};        // row r . query j at r * kQueries + j
  float row_square[kRows] = {};  // this lane's part
  float query_square[kQuerySquares ? kQueries : 1] = {};

  template <int kAhead>
  __device__ void add_steps(std::int64_t at, std::int64_t left) {
    float4 row[kAhead][kRows];
#pragma unroll
    for (int s = 0; s < kAhead; ++s) {
#pragma unroll
      for (int r = 0; r < kRows; ++r) {
        const float* from = t + r * d + at + s * kStep;
        if constexpr (kOnce) {
          row[s][r] = load_once(from, left - s * kStep, policy);
        } else {
          row[s][r] = load_four<kAligned>(from, left - s * kStep);
        }
      }
    }
#pragma unroll
    for (int s = 0; s < kAhead; ++s) {
#pragma unroll
      for (int j = 0; j < kQueries; ++j) {
        const float4 query = load_four<kAligned>(q + j * d + at + s * kStep, left - s * kStep);
#pragma unroll
        for (int r = 0; r < kRows; ++r) {
          dot[r * kQueries + j] = add_product(row[s][r], query, dot[r * kQueries + j]);
        }
        if constexpr (kQuerySquares) query_square[j] = add_product(query, query, query_square[j]);
      }
      if constexpr (kRowSquares) {
#pragma unroll
        for (int r = 0; r < kRows; ++r) row_square[r] = add_product(row[s][r], row[s][r], row_square[r]);
      }
    }
  }

  __device__ void multiply() {
    constexpr int kAhead = !kAligned || kQueries == 8 ? 1 : kRows == 1 ? 6 : kRows == 2 ? 3 : 2;
    std::int64_t at = 4 * lane;
    for (std::int64_t step = 0; step < d / (kAhead * kStep); ++step, at += kAhead * kStep) {
      add_steps<kAhead>(at, kAhead * kStep);
    }
    for (; at < d; at += kStep) add_steps<1>(at, d - at);
  }

  /// Lane l < kPairs gets the score of row l / kQueries and query l % kQueries. `inverse`: of the first row.
  __device__ float score(float q_square, const float* inverse) {
    const int r = lane / kQueries % kRows;
    if constexpr (kQuerySquares) q_square = sum_chosen(query_square, lane % kQueries);
    const float product = sums_by_lane(dot, lane);
    bool safe = safe_square(q_square) && isfinite(product);
    float score = product / sqrtf(q_square);
    if constexpr (kRowSquares) {
      const float t_square = sum_chosen(row_square, r);
      safe = safe && safe_square(t_square);
      score = product / (sqrtf(q_square) * sqrtf(t_square));
    } else if (inverse) {
      const float known = inverse[r];
      safe = safe && safe_norm(known);
      score = score * known;
    }
    score = fminf(fmaxf(score, -1.0F), 1.0F);
    std::uint32_t redo = __ballot_sync(0xFFFFFFFFu, lane < kPairs && !safe);
    for (; redo != 0; redo &= redo - 1) {
      const int pair = __ffs(static_cast<int>(redo)) - 1;
      const float exact = exact_score(q + pair % kQueries * d, t + pair / kQueries * d, d, lane);
      if (lane == pair) score = exact;
    }
    return score;
  }
};

}  // namespace fulcrum::backends::cuda::cosine
