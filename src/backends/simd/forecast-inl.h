// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Steps of one series of ar_forecast. A block takes many steps at once: a lane a step; all lanes take the value of one
// time after the other, oldest first, each with its own lag's coefficient, and a step that is complete is handed to
// the steps behind it.
//
// A forecast that decays passes through the subnormal numbers, and an fma that gives one takes many times as long
// as any other. So a series that has become small goes on in units of 2^-149, of which all floats are whole multiples:
// an fma there, rounded to a whole number, has the bits of the fma on the small numbers, zeros with their signs, because
// a float that is not just between two whole numbers lies on the same side as the sum it was rounded from; those just
// between are looked at again. Once all its sums are below 2^22 of these units, they begin at 1.5 * 2^23 instead of 0:
// floats there are the whole numbers, so that a plain fma rounds as the small one does. When all lags are zero the rest
// of a forecast is. Included once per instruction set.
#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "backends/simd/fused-inl.h"
#include "backends/simd/subnormals.h"

#if defined(FULCRUM_BACKENDS_SIMD_FORECAST_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FULCRUM_BACKENDS_SIMD_FORECAST_INL_H_
#undef FULCRUM_BACKENDS_SIMD_FORECAST_INL_H_
#else
#define FULCRUM_BACKENDS_SIMD_FORECAST_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace fulcrum::backends::simd::HWY_NAMESPACE {

/// Vectors of steps of one series that are open at once: with four, the fmas of a time overlap.
inline constexpr std::size_t kOpenVectors = 4;
// From here on lanes over steps beat the plain chain, whose fmas of different steps overlap by themselves; and no
// step of a block has a lag beyond the order within the block itself.
inline constexpr std::size_t kLongOrder = std::max<std::size_t>(24, kLanes);
inline constexpr std::size_t kVeryLongOrder = std::max<std::size_t>(64, kOpenVectors* kLanes);

// Subnormal numbers take NEON no longer than others, and a CPU without fma instructions forms them in fp64 anyhow.
inline constexpr bool kMayScale = HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2;

/// What the sums of a series of very small values begin at, and how small those are, in units of 2^-149. Until the next
/// look rounding adds half a unit a lag and step.
inline constexpr float kTinyOrigin = 0x1.8p23F, kTinySums = 0x1p22F - 0x1p14F;
/// From here on a float is a whole number.
inline constexpr float kWhole = 0x1p23F;

/// Grows with the size of a value, without a look at it as a number. Below 2^24 it is that size in units of 2^-149.
HWY_INLINE std::uint32_t float_size(float value) { return std::bit_cast<std::uint32_t>(value) & 0x7FFFFFFFU; }

/// A small value in units of 2^-149.
HWY_INLINE float scaled(float value) { return value * 0x1p75F * 0x1p74F; }

/// And back: a whole number of less than 25 bits is the bits of its float.
inline float unscaled(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value), sign = bits & 0x80000000U;
  const float size = std::abs(value);
  if (size < 0x1p24F) return std::bit_cast<float>(sign | static_cast<std::uint32_t>(size));
  return std::bit_cast<float>(bits - (149U << 23));
}

/// The whole number next to c * value + sum, of which the float `near` lies just between two.
inline HWY_NOINLINE float settle_tie(float c, float value, float sum, float near) {
  const double product = static_cast<double>(c) * value;  // exact
  const double exact = product + sum, back = exact - product;
  const double error = (product - (exact - back)) + (sum - back);
  const double beyond = (exact - near) + error;
  const float whole = beyond > 0 ? near + 0.5F : beyond < 0 ? near - 0.5F : std::rint(near);
  return std::copysign(whole, near);
}

/// sum + c * value of small series, in units of 2^-149.
HWY_INLINE float add_scaled(float c, float value, float sum) {
  const float near = std::fma(c, value, sum);
  if (std::abs(near) >= kWhole) return near;
  const float whole = std::rint(near);
  return std::abs(near - whole) == 0.5F ? settle_tie(c, value, sum, near) : whole;
}

/// The same for all lanes: whole numbers next to c * value + sum, of which `near` is the float. Far from zero a float is a
/// whole number, so the sum goes there, by what leaves it exact: away from its sign, and to where the result lies between
/// 2^23 and 2^24. Which of two ways that is follows from the result's sign; nothing waits for that. Of a larger sum of
/// which so little is left the product's last bits are exact in `near`.
HWY_INLINE Floats rounded(Floats c, Floats value, Floats sum, Floats near) {
  const Float d;
  const auto there_and_back = [&](float distance) HWY_ATTR {
    const auto origin = hn::CopySign(hn::Set(d, distance), hn::Neg(sum));
    return hn::Sub(fused(c, value, hn::Add(sum, origin)), origin);
  };
  const auto whole =
      hn::IfNegativeThenElse(hn::Xor(sum, near), there_and_back(0x1p23F), there_and_back(0x1p24F));
  const auto moves = hn::Lt(hn::Abs(sum), hn::Set(d, 0x1p47F));
  return hn::CopySign(hn::IfThenElse(moves, whole, hn::Round(near)), near);
}

/// The same in the lanes of `small`, and the plain fma in the others. Sums that are large anyhow do not wait for a look at
/// them.
HWY_INLINE Floats add_scaled(Floats c, Floats value, Floats sum, hn::Mask<Float> small) {
  const Float d;
  const auto near = fused(c, value, sum);
  const auto broken = hn::And(small, hn::Lt(hn::Abs(near), hn::Set(d, kWhole)));
  if (hn::AllFalse(d, broken)) return near;
  return hn::IfThenElse(broken, rounded(c, value, sum, near), near);
}

/// A row of scaled values as they are.
HWY_INLINE void unscale(float* values, std::size_t count) {
  const Float d;
  const hn::RebindToSigned<Float> di;
  std::size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    const auto value = hn::LoadU(d, values + i), size = hn::Abs(value);
    const auto units = hn::BitCast(d, hn::ConvertTo(di, hn::Min(size, hn::Set(d, 0x1p24F))));
    const auto other = hn::BitCast(d, hn::Sub(hn::BitCast(di, size), hn::Set(di, 149 << 23)));
    const auto bare = hn::IfThenElse(hn::Lt(size, hn::Set(d, 0x1p24F)), units, other);
    hn::StoreU(hn::CopySignToAbs(bare, value), d, values + i);
  }
  std::transform(values + i, values + count, values + i, unscaled);
}

/// The chain of a step, and that of a small series.
struct Chain {
  static HWY_INLINE Floats add(Floats c, Floats value, Floats sum) { return fused(c, value, sum); }
};
struct ScaledChain {
  static HWY_INLINE Floats add(Floats c, Floats value, Floats sum) {
    return add_scaled(c, value, sum, hn::FirstN(Float(), kLanes));
  }
};

/// When a series of small values is scaled, and for how long. `last(l)` is its value of lag l + 1.
struct Small {
  /// Steps between two looks at scaled values, which grow 16-fold a step at most and must stay finite.
  static constexpr std::size_t kLook = 16;
  static constexpr double kLargestSum = 16;

  static bool may_begin() { return kMayScale && subnormals_are_slow(); }

  /// Steps after which one looks at values that are not scaled.
  static std::size_t look(float last) {
    return may_begin() && float_size(last) < float_size(0x1p-80F) ? kLook : 64;
  }
  /// Above, few sums are so small that they are slow: of 34 lags of 16 series one at 2^-112, 10 at 2^-116.
  static bool far(float last) { return float_size(last) >= float_size(0x1p-112F); }

  static double sum_of(const float* c, std::size_t order) {
    double sum = 0;
    for (std::size_t lag = 0; lag < order; ++lag) sum += std::abs(static_cast<double>(c[lag]));
    return sum;
  }

  template <class Last>
  static bool are_zeros(std::size_t order, Last last) {
    for (std::size_t lag = 0; lag < order; ++lag) {
      if (float_size(last(lag)) != 0) return false;
    }
    return true;
  }

  /// Whether all that is to come is zero, without a sign.
  template <class Last>
  static bool is_over(const float* c, std::size_t order, Last last) {
    return are_zeros(order, last) && std::isfinite(sum_of(c, order));
  }

  /// Whether to scale a series. Zeros need no scaling: they stay zeros.
  template <class Last>
  static bool begins(const float* c, std::size_t order, Last last) {
    if (!may_begin() || far(last(0))) return false;  // as good as always
    for (std::size_t lag = 0; lag < order; ++lag) {
      if (far(last(lag))) return false;
    }
    return !are_zeros(order, last) && sum_of(c, order) <= kLargestSum;
  }

  /// Whether a scaled series has grown, or is no more than zeros. `recent` is the largest size since the last look.
  template <class Last>
  static bool ends(std::size_t order, float recent, Last last) {
    return recent >= 0x1p60F || are_zeros(order, last);
  }
  template <class Last>
  static bool ends(std::size_t order, Last last) {
    float recent = 0;
    for (std::size_t lag = 0; lag < std::min(order, kLook); ++lag)
      recent = std::max(recent, std::abs(last(lag)));
    return ends(order, recent, last);
  }

  /// Whether all sums of a scaled series are tiny until the next look.
  template <class Last>
  static bool becomes_tiny(const float* c, std::size_t order, Last last) {
    float largest = 0;
    for (std::size_t lag = order; lag-- > 0;) {  // the oldest is the largest, mostly
      largest = std::max(largest, std::abs(last(lag)));
      if (largest >= 4 * kTinySums) return false;
    }
    const double sum = sum_of(c, order);
    return sum <= 1 && sum * static_cast<double>(largest) < static_cast<double>(kTinySums);
  }
  static bool stays_tiny(float recent) { return recent < kTinySums; }
};

/// Lanes [0, n): n may be anything.
HWY_INLINE hn::Mask<Float> first_lanes(std::ptrdiff_t n) {
  return hn::FirstN(Float(), static_cast<std::size_t>(std::clamp<std::ptrdiff_t>(n, 0, kLanes)));
}

HWY_INLINE Floats broadcast(Floats v, std::size_t lane) {
#if HWY_TARGET == HWY_SCALAR
  (void)lane;
  return v;
#else
  const hn::RebindToSigned<Float> di;
  return hn::TableLookupLanes(v, hn::IndicesFromVec(Float(), hn::Set(di, static_cast<std::int32_t>(lane))));
#endif
}

/// The next kVectors * kLanes steps of one series; y[-1], y[-2], ... are the values so far. Lane j of vector v is step
/// v * kLanes + j: a time s reaches it with lag v * kLanes + j - 1 - s. Behind the coefficients there are zeros.
template <class Way, std::size_t kVectors>
HWY_NOINLINE void forecast_block(const float* c, std::size_t order, float* y) {
  const Float d;
  const auto p = static_cast<std::ptrdiff_t>(order);
  constexpr auto kBlock = static_cast<std::ptrdiff_t>(kVectors * kLanes);
  Floats sum[kVectors];
  HWY_UNROLL(4)
  for (auto& vector : sum) vector = hn::Zero(d);
  std::ptrdiff_t s = -p;
  for (; s < kBlock - 1 - p; ++s) {  // the oldest times are beyond the last lag of some lanes
    const auto value = hn::Set(d, y[s]);
    HWY_UNROLL(4)
    for (std::size_t v = 0; v < kVectors; ++v) {
      const std::ptrdiff_t lag = static_cast<std::ptrdiff_t>(v * kLanes) - 1 - s;
      const auto added = Way::add(hn::LoadU(d, c + lag), value, sum[v]);
      sum[v] = hn::IfThenElse(first_lanes(p - lag), added, sum[v]);
    }
  }
  for (; s < 0; ++s) {
    const auto value = hn::Set(d, y[s]);
    HWY_UNROLL(4)
    for (std::size_t v = 0; v < kVectors; ++v) {
      sum[v] = Way::add(hn::LoadU(d, c - s - 1 + v * kLanes), value, sum[v]);
    }
  }
  HWY_UNROLL(4)
  for (std::size_t w = 0; w < kVectors; ++w) {
    // A lane is complete when all before it are, and then goes to all behind it. In front of the coefficients there is
    // room to read, and lanes that got something from there are put back.
    for (std::size_t lane = 0; lane < kLanes; ++lane, ++s) {
      const auto value = broadcast(sum[w], lane);
      const auto added = Way::add(hn::LoadU(d, c - 1 - lane), value, sum[w]);
      sum[w] = hn::IfThenElse(hn::FirstN(d, lane + 1), sum[w], added);
      HWY_UNROLL(4)
      for (std::size_t v = w + 1; v < kVectors; ++v) {
        sum[v] = Way::add(hn::LoadU(d, c + (v - w) * kLanes - 1 - lane), value, sum[v]);
      }
    }
    hn::StoreU(sum[w], d, y + w * kLanes);
  }
}

}  // namespace fulcrum::backends::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
