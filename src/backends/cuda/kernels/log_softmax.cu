// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// log_softmax on the device.
#include "backends/cuda/softmax_launch.cuh"

namespace fulcrum::backends::cuda::kernels {

std::span<const fulcrum_kernel> log_softmax() { return rows::all<true>(); }

}  // namespace fulcrum::backends::cuda::kernels
