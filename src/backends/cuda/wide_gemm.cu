// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// See gemm.h: the chains of f32 in tiles of 128 rows and 64 columns, for products whose square tiles of 128, which a
// library likes, leave half of a device idle. A thread has eight rows and eight columns, so that four loads from shared
// memory serve 64 multiplications; the slab behind the one in use waits in registers. Long sums are two chains, of the
// lower and of the upper half of the terms, each by threads of its own, so that there are warps enough.
#include <cstdint>
#include <limits>

#include "backends/cuda/gemm.h"
#include "backends/cuda/gemm_epilogue.cuh"
#include "backends/cuda/streaming.cuh"

namespace fulcrum::backends::cuda {
namespace {

constexpr int kThreads = 128, kTileM = 128, kTileN = 64, kDepth = 16;
constexpr int kPitchA = kTileM + 4, kPitchB = kTileN;
constexpr int kSlabFloats = kDepth * (kPitchA + kPitchB);
constexpr std::size_t kSharedBytes = 2 * kSlabFloats * 4;  // of a chain
static_assert(2 * 32 * kThreads * 4 <= 2 * kSharedBytes);
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

  __device__ Share(const Gemm& g, const float* left, const float* right, int64_t row0, int64_t column0,
                   int k0, int k_end) {
    const int thread = static_cast<int>(threadIdx.x) % kThreads;
    const int a_row = thread / (kDepth / 4), b_column = thread % (kTileN / 4) * 4;
    a_term = thread % (kDepth / 4) * 4;
    b_term = thread / (kTileN / 4);
    a = left + (row0 + a_row) * g.k + k0 + a_term;
    b = right + (int64_t{k0} + b_term) * g.n + column0 + b_column;
    a_step = kRowStep * g.k;
    b_step = kTermStep * g.n;
    b_slab = kDepth * g.n;
    rows_left = g.m - row0 - a_row;
    has_column = column0 + b_column < g.n;
    terms_left = k_end - k0;
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
    const int thread = static_cast<int>(threadIdx.x) % kThreads;
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

/// One term's operands of a thread: four rows and four more, four columns and four more.
constexpr int kNextRows = 32, kNextColumns = 16;

struct Term {
  float4 a[2], b[2];

  __device__ __forceinline__ void load(const float* a_from, const float* b_from) {
    a[0] = *reinterpret_cast<const float4*>(a_from);
    a[1] = *reinterpret_cast<const float4*>(a_from + kNextRows);
    b[0] = *reinterpret_cast<const float4*>(b_from);
    b[1] = *reinterpret_cast<const float4*>(b_from + kNextColumns);
  }
  __device__ __forceinline__ void add_to(float (&sum)[8][8]) const {
    const float down[8] = {a[0].x, a[0].y, a[0].z, a[0].w, a[1].x, a[1].y, a[1].z, a[1].w};
    const float along[8] = {b[0].x, b[0].y, b[0].z, b[0].w, b[1].x, b[1].y, b[1].z, b[1].w};
#pragma unroll
    for (int i = 0; i < 8; ++i) {
#pragma unroll
      for (int j = 0; j < 8; ++j) sum[i][j] = __fmaf_rn(down[i], along[j], sum[i][j]);
    }
  }
};

/// Rows [4 kFirst, 4 kFirst + 4) of a thread's eight.
template <int kFirst>
__device__ __forceinline__ void write_rows(const Gemm& g, const float (&sum)[8][8], const float* bias,
                                           float* c, int64_t row, int64_t column) {
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int64_t at = column + half * kNextColumns;
    if (at >= g.n) continue;
    float added[4] = {};
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      if (bias) added[j] = bias[at + j];
    }
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int64_t down = row + i + kFirst * kNextRows;
      if (down >= g.m) continue;
      float value[4];
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        const float product = sum[kFirst * 4 + i][half * 4 + j], x = bias ? product + added[j] : product;
        value[j] = g.activation == Activation::relu   ? streaming::Relu{}(x)
                   : g.activation == Activation::gelu ? streaming::Gelu{}(x)
                                                      : x;
      }
      store_four(c + down * g.n + at, value);
    }
  }
}

/// Four rows of a thread's sums on their way to its like in the other chain, and those that came from there.
template <int kFirst>
__device__ __forceinline__ void send_rows(const float (&sum)[8][8], float* inbox, int thread) {
#pragma unroll
  for (int i = 0; i < 32; ++i) inbox[i * kThreads + thread] = sum[kFirst * 4 + i / 8][i % 8];
}
template <int kFirst>
__device__ __forceinline__ void add_rows(float (&sum)[8][8], const float* inbox, int thread) {
#pragma unroll
  for (int i = 0; i < 32; ++i) sum[kFirst * 4 + i / 8][i % 8] += inbox[i * kThreads + thread];
}

template <int kChains>
__global__ void __launch_bounds__(kThreads* kChains, 1)
    wide_kernel(Gemm g, const float* a_all, const float* b_all, const float* bias, float* c_all) {
  extern __shared__ __align__(16) float memory[];
  const auto along = static_cast<unsigned>((g.n + kTileN - 1) / kTileN);
  const int64_t row0 = int64_t{blockIdx.x / along} * kTileM, column0 = int64_t{blockIdx.x % along} * kTileN;
  const int64_t entry = blockIdx.y;
  // Two warps down and two along; in a warp eight lanes down and four along.
  const int chain = static_cast<int>(threadIdx.x) / kThreads,
            thread = static_cast<int>(threadIdx.x) % kThreads;
  const int lane = thread % 32, warp = thread / 32;
  const int row = warp / 2 * 64 + lane / 4 * 4, column = warp % 2 * 32 + lane % 4 * 4;
  const int k = static_cast<int>(g.k), terms = (k + kDepth * kChains - 1) / (kDepth * kChains) * kDepth;
  const int k0 = min(k, chain * terms), k_end = min(k, k0 + terms);
  Share share(g, a_all + entry * g.m * g.k, b_all + entry * g.k * g.n, row0, column0, k0, k_end);
  float sum[8][8] = {};
  const int slabs = (k_end - k0 + kDepth - 1) / kDepth;
  float* own = memory + chain * 2 * kSlabFloats;
  streaming::follow();
  if (slabs > 0) share.load();
  for (int slab = 0; slab < slabs; ++slab) {
    float* now = own + slab % 2 * kSlabFloats;
    share.store(now);
    // And no thread of the chain reads the slab before this one any more, which is the next to be written.
    asm volatile("bar.sync %0, %1;" ::"r"(chain + 1), "n"(kThreads) : "memory");
    if (slab + 1 < slabs) share.load();
    const float *a = now + row, *b = now + kDepth * kPitchA + column;
    Term term[2];
    term[0].load(a, b);
#pragma unroll
    for (int i = 0; i < kDepth; ++i) {
      if (i + 1 < kDepth) term[(i + 1) % 2].load(a + (i + 1) * kPitchA, b + (i + 1) * kPitchB);
      term[i % 2].add_to(sum);
    }
  }
  float* c = c_all + entry * g.m * g.n;
  if constexpr (kChains == 1) {
    write_rows<0>(g, sum, bias, c, row0 + row, column0 + column);
    write_rows<1>(g, sum, bias, c, row0 + row, column0 + column);
  } else {
    float *lower = memory, *upper = memory + 32 * kThreads;  // what each of the chains gets
    __syncthreads();                                         // nobody reads slabs any more
    if (chain == 0) {
      send_rows<1>(sum, upper, thread);
    } else {
      send_rows<0>(sum, lower, thread);
    }
    __syncthreads();
    if (chain == 0) {
      add_rows<0>(sum, lower, thread);
      write_rows<0>(g, sum, bias, c, row0 + row, column0 + column);
    } else {
      add_rows<1>(sum, upper, thread);
      write_rows<1>(g, sum, bias, c, row0 + row, column0 + column);
    }
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

int wide_chains_for(const Gemm& g) { return g.k >= 8 * kDepth ? 2 : 1; }

void enqueue_wide(const Gemm& g, const GemmOperands& operands, int chains, cudaStream_t stream) {
  if (g.outputs() == 0) return;
  const auto kernel = chains == 1 ? wide_kernel<1> : wide_kernel<2>;
  const int64_t tiles = (g.m + kTileM - 1) / kTileM * ((g.n + kTileN - 1) / kTileN);
  cudaLaunchAttribute attributes[2] = {};
  cudaLaunchConfig_t config =
      streaming::config_of({.ctas = tiles,
                            .threads = kThreads * chains,
                            .programmatic = streaming::can_follow(nullptr) != 0,
                            .shared_bytes = chains == 1 ? kSharedBytes : 2 * kSharedBytes},
                           nullptr, attributes);
  config.stream = stream;
  config.gridDim.y = static_cast<unsigned>(g.batch);
  static const cudaError_t allowed = cudaFuncSetAttribute(
      wide_kernel<2>, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(2 * kSharedBytes));
  (void)allowed;  // a launch that it forbids fails, and such an error stays for launched()
  (void)cudaLaunchKernelEx(&config, kernel, g, static_cast<const float*>(operands.a),
                           static_cast<const float*>(operands.b), operands.bias,
                           static_cast<float*>(operands.c));
}

}  // namespace fulcrum::backends::cuda
