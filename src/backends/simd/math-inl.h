// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// exp, sigmoid, tanh and gelu on whole vectors. NaN gives NaN, infinities give exact limits, denormal results are
// kept. AVX-512 reads 2^(i/32) from a table held in two registers and scales with one instruction; the other
// instruction sets use a polynomial. All coefficients are minimax fits of relative error, made with Remez exchange.
#include "backends/simd/vectors-inl.h"

#if defined(FULCRUM_BACKENDS_SIMD_MATH_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FULCRUM_BACKENDS_SIMD_MATH_INL_H_
#undef FULCRUM_BACKENDS_SIMD_MATH_INL_H_
#else
#define FULCRUM_BACKENDS_SIMD_MATH_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace fulcrum::backends::simd::HWY_NAMESPACE {

// Beyond these every f32 exp is 0 or Inf; finite, so that the range reduction never sees Inf - Inf.
inline constexpr float kExpLow = -150.0F;
inline constexpr float kExpHigh = 150.0F;
inline constexpr float kLog2E = 1.44269504F;
// tanh rounds to 1 from 9.02 on; the fit below passes 1 there and is cut off at 1, exactly.
inline constexpr float kTanhLimit = 10.0F;

HWY_INLINE Floats set(float value) { return hn::Set(Float(), value); }

/// numerator / denominator of tanh(x) = x * P(x^2) / Q(x^2) on [-9.02, 9.02], within 2^-25.5.
HWY_INLINE Floats tanh_numerator(Floats x, Floats w) {
  auto p = hn::MulAdd(w, set(1.33190317e-08F), set(2.05834516e-05F));
  p = hn::MulAdd(p, w, set(3.49403274e-03F));
  p = hn::MulAdd(p, w, set(1.33797164e-01F));
  p = hn::MulAdd(p, w, set(9.99999979e-01F));
  return hn::Mul(p, x);
}
HWY_INLINE Floats tanh_denominator(Floats w) {
  auto q = hn::MulAdd(w, set(7.76200279e-07F), set(3.28308988e-04F));
  q = hn::MulAdd(q, w, set(2.58710663e-02F));
  q = hn::MulAdd(q, w, set(4.67130316e-01F));
  return hn::MulAdd(q, w, set(1.0F));
}

#if HWY_TARGET <= HWY_AVX3

// min and max return their second operand when one is NaN, so a clamp that names x second keeps it.
HWY_INLINE Floats at_least(float low, Floats x) { return Floats{_mm512_max_ps(_mm512_set1_ps(low), x.raw)}; }
HWY_INLINE Floats at_most(float high, Floats x) { return Floats{_mm512_min_ps(_mm512_set1_ps(high), x.raw)}; }

/// 1 / d for normal d: the 14-bit estimate and one Newton step.
HWY_INLINE Floats reciprocal(Floats d) {
  const Floats r{_mm512_rcp14_ps(d.raw)};
  return hn::MulAdd(r, hn::NegMulAdd(d, r, set(1.0F)), r);
}

HWY_ALIGN inline constexpr float kPowers[32] = {
    1.000000000F, 1.021897149F, 1.044273782F, 1.067140401F, 1.090507733F, 1.114386743F, 1.138788635F,
    1.163724859F, 1.189207115F, 1.215247360F, 1.241857812F, 1.269050957F, 1.296839555F, 1.325236643F,
    1.354255547F, 1.383909882F, 1.414213562F, 1.445180807F, 1.476826146F, 1.509164428F, 1.542210825F,
    1.575980845F, 1.610490332F, 1.645755478F, 1.681792831F, 1.718619298F, 1.756252160F, 1.794709075F,
    1.834008086F, 1.874167634F, 1.915206561F, 1.957144124F};

/// exp for kExpLow <= x <= kExpHigh or NaN. x = k ln 2 + r with k a multiple of 1/32: adding 1.5 * 2^23 / 32 rounds
/// to such multiples and leaves the table index in the low bits.
HWY_INLINE Floats exp_clamped(Floats x) {
  const Floats shift = set(0x1.8p18F);
  const auto z = hn::MulAdd(x, set(kLog2E), shift);
  const auto k = hn::Sub(z, shift);
  const auto r = hn::NegMulAdd(k, set(0.693147180F), x);
  const Floats t{_mm512_permutex2var_ps(_mm512_load_ps(kPowers), _mm512_castps_si512(z.raw),
                                        _mm512_load_ps(kPowers + 16))};
  const auto u = hn::MulAdd(r, set(0.500011057F), set(1.00001474F));
  const auto e = hn::MulAdd(hn::Mul(t, r), u, t);
  return Floats{_mm512_scalef_ps(e.raw, k.raw)};
}

HWY_INLINE Floats exp(Floats x) { return exp_clamped(at_most(kExpHigh, at_least(kExpLow, x))); }

/// exp for x <= 0, which needs one clamp less.
HWY_INLINE Floats exp_of_negative(Floats x) { return exp_clamped(at_least(kExpLow, x)); }

HWY_INLINE Floats sigmoid(Floats x) {
  const Float d;
  const auto t = exp_of_negative(hn::Or(x, hn::SignBit(d)));
  const auto y = reciprocal(hn::Add(t, set(1.0F)));
  return Floats{_mm512_mask_mul_ps(y.raw, _mm512_movepi32_mask(_mm512_castps_si512(x.raw)), y.raw, t.raw)};
}

/// x with its magnitude cut to `limit`; NaN becomes `limit`.
HWY_INLINE Floats limit_magnitude(Floats x, float limit) {
  constexpr int kSmallerMagnitude = 2;  // and the sign of x
  return Floats{_mm512_range_ps(x.raw, _mm512_set1_ps(limit), kSmallerMagnitude)};
}

HWY_INLINE Floats tanh(Floats x) {
  const auto c = limit_magnitude(x, kTanhLimit);
  const auto w = hn::Mul(c, c);
  const auto y = limit_magnitude(hn::Mul(tanh_numerator(c, w), reciprocal(tanh_denominator(w))), 1.0F);
  constexpr int kNanFromSource = 0x22;  // one nibble a class: quiet and signalling NaN, the rest keep y
  return Floats{_mm512_fixupimm_ps(y.raw, x.raw, _mm512_set1_epi32(kNanFromSource), 0)};
}

#else

// What Min and Max do with NaN depends on the target: every function below puts NaN back at its end.
HWY_INLINE Floats at_least(float low, Floats x) { return hn::Max(set(low), x); }
HWY_INLINE Floats at_most(float high, Floats x) { return hn::Min(set(high), x); }
HWY_INLINE Floats keep_nan(Floats x, Floats y) { return hn::IfThenElse(hn::IsNaN(x), x, y); }

/// 2^k for -126 <= k <= 127.
HWY_INLINE Floats power_of_two(hn::Vec<hn::RebindToSigned<Float>> k) {
  const hn::RebindToSigned<Float> di;
  return hn::BitCast(Float(), hn::ShiftLeft<23>(hn::Add(k, hn::Set(di, 127))));
}

/// exp for kExpLow <= x <= kExpHigh; ln 2 in two parts of which the first times k is exact.
HWY_INLINE Floats exp_clamped(Floats x) {
  const auto k = hn::NearestInt(hn::Mul(x, set(kLog2E)));
  const auto kf = hn::ConvertTo(Float(), k);
  const auto r = hn::NegMulAdd(kf, set(-2.12194440e-04F), hn::NegMulAdd(kf, set(0.693359375F), x));
  auto p = hn::MulAdd(r, set(1.38146132e-03F), set(8.36870982e-03F));
  p = hn::MulAdd(p, r, set(4.16683874e-02F));
  p = hn::MulAdd(p, r, set(1.66665207e-01F));
  p = hn::MulAdd(p, r, set(4.99999935e-01F));
  const auto e = hn::Add(hn::MulAdd(p, hn::Mul(r, r), r), set(1.0F));
  // In two steps, because 2^k alone leaves the normal range where the result is denormal.
  const auto half = hn::ShiftRight<1>(k);
  return hn::Mul(hn::Mul(e, power_of_two(half)), power_of_two(hn::Sub(k, half)));
}

HWY_INLINE Floats exp(Floats x) { return keep_nan(x, exp_clamped(at_most(kExpHigh, at_least(kExpLow, x)))); }

/// exp for x <= 0.
HWY_INLINE Floats exp_of_negative(Floats x) { return keep_nan(x, exp_clamped(at_least(kExpLow, x))); }

HWY_INLINE Floats sigmoid(Floats x) {
  const auto t = exp_clamped(at_least(kExpLow, hn::Neg(hn::Abs(x))));
  const auto one = set(1.0F);
  const auto top = hn::IfThenElse(hn::Lt(x, hn::Zero(Float())), t, one);
  return keep_nan(x, hn::Div(top, hn::Add(t, one)));
}

HWY_INLINE Floats tanh(Floats x) {
  const auto c = at_most(kTanhLimit, at_least(-kTanhLimit, x));
  const auto w = hn::Mul(c, c);
  const auto y = hn::Div(tanh_numerator(c, w), tanh_denominator(w));
  return keep_nan(x, at_most(1.0F, at_least(-1.0F, y)));
}

#endif

/// x if x > 0, else 0; NaN stays.
HWY_INLINE Floats relu(Floats x) {
  const auto zero = hn::Zero(Float());
  return hn::IfThenElse(hn::Le(x, zero), zero, x);
}

/// x * sigmoid(2 sqrt(2/pi) (x + 0.044715 x^3)): the tanh form of gelu without its cancellation.
HWY_INLINE Floats gelu(Floats x) {
  const auto inner =
      hn::Mul(hn::Mul(x, set(1.59576912F)), hn::MulAdd(hn::Mul(x, set(0.044715F)), x, set(1.0F)));
  const auto y = hn::Mul(x, sigmoid(inner));
  // Far below zero the product underflows to 0, and at -Inf it would be Inf * 0.
  return hn::IfThenElse(hn::Lt(x, set(-30.0F)), hn::Zero(Float()), y);
}

}  // namespace fulcrum::backends::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
