// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Layouts of an element-wise kernel as variants of their own, so that a measurement can say which one "default" should
// take at which size.
#pragma once

#include "backends/cuda/elementwise.cuh"

namespace fulcrum::backends::cuda::streaming {

/// The layouts of one function. `plain`, `once` and `read_once` are what "default" takes for long arrays but for one
/// thing: calls do not overlap; all data, or what is read, is marked as used once. tileN: N vectors a thread, which
/// wideN has in CTAs of 512 threads and huge1 in CTAs of 1024.
template <class Function, int (*kSupports)(const fulcrum_args*) = nullptr>
std::span<const fulcrum_kernel> layouts(int32_t level) {
  constexpr int kLong = Function::kInputs == 1 ? 2 : 4;
  const auto make = [level](const char* variant, decltype(fulcrum_kernel::run) run) {
    return fulcrum_kernel{.variant = variant, .level = level, .isa = isa, .supports = kSupports, .run = run};
  };
  static const fulcrum_kernel kernels[] = {
      make("default", run_map<Function, Layout{}>),
      make("plain", run_map<Function, Layout{.overlaps = false}>),
      make("once", run_map<Function, Layout{.items = kLong, .cache = Cache::once}>),
      make("read_once", run_map<Function, Layout{.items = kLong, .cache = Cache::read_once}>),
      make("tile1", run_map<Function, Layout{.items = 1}>),
      make("tile2", run_map<Function, Layout{.items = 2}>),
      make("tile4", run_map<Function, Layout{.items = 4}>),
      make("wide1", run_map<Function, Layout{.items = 1, .threads = 512}>),
      make("wide2", run_map<Function, Layout{.items = 2, .threads = 512}>),
      make("huge1", run_map<Function, Layout{.items = 1, .threads = 1024}>),
  };
  return kernels;
}

}  // namespace fulcrum::backends::cuda::streaming
