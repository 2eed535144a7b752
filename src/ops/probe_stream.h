// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// What the probes of memory bandwidth share. A call sweeps its arrays `passes` times; with threads, each thread
// makes all passes over its own contiguous slice, so that one fork and join is paid for all of them.
// Bytes are those that the kernel loads and stores: what a cache moves besides (the read of a line that a plain
// store is about to overwrite) is not counted.
#pragma once

#include <fulcrum/ops/probes.h>

#include "ops/support/elementwise.h"

namespace fulcrum::ops {

enum ProbeScalar { kProbePasses };

inline Status check_passes(const Args& args) {
  if (args.scalar[kProbePasses].i >= 1) return {};
  return Error{Code::invalid_argument, "passes of a probe must be at least 1", "for example passes=1"};
}

/// Work of `loads` loads and `stores` stores of an f32, and `kFlops` operations, an element and pass.
template <int kLoads, int kStores, int kFlops>
Work stream_work(const Args& args) {
  const double touched = static_cast<double>(args.dim[0]) * static_cast<double>(args.scalar[kProbePasses].i);
  return Work{.flops = kFlops * touched,
              .issue_slots = kFlops / 2.0 * touched,
              .read_bytes = 4 * kLoads * touched,
              .write_bytes = 4 * kStores * touched,
              .link_in_bytes = 4 * kLoads * static_cast<double>(args.dim[0]),
              .link_out_bytes = 4 * kStores * static_cast<double>(args.dim[0])};
}

inline std::int64_t probe_pieces(const Args& args, int) { return divide_up(args.dim[0], kProbePiece); }

}  // namespace fulcrum::ops
