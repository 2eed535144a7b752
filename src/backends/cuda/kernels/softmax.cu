// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// softmax on the device.
#include "backends/cuda/softmax_launch.cuh"

namespace fulcrum::backends::cuda::kernels {

std::span<const fulcrum_kernel> softmax() { return rows::all<false>(); }

}  // namespace fulcrum::backends::cuda::kernels
