// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// probe_triad: two loads, one multiply-add, one store.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/simd/kernels/probe_triad.cpp"
#include <hwy/foreach_target.h>

#include "backends/simd/elementwise-inl.h"

FULCRUM_MAP_BEGIN
struct Scaled {
  Floats s;

  explicit HWY_INLINE Scaled(const fulcrum_args& a) : s(set(static_cast<float>(a.scalar[1].f))) {}
  HWY_INLINE Floats operator()(Floats x, Floats z) const { return hn::MulAdd(s, z, x); }
};
FULCRUM_MAP_END

FULCRUM_PROBE_KERNEL(probe_triad, TwoInputs, Scaled)
