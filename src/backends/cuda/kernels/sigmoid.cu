// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// sigmoid on the device: with expf, in the form that never overflows.
#include "backends/cuda/elementwise.cuh"

namespace fulcrum::backends::cuda::kernels {

std::span<const fulcrum_kernel> sigmoid() {
  static const fulcrum_kernel kernels[] = {streaming::map_kernel<streaming::Sigmoid>(1)};
  return kernels;
}

}  // namespace fulcrum::backends::cuda::kernels
