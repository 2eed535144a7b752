// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// relu: 0 where x <= 0, else x; NaN stays.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/simd/kernels/relu.cpp"
#include <hwy/foreach_target.h>

#include "backends/simd/elementwise-inl.h"

FULCRUM_MAP_BEGIN
struct Relu {
  HWY_INLINE Floats operator()(Floats x) const { return relu(x); }
};
FULCRUM_MAP_END

FULCRUM_UNARY_KERNEL(relu, Relu, 2)
