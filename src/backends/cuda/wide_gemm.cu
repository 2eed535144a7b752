// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// See wide_gemm.h. A slab of kDepth terms of A, transposed, and of B lies in shared memory twice: one is used while the
// next comes through registers. A warp's lanes stand eight down and four along, each with vectors of four.
#include "backends/cuda/wide_gemm.h"

#include "backends/cuda/gemm_epilogue.cuh"
#include "backends/cuda/streaming.cuh"
#include "backends/cuda/tensor_layout.h"

namespace fulcrum::backends::cuda {
namespace {

constexpr int kDepth = 16;

template <int kM, int kN, int kAlong>  // kAlong: vectors of four columns of a thread; down it has two of rows
struct Wide {
  static constexpr int kWarpM = 64, kWarpN = 16 * kAlong, kWarpsAlong = kN / kWarpN;
  static constexpr int kThreads = kM / kWarpM * kWarpsAlong * 32;
  static constexpr int kLeftCopies = kM * (kDepth / 4) / kThreads;
  static constexpr int kRightCopies = kDepth * (kN / 4) / kThreads;
  static_assert(kLeftCopies * kThreads == kM * (kDepth / 4) && kThreads % 128 == 0 &&
                kRightCopies * kThreads == kDepth * (kN / 4) && kThreads % (kN / 4) == 0);
};

/// Where a row stands among those of a term: the four chunks of terms that a warp writes at once meet other banks.
__device__ __forceinline__ int swizzled(int row, int term) { return row ^ term / 4 * 8; }

__device__ __forceinline__ void load_four(const float* from, float* into) {
  const float4 v = *reinterpret_cast<const float4*>(from);
  into[0] = v.x;
  into[1] = v.y;
  into[2] = v.z;
  into[3] = v.w;
}

template <int kM, int kN, int kAlong>
__global__ void __launch_bounds__((Wide<kM, kN, kAlong>::kThreads))
    wide_kernel(Gemm g, const float* a_all, const float* b_all, const float* bias, float* c_all) {
  using W = Wide<kM, kN, kAlong>;
  __shared__ __align__(16) float left[2][kDepth][kM];
  __shared__ __align__(16) float right[2][kDepth][kN];
  const auto place = tensor::place_of(blockIdx.x, static_cast<uint32_t>((g.m + kM - 1) / kM),
                                      static_cast<uint32_t>((g.n + kN - 1) / kN));
  const int64_t row0 = static_cast<int64_t>(place.row) * kM,
                column0 = static_cast<int64_t>(place.column) * kN;
  const int thread = static_cast<int>(threadIdx.x), warp = thread / 32, lane = thread % 32;
  // A thread's copies: four terms of rows of A, and four columns of B, both in rows that lie a step apart.
  constexpr int kLeftStep = W::kThreads / 4, kRightStep = W::kThreads / (kN / 4);
  const int a_row = thread / 4, a_term = thread % 4 * 4;
  const int b_term = thread / (kN / 4), b_column = thread % (kN / 4) * 4;
  const int a_rows = static_cast<int>(g.m - row0 < kM ? g.m - row0 : kM) - a_row;  // left from the first on
  const bool b_there = column0 + b_column < g.n;
  const float* from_a = a_all + blockIdx.y * g.m * g.k + (row0 + a_row) * g.k + a_term;
  const float* from_b = b_all + blockIdx.y * g.k * g.n + b_term * g.n + column0 + b_column;
  const int64_t a_stride = kLeftStep * g.k, b_stride = kRightStep * g.n;
  int terms = static_cast<int>(g.k);  // from the slab on that is fetched next
  float4 a[W::kLeftCopies], b[W::kRightCopies];
  const auto fetch = [&] {
    constexpr float4 kNothing = {0, 0, 0, 0};
#pragma unroll
    for (int i = 0; i < W::kLeftCopies; ++i) {
      const bool there = a_term < terms && i * kLeftStep < a_rows;
      a[i] = there ? *reinterpret_cast<const float4*>(from_a + i * a_stride) : kNothing;
    }
#pragma unroll
    for (int i = 0; i < W::kRightCopies; ++i) {
      const bool there = b_there && b_term + i * kRightStep < terms;
      b[i] = there ? *reinterpret_cast<const float4*>(from_b) : kNothing;
      from_b += b_stride;
    }
    from_a += kDepth;
    terms -= kDepth;
  };
  const auto put = [&](int stage) {
#pragma unroll
    for (int i = 0; i < W::kLeftCopies; ++i) {
      const float chunk[4] = {a[i].x, a[i].y, a[i].z, a[i].w};
#pragma unroll
      for (int t = 0; t < 4; ++t) left[stage][a_term + t][swizzled(a_row, a_term) + i * kLeftStep] = chunk[t];
    }
#pragma unroll
    for (int i = 0; i < W::kRightCopies; ++i)
      *reinterpret_cast<float4*>(&right[stage][b_term + i * kRightStep][b_column]) = b[i];
  };

  const int row = warp / W::kWarpsAlong * W::kWarpM + lane / 4 * 4;
  const int column = warp % W::kWarpsAlong * W::kWarpN + lane % 4 * 4;
  float sum[8][kAlong * 4] = {};
  float down[2][8], along[2][kAlong * 4];
  const auto load = [&](int stage, int term, int slot) {
    load_four(&left[stage][term][swizzled(row, term)], down[slot]);
    load_four(&left[stage][term][swizzled(row, term) + 32], down[slot] + 4);
#pragma unroll
    for (int j = 0; j < kAlong; ++j) load_four(&right[stage][term][column + j * 16], along[slot] + j * 4);
  };
  streaming::follow();
  const int slabs = (terms + kDepth - 1) / kDepth;
  fetch();
  put(0);
  if (slabs > 1) fetch();
  __syncthreads();
  for (int slab = 0; slab < slabs; ++slab) {
    const int stage = slab & 1;
    if (slab + 1 < slabs) put(stage ^ 1);
    if (slab + 2 < slabs) fetch();
    load(stage, 0, 0);
#pragma unroll
    for (int term = 0; term < kDepth; ++term) {
      if (term + 1 < kDepth) load(stage, term + 1, (term + 1) & 1);
#pragma unroll
      for (int i = 0; i < 8; ++i) {
#pragma unroll
        for (int j = 0; j < kAlong * 4; ++j)
          sum[i][j] = __fmaf_rn(down[term & 1][i], along[term & 1][j], sum[i][j]);
      }
    }
    __syncthreads();
  }

  float* c = c_all + blockIdx.y * g.m * g.n;
#pragma unroll
  for (int j = 0; j < kAlong; ++j) {
    const int64_t at = column0 + column + j * 16;
    if (at >= g.n) continue;  // n is a multiple of four
    float added[4] = {};
    for (int v = 0; bias && v < 4; ++v) added[v] = bias[at + v];
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      const int64_t to = row0 + row + i / 4 * 32 + i % 4;
      if (to >= g.m) continue;
      float value[4];
#pragma unroll
      for (int v = 0; v < 4; ++v)
        value[v] = finished(bias ? sum[i][j * 4 + v] + added[v] : sum[i][j * 4 + v], g.activation);
      store_four(c + to * g.n + at, value);
    }
  }
}

template <int kM, int kN, int kAlong>
void launch(const Gemm& g, const GemmOperands& operands, cudaStream_t stream) {
  cudaLaunchAttribute attributes[2] = {};
  cudaLaunchConfig_t config = streaming::config_of({.ctas = (g.m + kM - 1) / kM * ((g.n + kN - 1) / kN),
                                                    .threads = Wide<kM, kN, kAlong>::kThreads,
                                                    .programmatic = streaming::can_follow(nullptr) != 0},
                                                   nullptr, attributes);
  config.stream = stream;
  config.gridDim.y = static_cast<unsigned>(g.batch);
  (void)cudaLaunchKernelEx(&config, wide_kernel<kM, kN, kAlong>, g, static_cast<const float*>(operands.a),
                           static_cast<const float*>(operands.b), operands.bias,
                           static_cast<float*>(operands.c));
}

}  // namespace

void enqueue_wide(const Gemm& g, const GemmOperands& operands, WideTile tile, cudaStream_t stream) {
  if (g.outputs() == 0) return;
  if (tile == WideTile::t128x64_by_8x8) return launch<128, 64, 2>(g, operands, stream);
  if (tile == WideTile::t128x64_by_8x4) return launch<128, 64, 1>(g, operands, stream);
  launch<128, 128, 2>(g, operands, stream);
}

}  // namespace fulcrum::backends::cuda
