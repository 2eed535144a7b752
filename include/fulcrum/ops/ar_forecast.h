// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// How ar_forecast falls into pieces.
#pragma once

#include <fulcrum/ops.h>

namespace fulcrum::ops {

/// Piece i is series ar_series * i .. : 64 fill the vectors that hide the latency of a chain of fmas, and where chains are
/// long enough to go to another thread, those of one vector do. (Dims are S, H, p, T.)
constexpr std::int64_t ar_series(const Args& args) {
  constexpr std::int64_t kLongChain = 4096;  // fmas: a few microseconds
  return args.dim[2] * args.dim[3] >= kLongChain ? 16 : 64;
}
constexpr std::int64_t ar_pieces(const Args& args) {
  return (args.dim[0] + ar_series(args) - 1) / ar_series(args);
}
inline constexpr std::int64_t kArLargestOrder = 1024;

}  // namespace fulcrum::ops
