// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Bias and activation behind a matrix product, on its f32 sums before the one rounding.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "backends/cuda/functors.h"
#include "backends/cuda/gemm.h"

namespace fulcrum::backends::cuda {

/// gelu with the device's own exp2 and reciprocal: off by a few ulp of x, far less than the sum before it may be.
__device__ __forceinline__ float quick_gelu(float x) {
  constexpr float kScale = 2.30220819F;  // 2 sqrt(2/pi) log2(e)
  const float z = kScale * x * __fmaf_rn(0.044715F * x, x, 1.0F);
  float t, r;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(t) : "f"(-fabsf(z)));
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(1.0F + t));
  return x == -INFINITY ? 0.0F : x * (z >= 0 ? r : t * r);
}

__device__ __forceinline__ float finished(float sum, Activation activation) {
  if (activation == Activation::relu) return streaming::Relu{}(sum);
  return activation == Activation::gelu ? quick_gelu(sum) : sum;
}

/// Neighbours of a row, rounded; `to` is aligned to the pair.
__device__ __forceinline__ void store_pair(float* to, float x, float y) {
  *reinterpret_cast<float2*>(to) = {x, y};
}
__device__ __forceinline__ void store_pair(__half* to, float x, float y) {
  *reinterpret_cast<__half2*>(to) = __floats2half2_rn(x, y);
}
__device__ __forceinline__ void store_pair(__nv_bfloat16* to, float x, float y) {
  *reinterpret_cast<__nv_bfloat162*>(to) = __floats2bfloat162_rn(x, y);
}

/// The same for four, in one store.
template <class T>
__device__ __forceinline__ void store_four(T* to, const float (&value)[4]) {
  if constexpr (sizeof(T) == 4) {
    *reinterpret_cast<float4*>(to) = {value[0], value[1], value[2], value[3]};
  } else {
    alignas(8) T rounded[4];
    store_pair(rounded, value[0], value[1]);
    store_pair(rounded + 2, value[2], value[3]);
    *reinterpret_cast<uint2*>(to) = *reinterpret_cast<const uint2*>(rounded);
  }
}

}  // namespace fulcrum::backends::cuda
