// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// probe_triad on the device: two loads, one fma and one store an element.
#include "backends/cuda/probe.cuh"

namespace fulcrum::backends::cuda::kernels {

std::span<const fulcrum_kernel> probe_triad() { return streaming::probe_layouts<streaming::Triad>(); }

}  // namespace fulcrum::backends::cuda::kernels
