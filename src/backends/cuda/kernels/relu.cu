// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// relu on the device: a comparison that lets NaN pass. Stands for all cheap functions of one input, so its layouts
// are variants that can be measured against each other.
#include "backends/cuda/layouts.cuh"

namespace fulcrum::backends::cuda::kernels {

std::span<const fulcrum_kernel> relu() { return streaming::layouts<streaming::Relu>(2); }

}  // namespace fulcrum::backends::cuda::kernels
