// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// swish: x sigmoid(x).
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/simd/kernels/swish.cpp"
#include <hwy/foreach_target.h>

#include "backends/simd/elementwise-inl.h"

FULCRUM_MAP_BEGIN
struct Swish {
  HWY_INLINE Floats operator()(Floats x) const { return swish(x); }
};
FULCRUM_MAP_END

FULCRUM_UNARY_KERNEL(swish, Swish, 1)
