// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// The table entries of a bandwidth probe that stores: `default`, and `stream` with non-temporal stores. A run of
// pieces is swept `passes` times before the next call, so that a thread stays on its slice.
#pragma once

#include <fulcrum/ops/probes.h>

#include <algorithm>
#include <span>

#include "backends/simd/isa.h"
#include "backends/table.h"

namespace fulcrum::backends::simd {

/// All passes over the elements [begin, end).
using Sweep = void (*)(const fulcrum_args&, std::int64_t begin, std::int64_t end, bool stream);

template <Sweep kSweep, bool kStream>
fulcrum_kernel sweep_kernel(const char* variant) {
  return fulcrum_kernel{
      .variant = variant,
      .isa = isa_name,
      .run =
          [](const fulcrum_args* a, void*, std::int64_t count) {
            for (std::int64_t call = 0; call < count; ++call) kSweep(*a, 0, a->dim[0], kStream);
            return done();
          },
      .partial =
          [](const fulcrum_args* a, std::int32_t, std::int64_t begin, std::int64_t end, void*) {
            kSweep(*a, begin * ops::kProbePiece, std::min(end * ops::kProbePiece, a->dim[0]), kStream);
          }};
}

template <Sweep kSweep>
std::span<const fulcrum_kernel> sweep_kernels() {
  static const fulcrum_kernel kernels[] = {sweep_kernel<kSweep, false>("default"),
                                           sweep_kernel<kSweep, true>("stream")};
  return kernels;
}

}  // namespace fulcrum::backends::simd
