// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// The scalar backend: plain C++ loops, one element at a time, compiled with vectorisation off. It is the baseline
// that needs no trust, and the one that runs everywhere.
#include <fulcrum/backends.h>

#include "backends/table.h"

namespace fulcrum::backends::scalar {
namespace kernels {
#define FULCRUM_KERNEL_FILE(op) std::span<const fulcrum_kernel> op();
#include "generated/kernels_scalar.def"
#undef FULCRUM_KERNEL_FILE
}  // namespace kernels

namespace {

const fulcrum_kernel* table(std::int64_t* count) {
  static const KernelTable table({
#define FULCRUM_KERNEL_FILE(op) {#op, kernels::op},
#include "generated/kernels_scalar.def"
#undef FULCRUM_KERNEL_FILE
  });
  return table.entries(count);
}

}  // namespace

const fulcrum_backend* backend() {
  static const fulcrum_backend backend{.abi_version = FULCRUM_ABI_VERSION,
                                       .struct_bytes = sizeof(fulcrum_backend),
                                       .name = "scalar",
                                       .kind = "cpu",
                                       .kernels = table};
  return &backend;
}

}  // namespace fulcrum::backends::scalar
