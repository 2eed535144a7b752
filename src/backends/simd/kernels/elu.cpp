// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// elu: al expm1(x) below zero.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/simd/kernels/elu.cpp"
#include <hwy/foreach_target.h>

#include "backends/simd/elementwise-inl.h"

FULCRUM_MAP_BEGIN
struct Elu {
  Floats al;

  explicit HWY_INLINE Elu(const fulcrum_args& a) : al(set(static_cast<float>(a.scalar[0].f))) {}
  HWY_INLINE Floats operator()(Floats x) const {
    return hn::IfThenElse(hn::Gt(x, hn::Zero(Float())), x, hn::Mul(al, expm1_of_negative(x)));
  }
};
FULCRUM_MAP_END

FULCRUM_UNARY_KERNEL(elu, Elu, 1)
