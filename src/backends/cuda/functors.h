// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// The element-wise ops as functions of one element, with the slots of their calls. They compile for host and device,
// so that a test without a device sees every formula and special value; the C library's functions stand in for the
// device's there.
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

/// 1 / (1 + exp(-z)) in the form that never overflows.
FULCRUM_EVERYWHERE float logistic(float z) {
  const float t = ::expf(-::fabsf(z));
  return (z >= 0 ? 1 : t) / (1 + t);
}

struct Sigmoid : Unary {
  static Sigmoid from(const fulcrum_args&) { return {}; }
  FULCRUM_EVERYWHERE float operator()(float x) const { return logistic(x); }
};

/// The sign is taken off and put back: tanh(-x) is then -tanh(x) to the bit, whatever tanhf does.
struct Tanh : Unary {
  static Tanh from(const fulcrum_args&) { return {}; }
  FULCRUM_EVERYWHERE float operator()(float x) const { return ::copysignf(::tanhf(::fabsf(x)), x); }
};

struct Swish : Unary {
  static Swish from(const fulcrum_args&) { return {}; }
  FULCRUM_EVERYWHERE float operator()(float x) const {
    return x == -INFINITY ? 0 : x * logistic(x);  // -Inf * 0 would be NaN
  }
};

struct Gelu : Unary {
  static Gelu from(const fulcrum_args&) { return {}; }
  FULCRUM_EVERYWHERE float operator()(float x) const {
    const float z2 = 1.59576912F * x * (1 + 0.044715F * x * x);
    return x == -INFINITY ? 0 : x * logistic(z2);
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
