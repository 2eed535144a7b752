// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Raising a flag in page-locked memory when everything before it on a stream is done, two ways.
#pragma once

#include "backends/cuda/runtime.h"

namespace fulcrum::backends::cuda::trips {

/// A kernel of one thread that writes 1 to `flag` (a pointer of the device).
fulcrum_status signal_by_kernel(cudaStream_t stream, std::uint32_t* flag);
/// A write by the stream itself, without a kernel. An error where the driver has none, or not while recording.
fulcrum_status signal_by_stream(cudaStream_t stream, std::uint32_t* flag);

}  // namespace fulcrum::backends::cuda::trips
