// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// a * b + c rounded once, on every instruction set. Highway's MulAdd rounds twice where the CPU has no such
// instruction; there the product and the sum go through fp64, rounded to odd so that the last rounding is the only one
// that shows. Included once per instruction set.
#include "backends/simd/vectors-inl.h"

#include <cmath>

#if defined(FULCRUM_BACKENDS_SIMD_FUSED_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FULCRUM_BACKENDS_SIMD_FUSED_INL_H_
#undef FULCRUM_BACKENDS_SIMD_FUSED_INL_H_
#else
#define FULCRUM_BACKENDS_SIMD_FUSED_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace fulcrum::backends::simd::HWY_NAMESPACE {

#if HWY_TARGET == HWY_SSE4 || HWY_TARGET == HWY_SSSE3

/// a * b + c of two lanes: the product of fp32 numbers is exact in fp64; the sum is, when inexact, the odd one of its
/// two neighbours.
template <class Half>
HWY_INLINE hn::Vec<Half> fused_half(Half half, hn::Vec<Half> a, hn::Vec<Half> b, hn::Vec<Half> c) {
  const hn::Rebind<double, Half> wide;
  const hn::Rebind<std::int64_t, Half> bits;
  const auto product = hn::Mul(hn::PromoteTo(wide, a), hn::PromoteTo(wide, b));
  const auto addend = hn::PromoteTo(wide, c);
  const auto sum = hn::Add(product, addend);
  const auto back = hn::Sub(sum, product);
  const auto error = hn::Add(hn::Sub(product, hn::Sub(sum, back)), hn::Sub(addend, back));
  const auto zero = hn::Zero(wide);
  // Neither holds for a NaN, which stays as it is.
  const auto inexact = hn::Or(hn::Gt(error, zero), hn::Lt(error, zero));
  const auto one = hn::Set(bits, 1);
  const auto raw = hn::BitCast(bits, sum);
  const auto even = hn::Eq(hn::And(raw, one), hn::Zero(bits));
  const auto same_sign = hn::MaskFromVec(
      hn::Not(hn::Xor(hn::VecFromMask(wide, hn::Gt(error, zero)), hn::VecFromMask(wide, hn::Gt(sum, zero)))));
  const auto step = hn::IfThenElse(hn::RebindMask(bits, same_sign), one, hn::Set(bits, -1));
  const auto change = hn::And(hn::RebindMask(bits, inexact), even);
  const auto odd = hn::IfThenElse(change, hn::Add(raw, step), raw);
  return hn::DemoteTo(half, hn::BitCast(wide, odd));
}

inline HWY_NOINLINE Floats fused(Floats a, Floats b, Floats c) {
  const Float d;
  const hn::Half<Float> half;
  return hn::Combine(
      d, fused_half(half, hn::UpperHalf(half, a), hn::UpperHalf(half, b), hn::UpperHalf(half, c)),
      fused_half(half, hn::LowerHalf(half, a), hn::LowerHalf(half, b), hn::LowerHalf(half, c)));
}

#elif HWY_TARGET == HWY_SCALAR

HWY_INLINE Floats fused(Floats a, Floats b, Floats c) {
  return hn::Set(Float(), std::fma(hn::GetLane(a), hn::GetLane(b), hn::GetLane(c)));
}

#else

HWY_INLINE Floats fused(Floats a, Floats b, Floats c) { return hn::MulAdd(a, b, c); }

#endif

}  // namespace fulcrum::backends::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
