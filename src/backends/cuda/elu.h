// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// elu as a function of one element, in half the instructions of expm1f: with these the op keeps up with memory. Apart
// from functors.h, whose Elu is a step of longer expressions.
#pragma once

#include "backends/cuda/functors.h"

namespace fulcrum::backends::cuda::streaming {

/// e^x - 1 for x <= 0, within 4 ulp. Down to -ln 2 as x (1 + x q(x)), q interpolated at the Chebyshev nodes of
/// [-0.7, 0]; below that e^x is at most 1/2, so that its error is small against the result.
FULCRUM_EVERYWHERE float negative_expm1(float x) {
  constexpr float kLog2E = 1.44269504F, kLn2 = 0.693147182F;
  const float far = power_of_2(kLog2E * x) - 1;
  float q = 0.00108627765F;
  q = ::fmaf(q, x, 0.00815627258F);
  q = ::fmaf(q, x, 0.0416233055F);
  q = ::fmaf(q, x, 0.166662902F);
  q = ::fmaf(q, x, 0.49999994F);
  const float near = x * ::fmaf(x, q, 1);
  return x > -kLn2 ? near : far;
}

/// x where x > 0, else `other`, which is there in either case: left to itself the compiler makes a branch of it, and a
/// thread then computes its elements one after the other.
FULCRUM_EVERYWHERE float positive_or(float x, float other) {
#ifdef __CUDA_ARCH__
  float result;
  asm("{\n.reg .pred p;\nsetp.gt.f32 p, %1, 0f00000000;\nselp.f32 %0, %1, %2, p;\n}"
      : "=f"(result)
      : "f"(x), "f"(other));
  return result;
#else
  return x > 0 ? x : other;
#endif
}

struct FastElu : Unary {
  float al;
  static FastElu from(const fulcrum_args& a) { return {{}, static_cast<float>(a.scalar[0].f)}; }
  FULCRUM_EVERYWHERE float operator()(float x) const { return positive_or(x, al * negative_expm1(x)); }
};

}  // namespace fulcrum::backends::cuda::streaming
