// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Rows to columns, four by four. Included once per instruction set.
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

/// to[j * to_stride + i] = from[i * from_stride + j] for i < rows, j < columns.
HWY_INLINE void transpose(const float* from, std::size_t from_stride, std::size_t rows, std::size_t columns,
                          float* to, std::size_t to_stride) {
  std::size_t i = 0;
#if HWY_TARGET != HWY_SCALAR
  const hn::FixedTag<float, 4> d;
  const hn::FixedTag<double, 2> pairs;
  for (; i + 4 <= rows; i += 4) {
    std::size_t j = 0;
    for (; j + 4 <= columns; j += 4) {
      const float* at = from + i * from_stride + j;
      const auto a = hn::LoadU(d, at), b = hn::LoadU(d, at + from_stride);
      const auto c = hn::LoadU(d, at + 2 * from_stride), e = hn::LoadU(d, at + 3 * from_stride);
      const auto ab_low = hn::BitCast(pairs, hn::InterleaveLower(d, a, b));
      const auto ab_high = hn::BitCast(pairs, hn::InterleaveUpper(d, a, b));
      const auto ce_low = hn::BitCast(pairs, hn::InterleaveLower(d, c, e));
      const auto ce_high = hn::BitCast(pairs, hn::InterleaveUpper(d, c, e));
      float* out = to + j * to_stride + i;
      hn::StoreU(hn::BitCast(d, hn::InterleaveLower(pairs, ab_low, ce_low)), d, out);
      hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(pairs, ab_low, ce_low)), d, out + to_stride);
      hn::StoreU(hn::BitCast(d, hn::InterleaveLower(pairs, ab_high, ce_high)), d, out + 2 * to_stride);
      hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(pairs, ab_high, ce_high)), d, out + 3 * to_stride);
    }
    for (; j < columns; ++j) {
      for (std::size_t r = i; r < i + 4; ++r) to[j * to_stride + r] = from[r * from_stride + j];
    }
  }
#endif
  for (; i < rows; ++i) {
    for (std::size_t j = 0; j < columns; ++j) to[j * to_stride + i] = from[i * from_stride + j];
  }
}

}  // namespace fulcrum::backends::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
