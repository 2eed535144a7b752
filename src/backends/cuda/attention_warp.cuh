// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// One warp's share of attention: 16 queries a tile against some keys at a time, all of it in registers. Who holds what
// is said in attention_layout.h.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <type_traits>

#include "backends/cuda/attention.h"
#include "backends/cuda/attention_layout.h"

namespace fulcrum::backends::cuda::attention {

inline constexpr unsigned kAllLanes = 0xFFFFFFFFu;

/// Denormal arguments count as 0 and denormal results become 0: neither shows in a sum that holds a 1.
__device__ __forceinline__ float exp2_of(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
__device__ __forceinline__ float log2_of(float x) {
  float y;
  asm("lg2.approx.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
__device__ __forceinline__ float inverse_of(float x) {
  float y;
  asm("rcp.approx.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

template <Element kElement>
__device__ __forceinline__ void multiply(float (&sum)[4], const uint32_t (&left)[4], uint32_t right0,
                                         uint32_t right1) {
  if constexpr (kElement == Element::f16) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};"
        : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
        : "r"(left[0]), "r"(left[1]), "r"(left[2]), "r"(left[3]), "r"(right0), "r"(right1));
  } else {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};"
        : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
        : "r"(left[0]), "r"(left[1]), "r"(left[2]), "r"(left[3]), "r"(right0), "r"(right1));
  }
}

/// Rounded to the nearest, `low` in the lower half.
template <Element kElement>
__device__ __forceinline__ uint32_t pack(float low, float high) {
  uint32_t word;
  if constexpr (kElement == Element::f16) {
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(high), "f"(low));
  } else {
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(high), "f"(low));
  }
  return word;
}

__device__ __forceinline__ uint32_t word_of(const uint4& words, int i) {
  return i == 0 ? words.x : i == 1 ? words.y : i == 2 ? words.z : words.w;
}

/// The logarithm to base e of a sum of powers of two relative to 2^max; NaN when nothing was finite.
__device__ __forceinline__ float lse_of(float max, float sum) {
  constexpr float kLn2 = 0.693147182F;
  return sum > 0 ? (max + log2_of(sum)) * kLn2 : NAN;
}

/// kTiles tiles of queries with rows of kD elements; kStep keys at a time.
template <Element kElement, int kD, int kTiles, int kStep>
struct Warp {
  static constexpr int kScoreVectors = kD / 32, kValueVectors = kD / 64;
  static constexpr int kKeyStep = kStep;
  static_assert(kD % 64 == 0 && kStep % 16 == 0);

  using Scores = float[kTiles][kStep / 8][4];
  using Keys = uint4[kStep / 8][kScoreVectors];
  using Values = uint4[kStep / 16][4][kValueVectors];

  // Registers do not hold long rows of Q beside those of O: each lane has its share in shared memory, for itself.
  static constexpr bool kHoldsQueries = kD <= 128;
  static constexpr int kQueryVectors = kHoldsQueries ? 0 : kTiles * 2 * kScoreVectors * 32;  // of a warp

  uint4 q[kTiles][2][kHoldsQueries ? kScoreVectors : 1];
  uint4* q_memory = nullptr;
  float o[kTiles][kValueVectors][8][4];
  float max[kTiles][2], sum[kTiles][2];  // of rows g and g + 8; the sum is this lane's share
  float raw[kTiles][2];                  // sum of all scores, masked or not: finite where its keys are

  __device__ Warp() {
#pragma unroll
    for (int t = 0; t < kTiles; ++t) {
      max[t][0] = max[t][1] = -INFINITY;
      sum[t][0] = sum[t][1] = raw[t][0] = raw[t][1] = 0;
#pragma unroll
      for (int h = 0; h < kValueVectors; ++h) {
#pragma unroll
        for (int j = 0; j < 8; ++j) o[t][h][j][0] = o[t][h][j][1] = o[t][h][j][2] = o[t][h][j][3] = 0;
      }
    }
  }

  __device__ __forceinline__ uint4& place(int t, int r, int i, int lane) {
    if constexpr (kHoldsQueries) {
      return q[t][r][i];
    } else {
      return q_memory[((t * 2 + r) * kScoreVectors + i) * 32 + lane];
    }
  }
  /// row(s, v): vector v of query s of this warp's.
  template <class Row>
  __device__ __forceinline__ void load_queries(const Row& row) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
    for (int t = 0; t < kTiles; ++t) {
#pragma unroll
      for (int r = 0; r < 2; ++r) {
#pragma unroll
        for (int i = 0; i < kScoreVectors; ++i)
          place(t, r, i, lane) = row(t * kTileRows + score_row(lane, r), score_vector(lane, i));
      }
    }
  }
  /// row(s, v): vector v of key s of the step.
  template <class Row>
  static __device__ __forceinline__ void load_keys(Keys& k, const Row& row) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
    for (int n = 0; n < kStep / 8; ++n) {
#pragma unroll
      for (int i = 0; i < kScoreVectors; ++i) k[n][i] = row(score_row(lane, n), score_vector(lane, i));
    }
  }
  template <class Row>
  static __device__ __forceinline__ void load_values(Values& v, const Row& row) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
    for (int n = 0; n < kStep / 16; ++n) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
#pragma unroll
        for (int h = 0; h < kValueVectors; ++h)
          v[n][i][h] = row(value_row(lane, n, i), value_vector(lane, h));
      }
    }
  }

  /// row(s, v): vector v of key s of the step, or what load_keys() got of it.
  template <class Row>
  __device__ __forceinline__ void score(Scores& s, const Row& row) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
    for (int t = 0; t < kTiles; ++t) {
#pragma unroll
      for (int n = 0; n < kStep / 8; ++n) s[t][n][0] = s[t][n][1] = s[t][n][2] = s[t][n][3] = 0;
    }
#pragma unroll
    for (int i = 0; i < kScoreVectors; ++i) {
      uint4 k[kStep / 8];
#pragma unroll
      for (int n = 0; n < kStep / 8; ++n) {
        if constexpr (std::is_same_v<Row, Keys>) {
          k[n] = row[n][i];
        } else {
          k[n] = row(score_row(lane, n), score_vector(lane, i));
        }
      }
#pragma unroll
      for (int half = 0; half < 2; ++half) {
#pragma unroll
        for (int t = 0; t < kTiles; ++t) {
          const int low = lower_word(half), high = upper_word(half);
          const uint4 upper = place(t, 0, i, lane), lower = place(t, 1, i, lane);
          const uint32_t left[4] = {word_of(upper, low), word_of(lower, low), word_of(upper, high),
                                    word_of(lower, high)};
#pragma unroll
          for (int n = 0; n < kStep / 8; ++n)
            multiply<kElement>(s[t][n], left, word_of(k[n], low), word_of(k[n], high));
        }
      }
    }
#pragma unroll
    for (int t = 0; t < kTiles; ++t) {
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        float total = s[t][0][2 * r] + s[t][0][2 * r + 1];
#pragma unroll
        for (int n = 1; n < kStep / 8; ++n) total += s[t][n][2 * r] + s[t][n][2 * r + 1];
        raw[t][r] += total;
      }
    }
  }

  /// Scores behind the first left(t, r) keys of the step become -Inf, which weighs nothing.
  template <class Left>
  static __device__ __forceinline__ void mask(Scores& s, const Left& left) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
    for (int t = 0; t < kTiles; ++t) {
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        const int seen = left(t, r);
#pragma unroll
        for (int n = 0; n < kStep / 8; ++n) {
          if (score_column(lane, n) >= seen) s[t][n][2 * r] = -INFINITY;
          if (score_column(lane, n) + 1 >= seen) s[t][n][2 * r + 1] = -INFINITY;
        }
      }
    }
  }

  /// Scores become weights, relative to the row's new maximum; what was summed up before follows it.
  __device__ __forceinline__ void weigh(Scores& s, float scale, bool is_first) {
#pragma unroll
    for (int t = 0; t < kTiles; ++t) {
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        float most = fmaxf(s[t][0][2 * r], s[t][0][2 * r + 1]);
#pragma unroll
        for (int n = 1; n < kStep / 8; ++n) most = fmaxf(most, fmaxf(s[t][n][2 * r], s[t][n][2 * r + 1]));
        most = fmaxf(most, __shfl_xor_sync(kAllLanes, most, 1));
        most = fmaxf(most, __shfl_xor_sync(kAllLanes, most, 2));
        const float next = fmaxf(max[t][r], most * scale);
        const float shift = next == -INFINITY ? 0 : next;  // nothing seen yet
        if (!is_first) {
          const float factor = exp2_of(max[t][r] - shift);
          sum[t][r] *= factor;
#pragma unroll
          for (int h = 0; h < kValueVectors; ++h) {
#pragma unroll
            for (int j = 0; j < 8; ++j) {
              o[t][h][j][2 * r] *= factor;
              o[t][h][j][2 * r + 1] *= factor;
            }
          }
        }
        max[t][r] = next;
#pragma unroll
        for (int n = 0; n < kStep / 8; ++n) {
          s[t][n][2 * r] = exp2_of(fmaf(s[t][n][2 * r], scale, -shift));
          s[t][n][2 * r + 1] = exp2_of(fmaf(s[t][n][2 * r + 1], scale, -shift));
          sum[t][r] += s[t][n][2 * r] + s[t][n][2 * r + 1];
        }
      }
    }
  }

  /// row(s, v): vector v of value s of the step, or what load_values() got of it.
  template <class Row>
  __device__ __forceinline__ void add_values(const Scores& s, const Row& row) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
    for (int n = 0; n < kStep / 16; ++n) {
      uint32_t left[kTiles][4];
#pragma unroll
      for (int t = 0; t < kTiles; ++t) {
        left[t][0] = pack<kElement>(s[t][2 * n][0], s[t][2 * n][1]);
        left[t][1] = pack<kElement>(s[t][2 * n][2], s[t][2 * n][3]);
        left[t][2] = pack<kElement>(s[t][2 * n + 1][0], s[t][2 * n + 1][1]);
        left[t][3] = pack<kElement>(s[t][2 * n + 1][2], s[t][2 * n + 1][3]);
      }
#pragma unroll
      for (int h = 0; h < kValueVectors; ++h) {
        uint4 v[4];
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          if constexpr (std::is_same_v<Row, Values>) {
            v[i] = row[n][i][h];
          } else {
            v[i] = row(value_row(lane, n, i), value_vector(lane, h));
          }
        }
#pragma unroll
        for (int j = 0; j < 8; ++j) {
          const int word = value_word(j);
          const uint32_t right0 = __byte_perm(word_of(v[0], word), word_of(v[1], word), value_halves(j));
          const uint32_t right1 = __byte_perm(word_of(v[2], word), word_of(v[3], word), value_halves(j));
#pragma unroll
          for (int t = 0; t < kTiles; ++t) multiply<kElement>(o[t][h][j], left[t], right0, right1);
        }
      }
    }
  }

  /// Sums become NaN where a score or a part of O is not finite: that of a query, key or value that is not, for one such
  /// element spoils all it is multiplied with. (A weight of 0 makes NaN of it, too.)
  __device__ __forceinline__ void check_finite() {
#pragma unroll
    for (int t = 0; t < kTiles; ++t) {
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        float total = raw[t][r];
#pragma unroll
        for (int h = 0; h < kValueVectors; ++h) {
#pragma unroll
          for (int i = 0; i < kLaneRun; i += 4)
            total += (output(t, r, h, i) + output(t, r, h, i + 1)) +
                     (output(t, r, h, i + 2) + output(t, r, h, i + 3));
        }
        sum[t][r] = fmaf(total, 0.0F, sum[t][r]);
      }
    }
  }
  /// The rows' sums in all their lanes.
  __device__ __forceinline__ void share_sums() {
#pragma unroll
    for (int t = 0; t < kTiles; ++t) {
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        sum[t][r] += __shfl_xor_sync(kAllLanes, sum[t][r], 1);
        sum[t][r] += __shfl_xor_sync(kAllLanes, sum[t][r], 2);
      }
    }
  }

  /// Normalised rows of O from row `first` on and, where `lse` is not null, their logarithms; sums are shared. kWhole:
  /// rows are whole vectors of 16 bytes, all `d` elements of them.
  template <bool kWhole>
  __device__ __forceinline__ void write(uint16_t* o, float* lse, int64_t first, int64_t queries,
                                        int64_t row_elements, int d) const {
    const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
    for (int t = 0; t < kTiles; ++t) {
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        const int64_t query = first + t * kTileRows + score_row(lane, r);
        if (query >= queries) continue;
        if (lse && lane % 4 == 0) lse[query] = lse_of(max[t][r], sum[t][r]);
        write_row<kWhole>(o + query * row_elements, t, r, inverse_of(sum[t][r]), d);
      }
    }
  }
  template <bool kWhole>
  __device__ __forceinline__ void write_row(uint16_t* to, int t, int r, float inverse, int d) const {
    const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
    for (int h = 0; h < kValueVectors; ++h) {
#pragma unroll
      for (int i = 0; i < kLaneRun; i += 8) {
        const int at = run_element(lane, h, i);
        uint32_t word[4];
#pragma unroll
        for (int j = 0; j < 4; ++j)
          word[j] =
              pack<kElement>(output(t, r, h, i + 2 * j) * inverse, output(t, r, h, i + 2 * j + 1) * inverse);
        if constexpr (kWhole) {
          if (at < d) *reinterpret_cast<uint4*>(to + at) = make_uint4(word[0], word[1], word[2], word[3]);
        } else {
#pragma unroll
          for (int j = 0; j < 8; ++j) {
            if (at + j < d) to[at + j] = static_cast<uint16_t>(word[j / 2] >> (j % 2 * 16));
          }
        }
      }
    }
  }

  /// Element i of a run of O, in row g + 8 r of tile t.
  __device__ __forceinline__ float output(int t, int r, int h, int i) const {
    return o[t][h][run_product(i)][run_number(i, r)];
  }
};

}  // namespace fulcrum::backends::cuda::attention
