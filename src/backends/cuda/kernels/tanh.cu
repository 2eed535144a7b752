// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// tanh on the device: tanhf of the magnitude.
#include "backends/cuda/elementwise.cuh"

namespace fulcrum::backends::cuda::kernels {

std::span<const fulcrum_kernel> tanh() {
  static const fulcrum_kernel kernels[] = {streaming::map_kernel<streaming::Tanh>(1)};
  return kernels;
}

}  // namespace fulcrum::backends::cuda::kernels
