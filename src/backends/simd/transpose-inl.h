// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Rows to columns, four columns of eight or four rows at a time. Included once per instruction set.
#include <cstddef>

#include "backends/simd/vectors-inl.h"

#if defined(FULCRUM_BACKENDS_SIMD_TRANSPOSE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FULCRUM_BACKENDS_SIMD_TRANSPOSE_INL_H_
#undef FULCRUM_BACKENDS_SIMD_TRANSPOSE_INL_H_
#else
#define FULCRUM_BACKENDS_SIMD_TRANSPOSE_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace fulcrum::backends::simd::HWY_NAMESPACE {

#if HWY_TARGET != HWY_SCALAR

/// Four columns of as many rows as d has lanes, to four rows from `to` on.
template <class D>
HWY_INLINE void transpose_four(D d, const float* from, std::size_t from_stride, float* to,
                               std::size_t to_stride) {
  const hn::RepartitionToWide<D> pairs;
  // Row i, and in the upper half row i + 4.
  const auto load = [&](std::size_t i) HWY_ATTR {
    const hn::FixedTag<float, 4> four;
    const auto low = hn::LoadU(four, from + i * from_stride);
    if constexpr (hn::MaxLanes(d) == 4) {
      return low;
    } else {
      return hn::Combine(d, hn::LoadU(four, from + (i + 4) * from_stride), low);
    }
  };
  const auto a = load(0), b = load(1), c = load(2), e = load(3);
  const auto ab_low = hn::BitCast(pairs, hn::InterleaveLower(d, a, b));
  const auto ab_high = hn::BitCast(pairs, hn::InterleaveUpper(d, a, b));
  const auto ce_low = hn::BitCast(pairs, hn::InterleaveLower(d, c, e));
  const auto ce_high = hn::BitCast(pairs, hn::InterleaveUpper(d, c, e));
  hn::StoreU(hn::BitCast(d, hn::InterleaveLower(pairs, ab_low, ce_low)), d, to);
  hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(pairs, ab_low, ce_low)), d, to + to_stride);
  hn::StoreU(hn::BitCast(d, hn::InterleaveLower(pairs, ab_high, ce_high)), d, to + 2 * to_stride);
  hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(pairs, ab_high, ce_high)), d, to + 3 * to_stride);
}

/// Bands of as many rows as d has lanes from row i on, while there are so many; the first row that is left.
template <class D>
HWY_INLINE std::size_t transpose_bands(D d, const float* from, std::size_t from_stride, std::size_t i,
                                       std::size_t rows, std::size_t columns, float* to,
                                       std::size_t to_stride) {
  constexpr std::size_t kBand = hn::MaxLanes(d);
  for (; i + kBand <= rows; i += kBand) {
    std::size_t j = 0;
    for (; j + 4 <= columns; j += 4)
      transpose_four(d, from + i * from_stride + j, from_stride, to + j * to_stride + i, to_stride);
    for (; j < columns; ++j) {
      for (std::size_t r = i; r < i + kBand; ++r) to[j * to_stride + r] = from[r * from_stride + j];
    }
  }
  return i;
}

#endif

/// to[j * to_stride + i] = from[i * from_stride + j] for i < rows, j < columns.
HWY_INLINE void transpose(const float* from, std::size_t from_stride, std::size_t rows, std::size_t columns,
                          float* to, std::size_t to_stride) {
  std::size_t i = 0;
#if HWY_TARGET <= HWY_AVX2
  i = transpose_bands(hn::FixedTag<float, 8>(), from, from_stride, i, rows, columns, to, to_stride);
#endif
#if HWY_TARGET != HWY_SCALAR
  i = transpose_bands(hn::FixedTag<float, 4>(), from, from_stride, i, rows, columns, to, to_stride);
#endif
  for (; i < rows; ++i) {
    for (std::size_t j = 0; j < columns; ++j) to[j * to_stride + i] = from[i * from_stride + j];
  }
}

}  // namespace fulcrum::backends::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
