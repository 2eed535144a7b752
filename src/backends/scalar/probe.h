// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// What the scalar bandwidth probes share: all passes over a run of pieces, then the next call.
#pragma once

#include <fulcrum/ops/probes.h>

#include "backends/scalar/common.h"

namespace fulcrum::backends::scalar {

/// Keeps the compiler from making a copy loop one memcpy, and many passes one.
inline void end_of_pass() { __asm__ volatile("" ::: "memory"); }

/// All passes over the elements [begin, end).
using Sweep = void (*)(const fulcrum_args&, std::int64_t begin, std::int64_t end);

template <Sweep kSweep>
fulcrum_kernel sweep_kernel() {
  return make_kernel(
      0,
      [](const fulcrum_args* a, void*, std::int64_t count) {
        for (std::int64_t call = 0; call < count; ++call) kSweep(*a, 0, a->dim[0]);
        return done();
      },
      [](const fulcrum_args* a, std::int32_t, std::int64_t begin, std::int64_t end, void*) {
        kSweep(*a, begin * ops::kProbePiece, std::min(end * ops::kProbePiece, a->dim[0]));
      });
}

}  // namespace fulcrum::backends::scalar
