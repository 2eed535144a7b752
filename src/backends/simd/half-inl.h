// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// binary16 in memory, f32 in registers: loads that widen and stores that round to nearest even, by the instruction
// set's own conversion or, where it has none, by the integer arithmetic of fulcrum/ops/half.h.
#include <fulcrum/ops/half.h>

#include "backends/simd/vectors-inl.h"

#if defined(FULCRUM_BACKENDS_SIMD_HALF_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FULCRUM_BACKENDS_SIMD_HALF_INL_H_
#undef FULCRUM_BACKENDS_SIMD_HALF_INL_H_
#else
#define FULCRUM_BACKENDS_SIMD_HALF_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace fulcrum::backends::simd::HWY_NAMESPACE {

using Half = hn::Rebind<hwy::float16_t, Float>;

/// kLanes halves as floats.
HWY_INLINE Floats load_halves(const std::uint16_t* from) {
#if HWY_TARGET <= HWY_AVX2 || HWY_TARGET == HWY_NEON
  return hn::PromoteTo(Float(), hn::LoadU(Half(), reinterpret_cast<const hwy::float16_t*>(from)));
#else
  HWY_ALIGN float lanes[kLanes];
  for (std::size_t i = 0; i < kLanes; ++i) lanes[i] = ops::float_from_half(from[i]);
  return hn::Load(Float(), lanes);
#endif
}

/// Lanes [0, n), 0 in the others; 0 <= n < kLanes.
HWY_INLINE Floats load_first_halves(const std::uint16_t* from, std::size_t n) {
  HWY_ALIGN std::uint16_t lanes[kLanes] = {};
  std::memcpy(lanes, from, n * sizeof(*lanes));
  return load_halves(lanes);
}

HWY_INLINE void store_halves(Floats v, std::uint16_t* to) {
#if HWY_TARGET <= HWY_AVX2 || HWY_TARGET == HWY_NEON
  hn::StoreU(hn::DemoteTo(Half(), v), Half(), reinterpret_cast<hwy::float16_t*>(to));
#else
  HWY_ALIGN float lanes[kLanes];
  hn::Store(v, Float(), lanes);
  for (std::size_t i = 0; i < kLanes; ++i) to[i] = ops::half_from_float(lanes[i]);
#endif
}

HWY_INLINE void store_first_halves(Floats v, std::uint16_t* to, std::size_t n) {
  HWY_ALIGN std::uint16_t lanes[kLanes];
  store_halves(v, lanes);
  std::memcpy(to, lanes, n * sizeof(*lanes));
}

}  // namespace fulcrum::backends::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
