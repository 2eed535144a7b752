// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Products so thin that a tile would be mostly empty, or each of its chains of fmas wait for itself: a few columns, and a
// handful of sums in all. Here a sum is several chains, which meet in a fixed order; which ones follows from the shape
// of the whole product. Included once per instruction set.
#include <array>

#include "backends/simd/gemm.h"
#include "backends/simd/sums-inl.h"
#include "backends/simd/transpose-inl.h"
#include "backends/simd/workspace.h"

#if defined(FULCRUM_BACKENDS_SIMD_GEMM_THIN_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FULCRUM_BACKENDS_SIMD_GEMM_THIN_INL_H_
#undef FULCRUM_BACKENDS_SIMD_GEMM_THIN_INL_H_
#else
#define FULCRUM_BACKENDS_SIMD_GEMM_THIN_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace fulcrum::backends::simd::HWY_NAMESPACE {

/// kRows rows by kColumns columns of C, row j of `b` being column j of B: a sum has k in the lanes of one vector, or of two
/// in turn where few sums share the fmas.
template <std::size_t kRows, std::size_t kColumns>
HWY_INLINE void multiply_dots(Matrix a, Matrix b, float* c, std::size_t stride, std::size_t depth) {
  constexpr std::size_t kTurns = kColumns == 1 ? 2 : 1;
  const Float d;
  Floats sum[4][kColumns][2];
  HWY_UNROLL(4)
  for (std::size_t r = 0; r < 4; ++r) {
    HWY_UNROLL(4)
    for (std::size_t j = 0; j < kColumns; ++j) sum[r][j][0] = sum[r][j][1] = hn::Zero(d);
  }
  std::size_t k = 0;
  for (; k + kTurns * kLanes <= depth; k += kTurns * kLanes) {
    HWY_UNROLL(2)
    for (std::size_t turn = 0; turn < kTurns; ++turn) {
      HWY_UNROLL(4)
      for (std::size_t j = 0; j < kColumns; ++j) {
        const auto right = hn::LoadU(d, b.data + j * b.stride + k + turn * kLanes);
        HWY_UNROLL(4)
        for (std::size_t r = 0; r < kRows; ++r)
          sum[r][j][turn] =
              hn::MulAdd(hn::LoadU(d, a.data + r * a.stride + k + turn * kLanes), right, sum[r][j][turn]);
      }
    }
  }
  const auto add_last = [&](std::size_t count) HWY_ATTR {
    HWY_UNROLL(4)
    for (std::size_t j = 0; j < kColumns; ++j) {
      const auto right = load_first(b.data + j * b.stride + k, count);
      HWY_UNROLL(4)
      for (std::size_t r = 0; r < kRows; ++r)
        sum[r][j][0] = hn::MulAdd(load_first(a.data + r * a.stride + k, count), right, sum[r][j][0]);
    }
    k += count;
  };
  if (kTurns == 2 && k + kLanes <= depth) add_last(kLanes);
  if (k < depth) add_last(depth - k);
  HWY_UNROLL(4)
  for (std::size_t j = 0; j < kColumns; ++j) {
    float sums[4];
    HWY_UNROLL(4)
    for (std::size_t r = 0; r < 4; ++r) {
      if constexpr (kTurns == 2) sum[r][j][0] = hn::Add(sum[r][j][0], sum[r][j][1]);
    }
    store_four_sums(d, sum[0][j][0], sum[1][j][0], sum[2][j][0], sum[3][j][0], sums);
    HWY_UNROLL(4)
    for (std::size_t r = 0; r < kRows; ++r) c[r * stride + j] = sums[r];
  }
}

template <std::size_t kColumns>
HWY_NOINLINE void multiply_rows(Matrix a, Matrix b, float* c, std::size_t stride, std::size_t rows,
                                std::size_t depth) {
  std::size_t i = 0;
  for (; i + 4 <= rows; i += 4) {
    if (depth < kLanes) fetch_short_rows(a.data + i * a.stride, 4 * a.stride);
    multiply_dots<4, kColumns>(Matrix{a.data + i * a.stride, a.stride}, b, c + i * stride, stride, depth);
  }
  for (; i < rows; ++i)
    multiply_dots<1, kColumns>(Matrix{a.data + i * a.stride, a.stride}, b, c + i * stride, stride, depth);
}

/// Sums of one chain, and step k of it.
template <std::size_t kRows, std::size_t kVectors>
struct ThinChain {  // loops are unrolled, or the compiler keeps the sums in memory
  Floats sum[kRows][kVectors];

  HWY_INLINE void clear() {
    HWY_UNROLL(4)
    for (std::size_t i = 0; i < kRows; ++i) {
      HWY_UNROLL(4)
      for (std::size_t v = 0; v < kVectors; ++v) sum[i][v] = hn::Zero(Float());
    }
  }
  HWY_INLINE void add(const float* a, std::size_t stride, const float* b, hn::Mask<Float> last) {
    const Float d;
    HWY_UNROLL(4)
    for (std::size_t v = 0; v < kVectors; ++v) {
      const auto right =
          v + 1 < kVectors ? hn::LoadU(d, b + v * kLanes) : hn::MaskedLoad(last, d, b + v * kLanes);
      HWY_UNROLL(4)
      for (std::size_t i = 0; i < kRows; ++i)
        sum[i][v] = hn::MulAdd(hn::Set(d, a[i * stride]), right, sum[i][v]);
    }
  }
};

/// C[kRows, columns] = A * B, columns in kVectors vectors, the last one of `last`: k in turn to four chains, or two where
/// those have three sums each or more.
template <std::size_t kRows, std::size_t kVectors>
HWY_NOINLINE void multiply_thin(Matrix a, Matrix b, float* c, std::size_t stride, std::size_t last,
                                std::size_t depth) {
  constexpr bool kFour = kRows * kVectors <= 2;
  const Float d;
  const auto mask = hn::FirstN(d, last);
  ThinChain<kRows, kVectors> chain[4];
  HWY_UNROLL(4)
  for (std::size_t i = 0; i < 4; ++i) chain[i].clear();
  const float *left = a.data, *right = b.data;
  std::size_t k = 0;
  for (; k + (kFour ? 4 : 2) <= depth; k += kFour ? 4 : 2) {
    chain[0].add(left, a.stride, right, mask);
    chain[1].add(left + 1, a.stride, right + b.stride, mask);
    if constexpr (kFour) {
      chain[2].add(left + 2, a.stride, right + 2 * b.stride, mask);
      chain[3].add(left + 3, a.stride, right + 3 * b.stride, mask);
    }
    left += kFour ? 4 : 2;
    right += (kFour ? 4 : 2) * b.stride;
  }
  for (; k < depth; ++k, ++left, right += b.stride) chain[0].add(left, a.stride, right, mask);
  HWY_UNROLL(4)
  for (std::size_t i = 0; i < kRows; ++i) {
    HWY_UNROLL(4)
    for (std::size_t v = 0; v < kVectors; ++v) {
      auto all = hn::Add(chain[0].sum[i][v], chain[1].sum[i][v]);
      if constexpr (kFour) all = hn::Add(all, hn::Add(chain[2].sum[i][v], chain[3].sum[i][v]));
      float* at = c + i * stride + v * kLanes;
      v + 1 < kVectors ? hn::StoreU(all, d, at) : store_first(all, at, last);
    }
  }
}

/// Whether few columns are done by dots, with the right side transposed: a dot takes a fraction of an fma for every k and
/// some for its end, where a tile takes one for every k and a vector of columns. Limits by trial.
inline bool by_columns(std::size_t rows, std::size_t columns, std::size_t depth) {
  constexpr std::size_t kMost = HWY_TARGET <= HWY_AVX3 ? 8 : HWY_TARGET == HWY_AVX2 ? 3 : 1;
  return columns == 1 || (columns <= kMost && rows >= 5 && depth >= 32);
}

/// to[j * depth + k] = b[k * columns + j]: rows of two or three are taken apart by the vector.
inline void transpose_columns(const float* b, std::size_t depth, std::size_t columns, float* to) {
  const Float d;
  std::size_t k = 0;
  Floats first, second, third;
  for (; columns == 2 && k + kLanes <= depth; k += kLanes) {
    hn::LoadInterleaved2(d, b + 2 * k, first, second);
    hn::StoreU(first, d, to + k);
    hn::StoreU(second, d, to + depth + k);
  }
  for (; columns == 3 && k + kLanes <= depth; k += kLanes) {
    hn::LoadInterleaved3(d, b + 3 * k, first, second, third);
    hn::StoreU(first, d, to + k);
    hn::StoreU(second, d, to + depth + k);
    hn::StoreU(third, d, to + 2 * depth + k);
  }
  transpose(b + k * columns, columns, depth - k, columns, to + k, depth);
}

/// C[rows, columns] = A * B, with B's rows next to each other. False: there is no memory for the transpose.
inline bool multiply_columns(Matrix a, const float* b, float* c, std::size_t stride, std::size_t rows,
                             std::size_t columns, std::size_t depth) {
  Matrix transposed{b, depth};
  if (columns > 1) {
    float* copy = workspace(columns * depth);
    if (!copy) return false;
    transpose_columns(b, depth, columns, copy);
    transposed.data = copy;
  }
  for (std::size_t j = 0; j < columns;) {
    constexpr std::size_t kMost =
        HWY_TARGET <= HWY_AVX3 ? 4 : 2;  // 16 sums are half of the registers, or all
    const std::size_t some = columns - j >= 4 ? kMost : columns - j >= 2 ? 2 : 1;
    const auto multiply = some == 4 ? multiply_rows<4> : some == 2 ? multiply_rows<2> : multiply_rows<1>;
    multiply(a, Matrix{transposed.data + j * depth, depth}, c + j, stride, rows, depth);
    j += some;
  }
  return true;
}

/// multiply_thin() for a product of so many rows and columns; null: it has too many sums at once, or nothing to gain. Only
/// where the last lanes of a row can be read at once. So many columns are in one piece if there are four rows or less.
using Thin = void (*)(Matrix, Matrix, float*, std::size_t, std::size_t, std::size_t);
inline Thin thin_for(std::size_t rows, std::size_t columns, std::size_t depth) {
  constexpr std::size_t kColumns = 32, kDepth = 16, kSums = 4;
  const std::size_t vectors = (columns + kLanes - 1) / kLanes;
  if (HWY_TARGET > HWY_AVX2 || columns > kColumns || depth < kDepth || rows * vectors > kSums) return nullptr;
  if (vectors == 1) {
    constexpr Thin kOne[] = {multiply_thin<1, 1>, multiply_thin<2, 1>, multiply_thin<3, 1>,
                             multiply_thin<4, 1>};
    return kOne[rows - 1];
  }
  if (vectors == 2) return rows == 1 ? multiply_thin<1, 2> : multiply_thin<2, 2>;
  return vectors == 3 ? multiply_thin<1, 3> : multiply_thin<1, 4>;
}

}  // namespace fulcrum::backends::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
