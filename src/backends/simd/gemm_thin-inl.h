// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Products with so few sums at once that one chain of fmas each would wait for itself: a vector on the right side, and a
// handful of sums in all. Here a sum is several chains, which meet in a fixed order; which ones follows from the shape
// of the whole product. Included once per instruction set.
#include <array>

#include "backends/simd/gemm.h"
#include "backends/simd/sums-inl.h"

#if defined(FULCRUM_BACKENDS_SIMD_GEMM_THIN_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FULCRUM_BACKENDS_SIMD_GEMM_THIN_INL_H_
#undef FULCRUM_BACKENDS_SIMD_GEMM_THIN_INL_H_
#else
#define FULCRUM_BACKENDS_SIMD_GEMM_THIN_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace fulcrum::backends::simd::HWY_NAMESPACE {

/// c[i * stride] = A[i, depth] * b for kRows rows: k in the lanes of two vectors in turn.
template <std::size_t kRows>
HWY_INLINE void multiply_rows_by_vector(Matrix a, const float* b, float* c, std::size_t stride,
                                        std::size_t depth) {
  const Float d;
  Floats even[4], odd[4];
  HWY_UNROLL(4)
  for (std::size_t r = 0; r < 4; ++r) even[r] = odd[r] = hn::Zero(d);
  std::size_t k = 0;
  for (; k + 2 * kLanes <= depth; k += 2 * kLanes) {
    const auto first = hn::LoadU(d, b + k), second = hn::LoadU(d, b + k + kLanes);
    HWY_UNROLL(4)
    for (std::size_t r = 0; r < kRows; ++r) {
      even[r] = hn::MulAdd(hn::LoadU(d, a.data + r * a.stride + k), first, even[r]);
      odd[r] = hn::MulAdd(hn::LoadU(d, a.data + r * a.stride + k + kLanes), second, odd[r]);
    }
  }
  if (k + kLanes <= depth) {
    const auto first = hn::LoadU(d, b + k);
    HWY_UNROLL(4)
    for (std::size_t r = 0; r < kRows; ++r)
      even[r] = hn::MulAdd(hn::LoadU(d, a.data + r * a.stride + k), first, even[r]);
    k += kLanes;
  }
  if (k < depth) {
    const auto last = load_first(b + k, depth - k);
    HWY_UNROLL(4)
    for (std::size_t r = 0; r < kRows; ++r)
      odd[r] = hn::MulAdd(load_first(a.data + r * a.stride + k, depth - k), last, odd[r]);
  }
  float sums[4];
  store_four_sums(d, hn::Add(even[0], odd[0]), hn::Add(even[1], odd[1]), hn::Add(even[2], odd[2]),
                  hn::Add(even[3], odd[3]), sums);
  for (std::size_t r = 0; r < kRows; ++r) c[r * stride] = sums[r];
}

inline HWY_NOINLINE void multiply_vector(Matrix a, const float* b, float* c, std::size_t stride,
                                         std::size_t rows, std::size_t depth) {
  std::size_t i = 0;
  for (; i + 4 <= rows; i += 4)
    multiply_rows_by_vector<4>(Matrix{a.data + i * a.stride, a.stride}, b, c + i * stride, stride, depth);
  for (; i < rows; ++i)
    multiply_rows_by_vector<1>(Matrix{a.data + i * a.stride, a.stride}, b, c + i * stride, stride, depth);
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

/// So many columns at most: products of four rows or less have them in one piece, whatever their depth.
inline constexpr std::size_t kThinColumns = 32, kThinDepth = 16, kMostThin = 4;

/// multiply_thin() for a product of so many rows and columns, which is never computed in parts; null: it has too many sums
/// at once, or nothing to gain. Only where the last lanes of a row can be read at once.
using Thin = void (*)(Matrix, Matrix, float*, std::size_t, std::size_t, std::size_t);
inline Thin thin_for(std::size_t rows, std::size_t columns, std::size_t depth) {
  const std::size_t vectors = (columns + kLanes - 1) / kLanes;
  if (HWY_TARGET > HWY_AVX2 || columns > kThinColumns || depth < kThinDepth || rows * vectors > kMostThin)
    return nullptr;
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
