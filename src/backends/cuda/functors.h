// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// The element-wise ops as functions of one element, with the slots of their calls. They compile for host and device,
// so that a test without a device sees every formula and special value; the C library's functions and a division stand
// in for the device's there.
#pragma once

#include <fulcrum/abi.h>

#include <cmath>
#include <cstdint>

#ifdef __CUDACC__
#define FULCRUM_EVERYWHERE __host__ __device__ __forceinline__
#else
#define FULCRUM_EVERYWHERE inline
#endif

namespace fulcrum::backends::cuda::streaming {

/// x > out over n elements.
struct Unary {
  static constexpr int kInputs = 1, kOut = 1;
  static int64_t elements(const fulcrum_args& a) { return a.dim[0]; }
};

struct Sum {
  static constexpr int kInputs = 2, kOut = 3;
  static int64_t elements(const fulcrum_args& a) { return a.dim[0] * a.dim[1]; }
  static Sum from(const fulcrum_args&) { return {}; }
  FULCRUM_EVERYWHERE float operator()(float a, float b) const { return a + b; }
};

struct Relu : Unary {
  static Relu from(const fulcrum_args&) { return {}; }
  FULCRUM_EVERYWHERE float operator()(float x) const { return x <= 0 ? 0 : x; }
};

struct LeakyRelu : Unary {
  float al;
  static LeakyRelu from(const fulcrum_args& a) { return {{}, static_cast<float>(a.scalar[0].f)}; }
  FULCRUM_EVERYWHERE float operator()(float x) const {
    const float scaled = al == 0 ? 0 : al * x;  // 0 * -Inf would be NaN
    return x <= 0 ? scaled : x;
  }
};

struct Clip : Unary {
  float lo, hi;
  static Clip from(const fulcrum_args& a) {
    return {{}, static_cast<float>(a.scalar[0].f), static_cast<float>(a.scalar[1].f)};
  }
  FULCRUM_EVERYWHERE float operator()(float x) const {
    const float raised = x < lo ? lo : x;
    return raised > hi ? hi : raised;
  }
};

struct Elu : Unary {
  float al;
  static Elu from(const fulcrum_args& a) { return {{}, static_cast<float>(a.scalar[0].f)}; }
  FULCRUM_EVERYWHERE float operator()(float x) const { return x > 0 ? x : al * ::expm1f(x); }
};

/// 1 / x to 1 ulp in one instruction where a division takes ten; 0 for an x past 2^126.
FULCRUM_EVERYWHERE float reciprocal(float x) {
#ifdef __CUDA_ARCH__
  float result;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x));
  return result;
#else
  return 1 / x;
#endif
}

/// 2^x to 2 ulp; 0 where that would be denormal.
FULCRUM_EVERYWHERE float power_of_2(float x) {
#ifdef __CUDA_ARCH__
  float result;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x));
  return result;
#else
  return ::exp2f(x);
#endif
}

struct Sigmoid : Unary {
  static Sigmoid from(const fulcrum_args&) { return {}; }
  /// In the form that never overflows; the reciprocal is one of 1 to 2.
  FULCRUM_EVERYWHERE float operator()(float x) const {
    const float t = ::expf(-::fabsf(x));
    return (x >= 0 ? 1 : t) * reciprocal(1 + t);
  }
};

/// The sign is taken off and put back: tanh(-x) is then -tanh(x) to the bit, whatever tanhf does.
struct Tanh : Unary {
  static Tanh from(const fulcrum_args&) { return {}; }
  FULCRUM_EVERYWHERE float operator()(float x) const { return ::copysignf(::tanhf(::fabsf(x)), x); }
};

/// Where exp or its reciprocal leaves the range of floats, below x = -87, the result is less than 2^-119, which is what
/// swish may be off by.
struct Swish : Unary {
  static Swish from(const fulcrum_args&) { return {}; }
  FULCRUM_EVERYWHERE float operator()(float x) const {
    const float result = x * reciprocal(1 + ::expf(-x));
    return x == -INFINITY ? 0 : result;  // -Inf * 0 would be NaN
  }
};

/// exp(-2z) as a power of two, its constants multiplied out: k = 2 sqrt(2/pi) log2(e) and 0.044715 k. Errors of the
/// argument grow with it, to some 30 ulp of the result at x = -5; further down 1e-12 is allowed.
struct Gelu : Unary {
  static Gelu from(const fulcrum_args&) { return {}; }
  FULCRUM_EVERYWHERE float operator()(float x) const {
    const float slope = ::fmaf(-0.102943240F, x * x, -2.30220819F);
    const float result = x * reciprocal(1 + power_of_2(x * slope));
    return x == -INFINITY ? 0 : result;  // -Inf * 0 would be NaN
  }
};

/// probe_copy and probe_triad.
struct Copy : Unary {
  static Copy from(const fulcrum_args&) { return {}; }
  FULCRUM_EVERYWHERE float operator()(float x) const { return x; }
};

struct Triad {
  static constexpr int kInputs = 2, kOut = 2;
  float s;
  static int64_t elements(const fulcrum_args& a) { return a.dim[0]; }
  static Triad from(const fulcrum_args& a) { return {static_cast<float>(a.scalar[1].f)}; }
  FULCRUM_EVERYWHERE float operator()(float x, float z) const { return ::fmaf(s, z, x); }
};

}  // namespace fulcrum::backends::cuda::streaming
