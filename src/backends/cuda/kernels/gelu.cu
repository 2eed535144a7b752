// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// gelu on the device: the tanh form through a sigmoid, with expf. Stands for the functions that compute most, so its
// layouts are variants that can be measured against each other.
#include "backends/cuda/layouts.cuh"

namespace fulcrum::backends::cuda::kernels {

std::span<const fulcrum_kernel> gelu() { return streaming::layouts<streaming::Gelu>(1); }

}  // namespace fulcrum::backends::cuda::kernels
