// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// probe_copy on the device: one load and one store an element.
#include "backends/cuda/probe.cuh"

namespace fulcrum::backends::cuda::kernels {

std::span<const fulcrum_kernel> probe_copy() { return streaming::probe_layouts<streaming::Copy>(); }

}  // namespace fulcrum::backends::cuda::kernels
