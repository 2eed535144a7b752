// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// elu on the device: with expm1f.
#include "backends/cuda/elementwise.cuh"

namespace fulcrum::backends::cuda::kernels {

std::span<const fulcrum_kernel> elu() {
  static const fulcrum_kernel kernels[] = {streaming::map_kernel<streaming::Elu>(1)};
  return kernels;
}

}  // namespace fulcrum::backends::cuda::kernels
