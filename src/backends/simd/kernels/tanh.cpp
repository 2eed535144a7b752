// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// tanh, within 8 ulp on AVX-512 and 6 elsewhere; tanh(-x) is -tanh(x) in every bit.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/simd/kernels/tanh.cpp"
#include <hwy/foreach_target.h>

#include "backends/simd/elementwise-inl.h"

FULCRUM_MAP_BEGIN
struct Tanh {
  HWY_INLINE Floats operator()(Floats x) const { return tanh(x); }
};
FULCRUM_MAP_END

FULCRUM_UNARY_KERNEL(tanh, Tanh, 1)
