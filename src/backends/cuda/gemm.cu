// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// See gemm.h. A CTA makes one square tile of C; a slab of A and B of kDepth terms waits in registers while the one
// before it is used from shared memory. Terms past K are products of zeros.
#include "backends/cuda/gemm.h"

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <algorithm>
#include <type_traits>

#include "backends/cuda/functors.h"
#include "backends/cuda/gemm_epilogue.cuh"
#include "backends/cuda/streaming.cuh"

namespace fulcrum::backends::cuda {
namespace {

constexpr int kThreads = 256;  // of the passes over arrays
constexpr int64_t kMostRows = 65535;

__device__ __forceinline__ float widen(float value) { return value; }
__device__ __forceinline__ float widen(__half value) { return __half2float(value); }
__device__ __forceinline__ float widen(__nv_bfloat16 value) { return __bfloat162float(value); }

template <class T>
__device__ __forceinline__ T narrow(float value) {
  if constexpr (std::is_same_v<T, __half>)
    return __float2half_rn(value);
  else if constexpr (std::is_same_v<T, __nv_bfloat16>)
    return __float2bfloat16_rn(value);
  else
    return value;
}

__device__ __forceinline__ float activate(float value, Activation activation) {
  if (activation == Activation::relu) return streaming::Relu{}(value);
  return activation == Activation::gelu ? streaming::Gelu{}(value) : value;
}

/// Four or two neighbours of a row of shared memory, in one load.
template <int kCount>
__device__ __forceinline__ void load_row(const float* from, float* into) {
  using Vector = std::conditional_t<kCount == 4, float4, float2>;
  const Vector vector = *reinterpret_cast<const Vector*>(from);
  into[0] = vector.x;
  into[1] = vector.y;
  if constexpr (kCount == 4) {
    into[2] = vector.z;
    into[3] = vector.w;
  }
}

template <class T, int kTile, int kPer, int kDepth>
__global__ void __launch_bounds__((kTile / kPer) * (kTile / kPer))
    tile_kernel(Gemm g, const T* a_all, const T* b_all, const float* bias, T* c_all) {
  constexpr int kSide = kTile / kPer, kCtaThreads = kSide * kSide;
  constexpr int kLoads = kTile * kDepth / kCtaThreads;
  constexpr int kRowStep = kCtaThreads / kDepth, kTermStep = kCtaThreads / kTile;
  static_assert(kRowStep * kDepth == kCtaThreads && kTermStep * kTile == kCtaThreads);
  constexpr int kStep = 16;          // terms between two looks at whether any are left
  constexpr int kPitch = kTile + 4;  // keeps rows 16-byte aligned and spreads columns over banks
  __shared__ __align__(16) float left[kDepth][kPitch];
  __shared__ __align__(16) float right[kDepth][kPitch];
  const int64_t across = (g.n + kTile - 1) / kTile;
  const int64_t row0 = blockIdx.x / across * kTile, column0 = blockIdx.x % across * kTile;
  const int rows = static_cast<int>(g.m - row0 < kTile ? g.m - row0 : kTile);
  const int columns = static_cast<int>(g.n - column0 < kTile ? g.n - column0 : kTile);
  const int thread = static_cast<int>(threadIdx.x), tx = thread % kSide, ty = thread / kSide;
  const int a_row = thread / kDepth, a_term = thread % kDepth, b_term = thread / kTile,
            b_column = thread % kTile;
  const int64_t a_stride = kRowStep * g.k, b_stride = kTermStep * g.n;

  for (int64_t entry = blockIdx.y; entry < g.batch; entry += gridDim.y) {
    // Where this thread's share of the next slab begins, and how far its loads lie apart.
    const T* from_a = a_all + entry * g.m * g.k + (row0 + a_row) * g.k + a_term;
    const T* from_b = b_all + entry * g.k * g.n + b_term * g.n + column0 + b_column;
    float next_a[kLoads], next_b[kLoads];
    const auto fetch = [&](int64_t k0) {
      const int terms = static_cast<int>(g.k - k0 < kDepth ? g.k - k0 : kDepth);
      const T* at_a = from_a;
      const T* at_b = from_b;
#pragma unroll
      for (int l = 0; l < kLoads; ++l) {
        next_a[l] = a_row + l * kRowStep < rows && a_term < terms ? widen(*at_a) : 0.0F;
        next_b[l] = b_term + l * kTermStep < terms && b_column < columns ? widen(*at_b) : 0.0F;
        at_a += a_stride;
        at_b += b_stride;
      }
      from_a += kDepth;
      from_b += kDepth * g.n;
    };
    float sum[kPer][kPer] = {};
    if (g.k > 0) fetch(0);
    for (int64_t k0 = 0; k0 < g.k; k0 += kDepth) {
#pragma unroll
      for (int l = 0; l < kLoads; ++l) {
        left[a_term][a_row + l * kRowStep] = next_a[l];
        right[b_term + l * kTermStep][b_column] = next_b[l];
      }
      __syncthreads();
      if (k0 + kDepth < g.k) fetch(k0 + kDepth);
      const int64_t left_over = g.k - k0;
      for (int p0 = 0; p0 < kDepth && p0 < left_over; p0 += kStep) {
#pragma unroll
        for (int p = p0; p < p0 + kStep; ++p) {
          float down[kPer], along[kPer];
          load_row<kPer>(&left[p][ty * kPer], down);
          load_row<kPer>(&right[p][tx * kPer], along);
#pragma unroll
          for (int i = 0; i < kPer; ++i) {
#pragma unroll
            for (int j = 0; j < kPer; ++j) sum[i][j] = __fmaf_rn(down[i], along[j], sum[i][j]);
          }
        }
      }
      __syncthreads();
    }
    T* c = c_all + entry * g.m * g.n + row0 * g.n + column0;
#pragma unroll
    for (int i = 0; i < kPer; ++i) {
#pragma unroll
      for (int j = 0; j < kPer; ++j) {
        const int row = ty * kPer + i, column = tx * kPer + j;
        if (row >= rows || column >= columns) continue;
        const float value = bias ? sum[i][j] + bias[column0 + column] : sum[i][j];
        c[row * g.n + column] = narrow<T>(activate(value, g.activation));
      }
    }
  }
}

template <class T, int kTile, int kPer, int kDepth>
void launch_tiles(const Gemm& g, const GemmOperands& operands, cudaStream_t stream) {
  constexpr int kSide = kTile / kPer;
  const int64_t tiles = (g.m + kTile - 1) / kTile * ((g.n + kTile - 1) / kTile);
  const dim3 grid(static_cast<unsigned>(tiles), static_cast<unsigned>(std::min(g.batch, kMostRows)));
  tile_kernel<T, kTile, kPer, kDepth><<<grid, kSide * kSide, 0, stream>>>(
      g, static_cast<const T*>(operands.a), static_cast<const T*>(operands.b), operands.bias,
      static_cast<T*>(operands.c));
}

template <class T>
void tiles_of(const Gemm& g, const GemmOperands& operands, int tile, cudaStream_t stream) {
  if (tile == 64) return launch_tiles<T, 64, 4, 16>(g, operands, stream);
  if (tile == 32) return launch_tiles<T, 32, 4, 32>(g, operands, stream);
  launch_tiles<T, 16, 2, 64>(g, operands, stream);
}

/// The pass's CTA: `across` threads, a power of two, along a row, the others down; each takes a vector of kVector
/// columns in kRows rows, so that bias is read once and no index is divided.
constexpr int kRows = 4;

template <class T, int kVector>
__device__ __forceinline__ void load_sums(const float* from, float (&value)[kVector]) {
  if constexpr (kVector == 4)
    load_row<4>(from, value);
  else
    value[0] = *from;
}

template <class T, int kVector>
__global__ void __launch_bounds__(kThreads)
    finish_kernel(int64_t rows, int64_t n, Activation activation, int across_log2, const float* sums,
                  const float* bias, T* c) {
  const int across = 1 << across_log2, down = kThreads >> across_log2;
  const int x = static_cast<int>(threadIdx.x) & (across - 1),
            y = static_cast<int>(threadIdx.x) >> across_log2;
  const int64_t column = (static_cast<int64_t>(blockIdx.x) * across + x) * kVector;
  streaming::follow();
  if (column >= n) return;
  float added[kVector] = {};
  for (int v = 0; bias && v < kVector; ++v) added[v] = bias[column + v];
  const int64_t step = static_cast<int64_t>(down) * n;
  for (int64_t first = static_cast<int64_t>(blockIdx.y) * down * kRows; first < rows;
       first += static_cast<int64_t>(gridDim.y) * down * kRows) {
    const int64_t row = first + y, at = row * n + column;
    float value[kRows][kVector];
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
      if (row + i * down < rows) load_sums<T, kVector>(sums + at + i * step, value[i]);
    }
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
      if (row + i * down >= rows) continue;
#pragma unroll
      for (int v = 0; v < kVector; ++v)
        value[i][v] = finished(bias ? value[i][v] + added[v] : value[i][v], activation);
      T* to = c + at + i * step;
      if constexpr (kVector == 4)
        store_four(to, value[i]);
      else
        *to = narrow<T>(value[i][0]);
    }
  }
}

template <class T, int kVector>
void launch_finish(const Gemm& g, const float* sums, const float* bias, void* c, cudaStream_t stream) {
  const int64_t rows = g.batch * g.m, vectors = (g.n + kVector - 1) / kVector;
  int across_log2 = 0;
  while ((1 << across_log2) < kThreads && (1 << across_log2) < vectors) ++across_log2;
  const int64_t across = int64_t{1} << across_log2, down_rows = kThreads / across * kRows;
  cudaLaunchAttribute attributes[2] = {};
  cudaLaunchConfig_t config = streaming::config_of({.ctas = (vectors + across - 1) / across,
                                                    .threads = kThreads,
                                                    .programmatic = streaming::can_follow(nullptr) != 0},
                                                   nullptr, attributes);
  config.stream = stream;
  config.gridDim.y = static_cast<unsigned>(std::min((rows + down_rows - 1) / down_rows, kMostRows));
  // An error stays for launched().
  (void)cudaLaunchKernelEx(&config, finish_kernel<T, kVector>, rows, g.n, g.activation, across_log2, sums,
                           bias, static_cast<T*>(c));
}

__device__ __forceinline__ int64_t first_element() {
  return static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
}
__device__ __forceinline__ int64_t stride() { return static_cast<int64_t>(gridDim.x) * blockDim.x; }
unsigned grid_for(int64_t elements) {
  constexpr int64_t kMost = 4096;
  return static_cast<unsigned>(std::clamp((elements + kThreads - 1) / kThreads, int64_t{1}, kMost));
}

template <class T>
__global__ void random_kernel(T* data, int64_t elements) {
  for (int64_t i = first_element(); i < elements; i += stride()) {
    uint64_t bits = static_cast<uint64_t>(i) + 0x9E3779B97F4A7C15u;  // the finaliser of splitmix64
    bits = (bits ^ bits >> 30) * 0xBF58476D1CE4E5B9u;
    bits = (bits ^ bits >> 27) * 0x94D049BB133111EBu;
    data[i] = narrow<T>(static_cast<float>(static_cast<int32_t>(bits >> 32)) * 0x1p-31F);
  }
}

/// What stands before the activation in a column: exact in every type, except that a bias has a bit which only f32 has.
__device__ float gauge_value(int64_t column, bool through_bias) {
  const int t = static_cast<int>(column % kGaugeColumns);
  if (t < 257) return static_cast<float>(t - 128) * 0.125F + (through_bias ? 0x1p-12F : 0.0F);
  constexpr float kRest[] = {NAN, INFINITY, -INFINITY, 0.0F, -0.0F, 40.0F, -40.0F};
  return kRest[t - 257];
}

template <class T>
__global__ void gauge_kernel(Gemm g, T* a, T* b, float* bias) {
  for (int64_t i = first_element(); i < g.m * g.k; i += stride())
    a[i] = narrow<T>(i % g.k == 0 && !g.has_bias ? 1.0F : 0.0F);
  for (int64_t i = first_element(); i < g.k * g.n; i += stride())
    b[i] = narrow<T>(i < g.n && !g.has_bias ? gauge_value(i, false) : 0.0F);
  for (int64_t i = first_element(); g.has_bias && i < g.n; i += stride()) bias[i] = gauge_value(i, true);
}

__device__ double exact_activation(double x, Activation activation) {
  if (activation == Activation::relu) return x <= 0 ? 0 : x;
  if (activation == Activation::none) return x;
  if (x == -INFINITY) return 0;
  return x / (1 + exp(-2 * 0.7978845608028654 * (x + 0.044715 * x * x * x)));
}

/// Half of what matmul may be off when the product's share of that is as small as it gets.
template <class T>
__global__ void gauge_check_kernel(Gemm g, const T* c, unsigned* wrong) {
  constexpr double kRoundoff = 0x1p-24, kSlope = 1.13;
  constexpr double kHalfUlp = std::is_same_v<T, __half>          ? 0x1p-11
                              : std::is_same_v<T, __nv_bfloat16> ? 0x1p-8
                                                                 : 32 * 0x1p-23;
  for (int64_t i = first_element(); i < g.m * g.n; i += stride()) {
    const double x = gauge_value(i % g.n, g.has_bias), truth = exact_activation(x, g.activation);
    const double got = widen(c[i]);
    const double share = g.has_bias ? 1 : static_cast<double>(g.k + 8);
    const double allowed = 0.5 * kSlope * share * kRoundoff * fabs(x) + kHalfUlp * fabs(truth) +
                           (std::is_same_v<T, __half> ? 0x1p-25 : 1e-12);
    const bool right = isnan(truth) ? isnan(got) : isinf(truth) ? got == truth : fabs(got - truth) <= allowed;
    if (!right) atomicAdd(wrong, 1u);
  }
}

/// Calls run(T*) with a null pointer of the element's type.
template <class Run>
void with_type(Element element, const Run& run) {
  if (element == Element::f16) return run(static_cast<__half*>(nullptr));
  if (element == Element::bf16) return run(static_cast<__nv_bfloat16*>(nullptr));
  run(static_cast<float*>(nullptr));
}

}  // namespace

int tile_for(const Gemm& g) {
  for (const int tile : kTiles) {
    const int64_t tiles = (g.m + tile - 1) / tile * ((g.n + tile - 1) / tile) * g.batch;
    const bool fits = std::min(g.m, g.n) > tile / 2;  // less would leave most of a tile unused
    if (fits && tiles >= device().sms) return tile;
  }
  return kTiles[2];
}

void enqueue_tiles(const Gemm& g, const GemmOperands& operands, int tile, cudaStream_t stream) {
  if (g.outputs() == 0) return;
  with_type(g.element,
            [&](auto* type) { tiles_of<std::remove_pointer_t<decltype(type)>>(g, operands, tile, stream); });
}

void enqueue_finish(const Gemm& g, const float* sums, const float* bias, void* c, cudaStream_t stream) {
  if (g.outputs() == 0) return;
  with_type(g.element, [&](auto* type) {
    using T = std::remove_pointer_t<decltype(type)>;
    const bool vectors = g.n % 4 == 0 && reinterpret_cast<uintptr_t>(sums) % 16 == 0 &&
                         reinterpret_cast<uintptr_t>(c) % (4 * sizeof(T)) == 0;
    if (vectors) return launch_finish<T, 4>(g, sums, bias, c, stream);
    launch_finish<T, 1>(g, sums, bias, c, stream);
  });
}

void enqueue_random(Element element, void* data, int64_t elements, cudaStream_t stream) {
  if (elements == 0) return;
  with_type(element, [&](auto* type) {
    random_kernel<<<grid_for(elements), kThreads, 0, stream>>>(static_cast<decltype(type)>(data), elements);
  });
}

void enqueue_gauge(const Gemm& g, void* a, void* b, float* bias, cudaStream_t stream) {
  with_type(g.element, [&](auto* type) {
    using Data = decltype(type);
    gauge_kernel<<<grid_for(std::max(g.m * g.k, g.k * g.n)), kThreads, 0, stream>>>(
        g, static_cast<Data>(a), static_cast<Data>(b), bias);
  });
}

void enqueue_gauge_check(const Gemm& g, const void* c, unsigned* wrong, cudaStream_t stream) {
  with_type(g.element, [&](auto* type) {
    using T = std::remove_pointer_t<decltype(type)>;
    gauge_check_kernel<<<grid_for(g.outputs()), kThreads, 0, stream>>>(g, static_cast<const T*>(c), wrong);
  });
}

}  // namespace fulcrum::backends::cuda
