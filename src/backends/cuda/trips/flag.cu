// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// The flag must not overtake the results. Results were written by earlier kernels of the same stream, so they happen
// before this kernel begins; the fence of system scope is cumulative: it orders what this thread could see, the results
// included, before the store below for every observer, the host too. The host then reads the flag with acquire.
#include "backends/cuda/trips/flag.h"

namespace fulcrum::backends::cuda::trips {
namespace {

__global__ void raise_flag(volatile std::uint32_t* flag) {
  __threadfence_system();
  *flag = 1;
}

}  // namespace

fulcrum_status signal_by_kernel(cudaStream_t stream, std::uint32_t* flag) {
  raise_flag<<<1, 1, 0, stream>>>(flag);
  return launched("signalling the end of a trip");
}

}  // namespace fulcrum::backends::cuda::trips
