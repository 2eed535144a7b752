// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// leaky_relu: a comparison and a product that is rounded once, so that every backend gives the same bits.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/simd/kernels/leaky_relu.cpp"
#include <hwy/foreach_target.h>

#include "backends/simd/elementwise-inl.h"

FULCRUM_MAP_BEGIN
struct LeakyRelu {
  Floats al, kept;  // `kept`: no bits at all when al is 0, where 0 * -Inf would be NaN

  explicit HWY_INLINE LeakyRelu(const fulcrum_args& a) {
    al = set(static_cast<float>(a.scalar[0].f));
    kept = hn::VecFromMask(Float(), hn::Ne(al, hn::Zero(Float())));
  }
  HWY_INLINE Floats operator()(Floats x) const {
    return hn::IfThenElse(hn::Le(x, hn::Zero(Float())), hn::And(hn::Mul(al, x), kept), x);
  }
};
FULCRUM_MAP_END

FULCRUM_UNARY_KERNEL(leaky_relu, LeakyRelu, 2)
