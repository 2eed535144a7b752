// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// The sums of four vectors at once, by transposition, so that they share their shuffles.
#include "backends/simd/vectors-inl.h"

#if defined(FULCRUM_BACKENDS_SIMD_SUMS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FULCRUM_BACKENDS_SIMD_SUMS_INL_H_
#undef FULCRUM_BACKENDS_SIMD_SUMS_INL_H_
#else
#define FULCRUM_BACKENDS_SIMD_SUMS_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace fulcrum::backends::simd::HWY_NAMESPACE {

/// The four sums over the lanes of four vectors of f32 or i32, in order. All take the same tree.
template <class D, class V = hn::Vec<D>, class T = hn::TFromD<D>>
HWY_INLINE void store_four_sums([[maybe_unused]] D d, V a, V b, V c, V e, T* to) {
#if HWY_TARGET == HWY_SCALAR
  to[0] = hn::GetLane(a);
  to[1] = hn::GetLane(b);
  to[2] = hn::GetLane(c);
  to[3] = hn::GetLane(e);
#else
  const hn::RepartitionToWide<D> pairs;
  // In each block of four lanes: a0+a2 b0+b2 a1+a3 b1+b3, and the same of c and e.
  const auto ab = hn::Add(hn::InterleaveLower(d, a, b), hn::InterleaveUpper(d, a, b));
  const auto ce = hn::Add(hn::InterleaveLower(d, c, e), hn::InterleaveUpper(d, c, e));
  const auto low = hn::BitCast(d, hn::InterleaveLower(pairs, hn::BitCast(pairs, ab), hn::BitCast(pairs, ce)));
  const auto high =
      hn::BitCast(d, hn::InterleaveUpper(pairs, hn::BitCast(pairs, ab), hn::BitCast(pairs, ce)));
  const auto blocks = hn::Add(low, high);
#if HWY_TARGET <= HWY_AVX3
  const hn::Half<D> half;
  const hn::Half<decltype(half)> quarter;
  const auto two = hn::Add(hn::LowerHalf(half, blocks), hn::UpperHalf(half, blocks));
  hn::StoreU(hn::Add(hn::LowerHalf(quarter, two), hn::UpperHalf(quarter, two)), quarter, to);
#elif HWY_TARGET == HWY_AVX2
  const hn::Half<D> half;
  hn::StoreU(hn::Add(hn::LowerHalf(half, blocks), hn::UpperHalf(half, blocks)), half, to);
#else
  hn::StoreU(blocks, d, to);
#endif
#endif
}

}  // namespace fulcrum::backends::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
