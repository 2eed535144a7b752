// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// elu on the device.
#include "backends/cuda/elementwise.cuh"
#include "backends/cuda/elu.h"

namespace fulcrum::backends::cuda::kernels {

std::span<const fulcrum_kernel> elu() {
  static const fulcrum_kernel kernels[] = {streaming::map_kernel<streaming::FastElu>(1)};
  return kernels;
}

}  // namespace fulcrum::backends::cuda::kernels
