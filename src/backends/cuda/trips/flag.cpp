// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// The stream's own write. With default flags the driver puts a fence of system scope, over all earlier work of the
// stream, before it: the flag cannot overtake the results.
#include "backends/cuda/trips/flag.h"

namespace fulcrum::backends::cuda::trips {
namespace {

/// cuStreamWriteValue32 as of CUDA 12; asked for by name because the module links no driver.
using WriteValue = int (*)(cudaStream_t stream, unsigned long long address, std::uint32_t value,
                           unsigned int flags);

WriteValue find_write_value() {
  void* function = nullptr;
  cudaDriverEntryPointQueryResult found{};
  const cudaError_t error =
      cudaGetDriverEntryPointByVersion("cuStreamWriteValue32", &function, 12000, cudaEnableDefault, &found);
  if (error != cudaSuccess) cudaGetLastError();
  return error == cudaSuccess && found == cudaDriverEntryPointSuccess ? reinterpret_cast<WriteValue>(function)
                                                                      : nullptr;
}

}  // namespace

fulcrum_status signal_by_stream(cudaStream_t stream, std::uint32_t* flag) {
  static const WriteValue write_value = find_write_value();
  if (!write_value) return failed(FULCRUM_UNSUPPORTED, "the driver has no cuStreamWriteValue32");
  if (write_value(stream, reinterpret_cast<unsigned long long>(flag), 1, 0) != 0) {
    return failed(FULCRUM_UNSUPPORTED, "cuStreamWriteValue32 was refused");
  }
  return done();
}

}  // namespace fulcrum::backends::cuda::trips
