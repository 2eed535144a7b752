// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// How ar_forecast falls into pieces.
#pragma once

#include <fulcrum/ops.h>

namespace fulcrum::ops {

/// Piece i is series ar_series * i .. : 64 fill the vectors that hide the latency of a chain of fmas. Chains that are long
/// enough to go to another thread go there with those of one vector; the longer the order, the more series are faster one
/// by one, so that a piece needs fewer. (Dims are S, H, p, T.)
constexpr std::int64_t ar_series(const Args& args) {
  constexpr std::int64_t kLongChain = 4096;  // fmas: a few microseconds
  const std::int64_t order = args.dim[2];
  if (order * args.dim[3] < kLongChain) return 64;
  return order >= 128 ? 4 : order >= 64 ? 8 : 16;
}
constexpr std::int64_t ar_pieces(const Args& args) {
  return (args.dim[0] + ar_series(args) - 1) / ar_series(args);
}
inline constexpr std::int64_t kArLargestOrder = 1024;

}  // namespace fulcrum::ops
