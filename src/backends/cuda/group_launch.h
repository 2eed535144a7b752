// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// The host's side of the products of group_gemm.h: which plans there are, and a launch of one.
#pragma once

#include "backends/cuda/group_gemm.h"
#include "backends/cuda/group_ring.cuh"
#include "backends/cuda/streaming.cuh"
#include "backends/cuda/tensor_map.h"

namespace fulcrum::backends::cuda::group {

template <class P, class Kernel, class Output>
fulcrum_status launch_group(Kernel kernel, MapType type, const Gemm& g, const GemmOperands& operands,
                            Output* c, cudaStream_t stream) {
  static const cudaError_t allowed =
      cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, P::kBytes);
  FULCRUM_CUDA(allowed);
  const int depth = kTile / static_cast<int>(bytes_of(g.element));
  CUtensorMap left, right;
  FULCRUM_STATUS(make_tensor_map(type, {operands.a, g.k, g.m, g.batch}, kTile / P::kAcross, &left));
  FULCRUM_STATUS(make_tensor_map(type, {operands.b, g.n, g.k, g.batch}, depth / P::kDown, &right));
  const auto clusters = [](int64_t extent, int tiles) { return streaming::divide_up(extent, kTile * tiles); };
  cudaLaunchAttribute attributes[2] = {};
  cudaLaunchConfig_t config =
      streaming::config_of({.ctas = clusters(g.m, P::kDown) * clusters(g.n, P::kAcross) * P::kCtas,
                            .threads = P::kThreads,
                            .programmatic = true,
                            .cluster = P::kCtas,
                            .shared_bytes = P::kBytes},
                           nullptr, attributes);
  config.stream = stream;
  config.gridDim.y = static_cast<unsigned>(g.batch);
  FULCRUM_CUDA(cudaLaunchKernelEx(&config, kernel, g, left, right, operands.bias, c));
  return done();
}

/// What a product may be made by.
template <class... Some>
struct Plans {
  /// launcher.with<P>(...) for the plan of that number.
  template <class Launcher>
  static fulcrum_status run(int plan, const Launcher& launcher, const Gemm& g, const GemmOperands& operands,
                            cudaStream_t stream) {
    fulcrum_status status = {FULCRUM_INVALID_ARGUMENT, "a product has no such plan"};
    int number = 0;
    const auto is_it = [&] { return number++ == plan; };
    (void)((is_it() && (status = launcher.template with<Some>(g, operands, stream), true)) || ...);
    return status;
  }
};

}  // namespace fulcrum::backends::cuda::group
