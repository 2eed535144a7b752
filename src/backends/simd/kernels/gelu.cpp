// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// gelu: the tanh form, through a sigmoid.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/simd/kernels/gelu.cpp"
#include <hwy/foreach_target.h>

#include "backends/simd/elementwise-inl.h"

FULCRUM_MAP_BEGIN
struct Gelu {
  HWY_INLINE Floats operator()(Floats x) const { return gelu(x); }
};
FULCRUM_MAP_END

FULCRUM_UNARY_KERNEL(gelu, Gelu, 1)
