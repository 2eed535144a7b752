// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// exp, expm1, log, sigmoid, tanh, swish and gelu on whole vectors. NaN gives NaN, infinities give exact limits,
// denormals are kept. AVX-512 reads 2^(i/32) from a table held in two registers and scales with one instruction; the
// other instruction sets use a polynomial. All coefficients are minimax fits of relative error, made with Remez
// exchange.
#include "backends/simd/vectors-inl.h"

#if defined(FULCRUM_BACKENDS_SIMD_MATH_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FULCRUM_BACKENDS_SIMD_MATH_INL_H_
#undef FULCRUM_BACKENDS_SIMD_MATH_INL_H_
#else
#define FULCRUM_BACKENDS_SIMD_MATH_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace fulcrum::backends::simd::HWY_NAMESPACE {

// Below this every f32 exp is 0.
inline constexpr float kExpLow = -104.0F;
inline constexpr float kLog2E = 1.44269504F;
// Beyond these a sigmoid is 0 or 1, and the exponential it is made of neither infinite nor denormal.
inline constexpr float kSigmoidLow = -110.0F;
inline constexpr float kSigmoidHigh = 40.0F;
// Below and above these gelu is 0 and x; what its sigmoid sees then is -113 and 30.
inline constexpr float kGeluLow = -11.0F;
inline constexpr float kGeluHigh = 6.5F;
// expm1 rounds to -1 from -17.3 on.
inline constexpr float kExpm1Low = -30.0F;

HWY_INLINE Floats set(float value) { return hn::Set(Float(), value); }

// A bound where x lies beyond it; NaN is not, and stays.
#if HWY_TARGET <= HWY_AVX3
// min and max return their second operand when one is NaN.
HWY_INLINE Floats at_least(Floats low, Floats x) { return Floats{_mm512_max_ps(low.raw, x.raw)}; }
HWY_INLINE Floats at_most(Floats high, Floats x) { return Floats{_mm512_min_ps(high.raw, x.raw)}; }
#else
// What Min and Max do with NaN depends on the target; comparisons that are false keep it everywhere.
HWY_INLINE Floats at_least(Floats low, Floats x) { return hn::IfThenElse(hn::Lt(x, low), low, x); }
HWY_INLINE Floats at_most(Floats high, Floats x) { return hn::IfThenElse(hn::Gt(x, high), high, x); }
#endif
HWY_INLINE Floats at_least(float low, Floats x) { return at_least(set(low), x); }
HWY_INLINE Floats at_most(float high, Floats x) { return at_most(set(high), x); }

/// expm1(r) for |r| <= ln(2) / 2, within 2^-26 before rounding.
HWY_INLINE Floats expm1_reduced(Floats r) {
  auto p = hn::MulAdd(r, set(1.388252796e-03F), set(8.366520555e-03F));
  p = hn::MulAdd(p, r, set(4.166719978e-02F));
  p = hn::MulAdd(p, r, set(1.666654362e-01F));
  p = hn::MulAdd(p, r, set(4.999999815e-01F));
  return hn::MulAdd(p, hn::Mul(r, r), r);
}

/// log(1 + f) + e ln 2 for sqrt(1/2) <= 1 + f < sqrt(2); ln 2 in two parts of which the first times e is exact, and of
/// one sign, so that an infinite e stays.
HWY_INLINE Floats log_reduced(Floats f, Floats e) {
  auto p = hn::MulAdd(f, set(-7.634197694e-02F), set(1.276138680e-01F));
  p = hn::MulAdd(p, f, set(-1.316020473e-01F));
  p = hn::MulAdd(p, f, set(1.420178730e-01F));
  p = hn::MulAdd(p, f, set(-1.662335844e-01F));
  p = hn::MulAdd(p, f, set(2.000122560e-01F));
  p = hn::MulAdd(p, f, set(-2.500082097e-01F));
  p = hn::MulAdd(p, f, set(3.333333172e-01F));
  const auto square = hn::Mul(f, f);
  const auto small = hn::MulAdd(e, set(9.05800061e-06F), hn::Mul(hn::Mul(p, f), square));
  return hn::MulAdd(e, set(0x1.62e3p-1F), hn::Add(f, hn::NegMulAdd(set(0.5F), square, small)));
}

#if HWY_TARGET <= HWY_AVX3

HWY_ALIGN inline constexpr float kPowers[32] = {
    1.000000000F, 1.021897149F, 1.044273782F, 1.067140401F, 1.090507733F, 1.114386743F, 1.138788635F,
    1.163724859F, 1.189207115F, 1.215247360F, 1.241857812F, 1.269050957F, 1.296839555F, 1.325236643F,
    1.354255547F, 1.383909882F, 1.414213562F, 1.445180807F, 1.476826146F, 1.509164428F, 1.542210825F,
    1.575980845F, 1.610490332F, 1.645755478F, 1.681792831F, 1.718619298F, 1.756252160F, 1.794709075F,
    1.834008086F, 1.874167634F, 1.915206561F, 1.957144124F};

/// exp for x <= 100 or NaN. x = k ln 2 + r with k a multiple of 1/32: adding 1.5 * 2^23 / 32 rounds to such multiples and
/// leaves the table index in the low bits. Lanes that end as 0 take no part in the last step: on some CPUs a result too
/// small for a float takes a hundred times as long as another, and -Inf is what rows are filled up with.
HWY_INLINE Floats exp_of_negative(Floats x) {
  const __mmask16 is_more = _mm512_cmp_ps_mask(x.raw, _mm512_set1_ps(kExpLow), _CMP_NLT_UQ);
  const Floats shift = set(0x1.8p18F);
  const auto z = hn::MulAdd(x, set(kLog2E), shift);
  const auto k = hn::Sub(z, shift);
  const auto r = hn::NegMulAdd(k, set(0.693147180F), x);
  const Floats t{_mm512_permutex2var_ps(_mm512_load_ps(kPowers), _mm512_castps_si512(z.raw),
                                        _mm512_load_ps(kPowers + 16))};
  const auto u = hn::MulAdd(r, set(0.500011057F), set(1.00001474F));
  const auto e = hn::MulAdd(hn::Mul(t, r), u, t);
  return Floats{_mm512_maskz_scalef_ps(is_more, e.raw, k.raw)};
}

/// e^x - 1 for x <= 0, as 2^k expm1(r) + (2^k - 1).
HWY_INLINE Floats expm1_of_negative(Floats x) {
  constexpr int kToNearest = 0;
  const auto c = at_least(kExpm1Low, x);
  const Floats k{_mm512_roundscale_ps(hn::Mul(c, set(kLog2E)).raw, kToNearest)};
  const auto q = expm1_reduced(hn::NegMulAdd(k, set(0.693147180F), c));
  const Floats power{_mm512_scalef_ps(_mm512_set1_ps(1.0F), k.raw)};
  return hn::MulAdd(q, power, hn::Sub(power, set(1.0F)));
}

// Keeps the sum below finite where the sigmoid is the smallest denormal number.
inline constexpr float kSigmoidScale = 0x1p-64F;
struct ScaledPowers {
  float at[32];
  constexpr ScaledPowers() : at() {
    for (int i = 0; i < 32; ++i) at[i] = kPowers[i] * kSigmoidScale;
  }
};
HWY_ALIGN inline constexpr ScaledPowers kScaledPowers;

/// kSigmoidScale (1 + e^-x) for kSigmoidLow - 20 <= x <= kSigmoidHigh or NaN: as in exp_of_negative(), but the last product
/// goes into the sum.
HWY_INLINE Floats sigmoid_sum(Floats x) {
  const Floats shift = set(0x1.8p18F);
  const auto z = hn::NegMulAdd(x, set(kLog2E), shift);
  const auto k = hn::Sub(z, shift);
  const auto minus_r = hn::MulAdd(k, set(0.693147180F), x);
  const Floats t{_mm512_permutex2var_ps(_mm512_load_ps(kScaledPowers.at), _mm512_castps_si512(z.raw),
                                        _mm512_load_ps(kScaledPowers.at + 16))};
  const auto u = hn::MulAdd(minus_r, set(0.500011057F), set(-1.00001474F));
  const auto p = hn::MulAdd(minus_r, u, set(1.0F));
  return hn::MulAdd(Floats{_mm512_scalef_ps(t.raw, k.raw)}, p, set(kSigmoidScale));
}

/// 1 / (1 + e^-x), within 7.2 ulp, by an estimate of the reciprocal and one correction: a division would take longer than
/// all the rest.
HWY_INLINE Floats sigmoid_clamped(Floats x) {
  const auto sum = sigmoid_sum(x);
  const Floats estimate{_mm512_rcp14_ps(sum.raw)};
  const auto y = hn::Mul(estimate, set(kSigmoidScale));
  return hn::MulAdd(hn::NegMulAdd(estimate, sum, set(1.0F)), y, y);
}
/// The same with fewer instructions, for where there is enough else to do while the division runs.
HWY_INLINE Floats sigmoid_divided(Floats x) { return hn::Div(set(kSigmoidScale), sigmoid_sum(x)); }

/// Exponent and mantissa come from instructions that know denormals, infinities and the sign.
HWY_INLINE Floats log(Floats x) {
  const __m512 mantissa = _mm512_getmant_ps(x.raw, _MM_MANT_NORM_1_2, _MM_MANT_SIGN_nan);
  const __m512 exponent = _mm512_getexp_ps(x.raw);
  const __m512 one = _mm512_set1_ps(1.0F);
  const __mmask16 upper = _mm512_cmp_ps_mask(mantissa, _mm512_set1_ps(1.41421356F), _CMP_GT_OQ);
  const Floats m{_mm512_mask_mul_ps(mantissa, upper, mantissa, _mm512_set1_ps(0.5F))};
  const Floats e{_mm512_mask_add_ps(exponent, upper, exponent, one)};
  return log_reduced(hn::Sub(m, set(1.0F)), e);
}

/// x P(x^2) / Q(x^2), within 2^-22.4 where |x| is below 8.15; from there on 1, which is as close.
HWY_INLINE Floats tanh(Floats x) {
  const auto w = hn::Mul(x, x);
  auto p = hn::MulAdd(w, set(1.12742153e-05F), set(2.93679027e-03F));
  p = hn::MulAdd(p, w, set(1.29124286e-01F));
  p = hn::MulAdd(p, w, set(9.99999829e-01F));
  auto q = hn::MulAdd(w, set(2.40987019e-07F), set(2.36654882e-04F));
  q = hn::MulAdd(q, w, set(2.37573734e-02F));
  q = hn::MulAdd(q, w, set(4.62456258e-01F));
  q = hn::MulAdd(q, w, set(1.0F));
  const auto y = hn::Div(hn::Mul(p, x), q);
  constexpr int kSmallerMagnitude = 2;  // and the sign of x
  const __mmask16 far = _mm512_cmp_ps_mask(w.raw, _mm512_set1_ps(8.15F * 8.15F), _CMP_GT_OQ);
  return Floats{_mm512_mask_range_ps(y.raw, far, x.raw, _mm512_set1_ps(1.0F), kSmallerMagnitude)};
}

#else

/// 2^k for -126 <= k <= 127.
HWY_INLINE Floats power_of_two(hn::Vec<hn::RebindToSigned<Float>> k) {
  const hn::RebindToSigned<Float> di;
  return hn::BitCast(Float(), hn::ShiftLeft<23>(hn::Add(k, hn::Set(di, 127))));
}

/// exp for -150 <= x <= 150; ln 2 in two parts of which the first times k is exact.
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

/// exp for x <= 100 or NaN. Lanes that end as 0 take a way of their own: on some CPUs a result too small for a float takes a
/// hundred times as long as another, and -Inf is what rows are filled up with.
HWY_INLINE Floats exp_of_negative(Floats x) {
  const auto is_less = hn::Lt(x, set(kExpLow));
  return hn::IfThenZeroElse(is_less, exp_clamped(hn::IfThenZeroElse(is_less, x)));
}

/// e^x - 1 for x <= 0, as 2^k expm1(r) + (2^k - 1).
HWY_INLINE Floats expm1_of_negative(Floats x) {
  const auto c = at_least(kExpm1Low, x);
  const auto k = hn::NearestInt(hn::Mul(c, set(kLog2E)));
  const auto q = expm1_reduced(hn::NegMulAdd(hn::ConvertTo(Float(), k), set(0.693147180F), c));
  const auto power = power_of_two(k);
  return hn::MulAdd(q, power, hn::Sub(power, set(1.0F)));
}

/// e^x / (1 + e^x) for kSigmoidLow <= x <= kSigmoidHigh or NaN: no case for the sign, because below zero the sum is 1 and
/// above it the quotient forgives an error of e^x.
HWY_INLINE Floats sigmoid_clamped(Floats x) {
  const auto e = exp_clamped(x);
  return hn::Div(e, hn::Add(e, set(1.0F)));
}
HWY_INLINE Floats sigmoid_divided(Floats x) { return sigmoid_clamped(x); }

HWY_INLINE Floats log(Floats x) {
  const hn::RebindToSigned<Float> di;
  const auto denormal = hn::Lt(x, set(0x1p-126F));
  const auto bits = hn::BitCast(di, hn::IfThenElse(denormal, hn::Mul(x, set(0x1p23F)), x));
  // Counting from sqrt(1/2) instead of 1 puts the mantissa into [sqrt(1/2), sqrt(2)).
  constexpr std::int32_t kRootOfHalf = 0x3F3504F3;
  const auto above = hn::Sub(bits, hn::Set(di, kRootOfHalf));
  const auto e = hn::ConvertTo(Float(), hn::ShiftRight<23>(above));
  const auto m =
      hn::BitCast(Float(), hn::Add(hn::And(above, hn::Set(di, 0x007FFFFF)), hn::Set(di, kRootOfHalf)));
  const auto exponent = hn::Sub(e, hn::IfThenElseZero(denormal, set(23.0F)));
  const auto y = log_reduced(hn::Sub(m, set(1.0F)), exponent);
  // 0 gives -Inf; Inf stays; a negative number, and NaN, give NaN.
  const auto zero = hn::Zero(Float());
  const auto limit = hn::IfThenElse(hn::Eq(x, zero), hn::Neg(hn::Inf(Float())), hn::Add(x, hn::Sqrt(x)));
  const auto finite = hn::And(hn::Gt(x, zero), hn::Lt(x, hn::Inf(Float())));
  return hn::IfThenElse(finite, y, limit);
}

/// x P(x^2) / Q(x^2), within 2^-25.5 where |x| is below 9.02, from where on tanh rounds to 1; the fit passes 1 there
/// and is cut off at 1, exactly.
HWY_INLINE Floats tanh(Floats x) {
  const auto c = at_most(10.0F, at_least(-10.0F, x));
  const auto w = hn::Mul(c, c);
  auto p = hn::MulAdd(w, set(1.33190317e-08F), set(2.05834516e-05F));
  p = hn::MulAdd(p, w, set(3.49403274e-03F));
  p = hn::MulAdd(p, w, set(1.33797164e-01F));
  p = hn::MulAdd(p, w, set(9.99999979e-01F));
  auto q = hn::MulAdd(w, set(7.76200279e-07F), set(3.28308988e-04F));
  q = hn::MulAdd(q, w, set(2.58710663e-02F));
  q = hn::MulAdd(q, w, set(4.67130316e-01F));
  q = hn::MulAdd(q, w, set(1.0F));
  return at_most(1.0F, at_least(-1.0F, hn::Div(hn::Mul(p, c), q)));
}

#endif

HWY_INLINE Floats sigmoid(Floats x) {
  return sigmoid_clamped(at_most(kSigmoidHigh, at_least(kSigmoidLow, x)));
}

/// x if x > 0, else 0; NaN stays.
HWY_INLINE Floats relu(Floats x) {
  const auto zero = hn::Zero(Float());
  return hn::IfThenElse(hn::Le(x, zero), zero, x);
}

/// x * sigmoid(x). Both factors are kept finite: at -Inf the product is 0 and not Inf * 0.
HWY_INLINE Floats swish(Floats x) {
  const auto c = at_least(kSigmoidLow, x);
  return hn::Mul(c, sigmoid_clamped(at_most(kSigmoidHigh, c)));
}

/// x * sigmoid(2 sqrt(2/pi) (x + 0.044715 x^3)): the tanh form of gelu without its cancellation.
HWY_INLINE Floats gelu(Floats x) {
  const auto c = at_least(kGeluLow, x);
  const auto h = at_most(kGeluHigh, c);
  const auto slope = hn::MulAdd(hn::Mul(h, h), set(7.13548163e-02F), set(1.59576912F));
  return hn::Mul(c, sigmoid_divided(hn::Mul(h, slope)));
}

}  // namespace fulcrum::backends::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
