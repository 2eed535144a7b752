// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// See gemm.h: the chains of f32 in tiles of 128 rows and 64 columns, for products whose square tiles of 128, which a
// library likes, leave half of a device idle. A thread has eight rows and four columns, so that three loads from shared
// memory serve 32 multiplications; the slab behind the one in use waits in registers.
#include <cstdint>
#include <limits>

#include "backends/cuda/gemm.h"
#include "backends/cuda/gemm_epilogue.cuh"
#include "backends/cuda/streaming.cuh"

namespace fulcrum::backends::cuda {
namespace {

constexpr int kThreads = 256, kTileM = 128, kTileN = 64, kDepth = 32;
constexpr int kPitchA = kTileM + 4, kPitchB = kTileN;
constexpr int kSlabFloats = kDepth * (kPitchA + kPitchB), kSharedBytes = 2 * kSlabFloats * 4;
constexpr int kLoadsA = kTileM * kDepth / 4 / kThreads, kLoadsB = kTileN * kDepth / 4 / kThreads;

/// A thread's share of a slab, between global and shared memory: A by four terms of a row, which are written as four
/// rows of terms, B by four columns. Terms, rows and columns behind the last are zeros.
struct Share {
  const float *a, *b;
  int64_t a_step, b_step, b_slab;
  int64_t rows_left;
  int terms_left, a_term, b_term;
  bool has_column;
  float4 next_a[kLoadsA], next_b[kLoadsB];

  static constexpr int kRowStep = kThreads / (kDepth / 4), kTermStep = kThreads / (kTileN / 4);

  __device__ Share(const Gemm& g, const float* left, const float* right, int64_t row0, int64_t column0) {
    const int thread = static_cast<int>(threadIdx.x);
    const int a_row = thread / (kDepth / 4), b_column = thread % (kTileN / 4) * 4;
    a_term = thread % (kDepth / 4) * 4;
    b_term = thread / (kTileN / 4);
    a = left + (row0 + a_row) * g.k + a_term;
    b = right + b_term * g.n + column0 + b_column;
    a_step = kRowStep * g.k;
    b_step = kTermStep * g.n;
    b_slab = kDepth * g.n;
    rows_left = g.m - row0 - a_row;
    has_column = column0 + b_column < g.n;
    terms_left = static_cast<int>(g.k);
  }
  __device__ __forceinline__ void load() {
#pragma unroll
    for (int i = 0; i < kLoadsA; ++i) {
      next_a[i] = make_float4(0, 0, 0, 0);
      if (i * kRowStep < rows_left && a_term < terms_left)
        next_a[i] = *reinterpret_cast<const float4*>(a + i * a_step);
    }
#pragma unroll
    for (int i = 0; i < kLoadsB; ++i) {
      next_b[i] = make_float4(0, 0, 0, 0);
      if (has_column && b_term + i * kTermStep < terms_left)
        next_b[i] = *reinterpret_cast<const float4*>(b + i * b_step);
    }
    a += kDepth;
    b += b_slab;
    terms_left -= kDepth;
  }
  __device__ __forceinline__ void store(float* slab) const {
    const int thread = static_cast<int>(threadIdx.x);
    float* to_a = slab + a_term * kPitchA + thread / (kDepth / 4);
#pragma unroll
    for (int i = 0; i < kLoadsA; ++i) {
      to_a[i * kRowStep] = next_a[i].x;
      to_a[i * kRowStep + kPitchA] = next_a[i].y;
      to_a[i * kRowStep + 2 * kPitchA] = next_a[i].z;
      to_a[i * kRowStep + 3 * kPitchA] = next_a[i].w;
    }
    float* to_b = slab + kDepth * kPitchA + b_term * kPitchB + thread % (kTileN / 4) * 4;
#pragma unroll
    for (int i = 0; i < kLoadsB; ++i) *reinterpret_cast<float4*>(to_b + i * kTermStep * kPitchB) = next_b[i];
  }
};

/// One term's operands of a thread.
struct Term {
  float4 a[2], b;

  __device__ __forceinline__ void load(const float* a_from, const float* b_from) {
    a[0] = *reinterpret_cast<const float4*>(a_from);
    a[1] = *reinterpret_cast<const float4*>(a_from + 16);
    b = *reinterpret_cast<const float4*>(b_from);
  }
  __device__ __forceinline__ void add_to(float (&sum)[8][4]) const {
    const float down[8] = {a[0].x, a[0].y, a[0].z, a[0].w, a[1].x, a[1].y, a[1].z, a[1].w};
    const float along[4] = {b.x, b.y, b.z, b.w};
#pragma unroll
    for (int i = 0; i < 8; ++i) {
#pragma unroll
      for (int j = 0; j < 4; ++j) sum[i][j] = __fmaf_rn(down[i], along[j], sum[i][j]);
    }
  }
};

__global__ void __launch_bounds__(kThreads, 2)
    wide_kernel(Gemm g, const float* a_all, const float* b_all, const float* bias, float* c_all) {
  extern __shared__ __align__(16) float memory[];
  const auto along = static_cast<unsigned>((g.n + kTileN - 1) / kTileN);
  const int64_t row0 = int64_t{blockIdx.x / along} * kTileM, column0 = int64_t{blockIdx.x % along} * kTileN;
  const int64_t entry = blockIdx.y;
  // Four warps down and two along; in a warp four lanes down, with rows of their own and 16 further, and eight along.
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  const int row = warp / 2 * 32 + lane / 8 * 4, column = warp % 2 * 32 + lane % 8 * 4;
  Share share(g, a_all + entry * g.m * g.k, b_all + entry * g.k * g.n, row0, column0);
  float sum[8][4] = {};
  const int slabs = static_cast<int>((g.k + kDepth - 1) / kDepth);
  streaming::follow();
  share.load();
  for (int slab = 0; slab < slabs; ++slab) {
    float* now = memory + slab % 2 * kSlabFloats;
    share.store(now);
    __syncthreads();  // and nobody reads the slab before this one any more, which is the next to be written
    if (slab + 1 < slabs) share.load();
    const float *a = now + row, *b = now + kDepth * kPitchA + column;
    Term term[2];
    term[0].load(a, b);
#pragma unroll
    for (int k = 0; k < kDepth; ++k) {
      if (k + 1 < kDepth) term[(k + 1) % 2].load(a + (k + 1) * kPitchA, b + (k + 1) * kPitchB);
      term[k % 2].add_to(sum);
    }
  }
  float added[4] = {};
  if (column0 + column >= g.n) return;
#pragma unroll
  for (int j = 0; j < 4; ++j) {
    if (bias) added[j] = bias[column0 + column + j];
  }
  float* c = c_all + entry * g.m * g.n + (row0 + row) * g.n + column0 + column;
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    const int down = i % 4 + i / 4 * 16;
    if (row0 + row + down >= g.m) continue;
    float value[4];
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const float x = bias ? sum[i][j] + added[j] : sum[i][j];
      value[j] = g.activation == Activation::relu   ? streaming::Relu{}(x)
                 : g.activation == Activation::gelu ? streaming::Gelu{}(x)
                                                    : x;
    }
    store_four(c + down * g.n, value);
  }
}

}  // namespace

bool wide_takes(const Gemm& g, const GemmOperands& operands) {
  constexpr int64_t kMostEntries = 65535, kMost = std::numeric_limits<int32_t>::max();
  const auto bits = reinterpret_cast<uintptr_t>(operands.a) | reinterpret_cast<uintptr_t>(operands.b) |
                    reinterpret_cast<uintptr_t>(operands.c);
  const int64_t tiles = (g.m + kTileM - 1) / kTileM * ((g.n + kTileN - 1) / kTileN);
  return g.element == Element::f32 && bits % 16 == 0 && g.k % 4 == 0 && g.n % 4 == 0 && g.k > 0 &&
         g.k < kMost / 2 && g.batch <= kMostEntries && tiles <= kMost;
}

void enqueue_wide(const Gemm& g, const GemmOperands& operands, cudaStream_t stream) {
  if (g.outputs() == 0) return;
  static const cudaError_t allowed =
      cudaFuncSetAttribute(wide_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kSharedBytes);
  (void)allowed;  // a launch that it forbids fails
  const int64_t tiles = (g.m + kTileM - 1) / kTileM * ((g.n + kTileN - 1) / kTileN);
  cudaLaunchAttribute attributes[2] = {};
  cudaLaunchConfig_t config = streaming::config_of({.ctas = tiles,
                                                    .threads = kThreads,
                                                    .programmatic = streaming::can_follow(nullptr) != 0,
                                                    .shared_bytes = kSharedBytes},
                                                   nullptr, attributes);
  config.stream = stream;
  config.gridDim.y = static_cast<unsigned>(g.batch);
  // An error stays for launched().
  (void)cudaLaunchKernelEx(&config, wide_kernel, g, static_cast<const float*>(operands.a),
                           static_cast<const float*>(operands.b), operands.bias,
                           static_cast<float*>(operands.c));
}

}  // namespace fulcrum::backends::cuda
