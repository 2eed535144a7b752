// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// See hnsw_half.h.
#include "backends/cuda/hnsw_half.h"

#include <cuda_fp16.h>

#include "backends/cuda/hnsw_half.cuh"

namespace fulcrum::backends::cuda::hnsw {
namespace {

using Kernel = void (*)(const Vectors, const Halves, const HalfSearch);

constexpr int kFew = 1, kSome = 4;  // queries of a CTA
constexpr int kHalfSharedBytes = 64 << 10;

template <bool kSquared>
Kernel kernel_of(const Vectors& v, int queries) {
  const bool narrow = v.stride <= 128;  // 16 lanes read it at once
  if (queries == kFew) return narrow ? hnsw_half<kSquared, 8, kFew, 16> : hnsw_half<kSquared, 8, kFew, 32>;
  return narrow ? hnsw_half<kSquared, 4, kSome, 16> : hnsw_half<kSquared, 4, kSome, 32>;
}
Kernel kernel_of(const Vectors& v, int queries) {
  return v.squared ? kernel_of<true>(v, queries) : kernel_of<false>(v, queries);
}

}  // namespace

fulcrum_status enqueue_halves(const Vectors& v, void* rows, std::uint32_t* extremes, cudaStream_t stream) {
  constexpr int kThreads = 256;
  const std::int64_t ctas = std::min<std::int64_t>(streaming::divide_up(v.count, kThreads / kWarp), 1 << 16);
  make_halves<<<static_cast<unsigned>(ctas), kThreads, 0, stream>>>(v, static_cast<__half*>(rows), extremes);
  return launched("copies in half precision");
}

HalfShape half_shape(const Vectors& v, std::int64_t queries) {
  const int together = queries == 1 || kSome * v.stride * 4 > kHalfSharedBytes ? kFew : kSome;
  const int rows = (together == kFew ? 8 : 4) * (v.stride <= 128 ? 2 : 1);
  return HalfShape{together, rows * kExactWarps};
}

fulcrum_status allow_half(const Vectors& v, const HalfShape& shape, int* ctas_per_sm) {
  const Kernel kernel = kernel_of(v, shape.queries);
  FULCRUM_CUDA(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kHalfSharedBytes));
  FULCRUM_CUDA(cudaOccupancyMaxActiveBlocksPerMultiprocessor(
      ctas_per_sm, kernel, kExactThreads, static_cast<std::size_t>(shape.queries * v.stride * 4)));
  return done();
}

fulcrum_status enqueue_half(const Vectors& v, const Halves& halves, const HalfSearch& search,
                            const HalfShape& shape, void* stream) {
  const streaming::Launch launch{streaming::divide_up(search.count, shape.queries) * search.splits,
                                 kExactThreads, static_cast<bool>(streaming::can_follow(nullptr)), 1,
                                 static_cast<std::size_t>(shape.queries * v.stride * 4)};
  return streaming::launch(kernel_of(v, shape.queries), launch, stream, 1, v, halves, search);
}

}  // namespace fulcrum::backends::cuda::hnsw
