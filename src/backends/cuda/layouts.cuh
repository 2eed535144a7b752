// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Every layout of an element-wise kernel as a variant of its own, so that a measurement can say which one "default"
// should take at which size.
#pragma once

#include "backends/cuda/map_bulk.cuh"

namespace fulcrum::backends::cuda::streaming {

/// The layouts of one function. `supports` is that of all of them; some ask for the device as well.
template <class Function, int (*kSupports)(const fulcrum_args*) = nullptr>
std::span<const fulcrum_kernel> layouts(int32_t level) {
  const auto make = [level](const char* variant, decltype(fulcrum_kernel::run) run,
                            decltype(fulcrum_kernel::supports) supports) {
    return fulcrum_kernel{.variant = variant, .level = level, .isa = isa, .supports = supports, .run = run};
  };
  static constexpr auto kFollows = [](const fulcrum_args* a) -> int {
    if constexpr (kSupports != nullptr) {
      if (!kSupports(a)) return 0;
    }
    return can_follow(a);
  };
  const auto in_ring = [&make](const char* variant, decltype(fulcrum_kernel::run) run) {
    fulcrum_kernel kernel = make(variant, run, kFollows);
    kernel.plan = make_bulk_plan;
    kernel.drop = drop_bulk_plan;
    return kernel;
  };
  static const fulcrum_kernel kernels[] = {
      make("default", run_map<Function, Layout::automatic>, kSupports),
      make("plain", run_map<Function, Layout::plain>, kSupports),
      make("tile1", run_map<Function, Layout::tile1>, kSupports),
      make("tile2", run_map<Function, Layout::tile2>, kSupports),
      make("tile4", run_map<Function, Layout::tile4>, kSupports),
      make("tile8", run_map<Function, Layout::tile8>, kSupports),
      make("stride", run_map<Function, Layout::stride>, kSupports),
      make("kept", run_map<Function, Layout::kept>, kSupports),
      make("ahead", run_map<Function, Layout::ahead>, kFollows),
      make("ahead1", run_map<Function, Layout::ahead1>, kFollows),
      make("ahead2", run_map<Function, Layout::ahead2>, kFollows),
      make("ahead4", run_map<Function, Layout::ahead4>, kFollows),
      in_ring("bulk", run_bulk<Function, false>),
      in_ring("bulk_ahead", run_bulk<Function, true>),
  };
  return kernels;
}

}  // namespace fulcrum::backends::cuda::streaming
