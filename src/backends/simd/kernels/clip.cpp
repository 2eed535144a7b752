// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// clip: two bounds that let NaN pass.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/simd/kernels/clip.cpp"
#include <hwy/foreach_target.h>

#include "backends/simd/elementwise-inl.h"

FULCRUM_MAP_BEGIN
struct Clip {
  Floats lo, hi;

  explicit HWY_INLINE Clip(const fulcrum_args& a)
      : lo(set(static_cast<float>(a.scalar[0].f))), hi(set(static_cast<float>(a.scalar[1].f))) {}
  HWY_INLINE Floats operator()(Floats x) const { return at_most(hi, at_least(lo, x)); }
};
FULCRUM_MAP_END

FULCRUM_UNARY_KERNEL(clip, Clip, 2)
