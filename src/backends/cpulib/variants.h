// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// The variants of a library kernel: on all threads we may use ("openblas") and on one ("openblas_t1"). With one
// usable thread they are the same, and only the first is there.
#pragma once

#include <fulcrum/backends.h>

#include <algorithm>
#include <limits>
#include <vector>

#include "backends/cpulib/libraries.h"
#include "backends/table.h"

namespace fulcrum::backends::cpulib {

using Run = decltype(fulcrum_kernel::run);
using Supports = decltype(fulcrum_kernel::supports);

/// Sizes that a BLAS with 32-bit integers can take.
inline bool fits_int(std::initializer_list<std::int64_t> sizes) {
  return std::all_of(sizes.begin(), sizes.end(),
                     [](std::int64_t size) { return size <= std::numeric_limits<int>::max(); });
}

inline void add_openblas(std::vector<fulcrum_kernel>& kernels, Run all_threads, Run one_thread,
                         Supports supports) {
  if (!openblas().loaded) return;
  fulcrum_kernel kernel{.variant = "openblas",
                        .threads = usable_threads(),
                        .isa = openblas_core,
                        .detail = openblas_detail,
                        .supports = supports,
                        .run = all_threads};
  kernels.push_back(kernel);
  if (usable_threads() == 1) return;
  kernel.variant = "openblas_t1";
  kernel.threads = 1;
  kernel.run = one_thread;
  kernels.push_back(kernel);
}

inline void add_onednn(std::vector<fulcrum_kernel>& kernels, Run all_threads, Run one_thread,
                       Supports supports) {
  if (!onednn().loaded) return;
  fulcrum_kernel kernel{.variant = "onednn",
                        .threads = usable_threads(),
                        .isa = onednn_isa,
                        .detail = onednn_detail,
                        .supports = supports,
                        .run = all_threads};
  kernels.push_back(kernel);
  if (usable_threads() == 1) return;
  kernel.variant = "onednn_t1";
  kernel.threads = 1;
  kernel.run = one_thread;
  kernels.push_back(kernel);
}

}  // namespace fulcrum::backends::cpulib
