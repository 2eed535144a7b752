// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// See tensor_gemm.h.
#include "backends/cuda/tensor_gemm.h"

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <limits>

namespace fulcrum::backends::cuda {
namespace tensor {

template <class T>
fulcrum_status launch_tile(const Gemm&, const GemmOperands&, TensorTile, cudaStream_t);
extern template fulcrum_status launch_tile<float>(const Gemm&, const GemmOperands&, TensorTile, cudaStream_t);
extern template fulcrum_status launch_tile<__half>(const Gemm&, const GemmOperands&, TensorTile,
                                                   cudaStream_t);
extern template fulcrum_status launch_tile<__nv_bfloat16>(const Gemm&, const GemmOperands&, TensorTile,
                                                          cudaStream_t);

}  // namespace tensor

bool tensor_takes(const Gemm& g) {
  constexpr int64_t kMostEntries = 65535, kMost = std::numeric_limits<int32_t>::max();
  const int64_t chunk = 16 / static_cast<int64_t>(bytes_of(g.element));
  const int64_t tiles = (g.m + 31) / 32 * ((g.n + 31) / 32);
  return g.k > 0 && g.k < kMost / 2 && g.k % chunk == 0 && g.n % chunk == 0 && g.batch <= kMostEntries &&
         tiles <= kMost;
}

bool tensor_takes(const Gemm& g, const GemmOperands& operands) {
  const auto bits = reinterpret_cast<uintptr_t>(operands.a) | reinterpret_cast<uintptr_t>(operands.b) |
                    reinterpret_cast<uintptr_t>(operands.c);
  return bits % 16 == 0 && tensor_takes(g);
}

TensorTile tensor_tile_for(const Gemm& g) {
  struct Size {
    TensorTile tile;
    int64_t m, n;
  };
  constexpr Size kSizes[] = {
      {TensorTile::t128x128, 128, 128}, {TensorTile::t128x64, 128, 64}, {TensorTile::t64x64, 64, 64}};
  for (const Size& size : kSizes) {
    const int64_t tiles = (g.m + size.m - 1) / size.m * ((g.n + size.n - 1) / size.n) * g.batch;
    if (tiles * 10 >= int64_t{device().sms} * 9) return size.tile;
  }
  return TensorTile::t32x32;
}

fulcrum_status enqueue_tensor(const Gemm& g, const GemmOperands& operands, TensorTile tile,
                              cudaStream_t stream) {
  if (g.outputs() == 0) return done();
  if (g.element == Element::f16) return tensor::launch_tile<__half>(g, operands, tile, stream);
  if (g.element == Element::bf16) return tensor::launch_tile<__nv_bfloat16>(g, operands, tile, stream);
  return tensor::launch_tile<float>(g, operands, tile, stream);
}

}  // namespace fulcrum::backends::cuda
