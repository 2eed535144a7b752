// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Layouts of an element-wise kernel as variants of their own, so that a measurement can say which one "default" should
// take at which size.
#pragma once

#include "backends/cuda/elementwise.cuh"

namespace fulcrum::backends::cuda::streaming {

/// The layouts of one function. "default" has one vector a thread, tileN has N; the calls of `plain` do not overlap.
template <class Function, int (*kSupports)(const fulcrum_args*) = nullptr>
std::span<const fulcrum_kernel> layouts(int32_t level) {
  const auto make = [level](const char* variant, decltype(fulcrum_kernel::run) run) {
    return fulcrum_kernel{.variant = variant, .level = level, .isa = isa, .supports = kSupports, .run = run};
  };
  static const fulcrum_kernel kernels[] = {
      make("default", run_map<Function, Layout{}>),
      make("plain", run_map<Function, Layout{.overlaps = false}>),
      make("tile2", run_map<Function, Layout{.items = 2}>),
      make("tile4", run_map<Function, Layout{.items = 4}>),
  };
  return kernels;
}

}  // namespace fulcrum::backends::cuda::streaming
