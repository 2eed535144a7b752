// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// clip on the device: two comparisons that let NaN pass.
#include "backends/cuda/elementwise.cuh"

namespace fulcrum::backends::cuda::kernels {

std::span<const fulcrum_kernel> clip() {
  static const fulcrum_kernel kernels[] = {streaming::map_kernel<streaming::Clip>(2)};
  return kernels;
}

}  // namespace fulcrum::backends::cuda::kernels
