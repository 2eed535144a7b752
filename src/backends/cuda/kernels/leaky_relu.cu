// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// leaky_relu on the device: a comparison that lets NaN pass, and one product.
#include "backends/cuda/elementwise.cuh"

namespace fulcrum::backends::cuda::kernels {

std::span<const fulcrum_kernel> leaky_relu() {
  static const fulcrum_kernel kernels[] = {streaming::map_kernel<streaming::LeakyRelu>(2)};
  return kernels;
}

}  // namespace fulcrum::backends::cuda::kernels
