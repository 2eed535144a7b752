// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// How attention falls into pieces, and where its rows lie.
#pragma once

#include <fulcrum/ops.h>

#include <cmath>

namespace fulcrum::ops {

inline constexpr std::int64_t kAttentionMostD = 256;
/// Piece (b * H + h) * blocks + c is the rows 32 c .. of head h in batch b, blocks = Sq / 32, rounded up.
inline constexpr std::int64_t kAttentionRows = 32;

/// The arguments of a call by name.
struct Attention {
  std::int64_t batches, heads, queries, keys, d;
  bool causal, heads_first;
  double scale;

  explicit Attention(const Args& args)
      : batches(args.dim[0]),
        heads(args.dim[1]),
        queries(args.dim[2]),
        keys(args.dim[3]),
        d(args.dim[4]),
        causal(args.scalar[0].i == 1),
        heads_first(args.scalar[2].i == 0),
        scale(args.scalar[1].f > 0 ? args.scalar[1].f : 1 / std::sqrt(static_cast<double>(args.dim[4]))) {}

  std::int64_t blocks() const { return (queries + kAttentionRows - 1) / kAttentionRows; }
  std::int64_t pieces() const { return batches * heads * blocks(); }
  /// Keys [0, visible(i)) are seen by query i: all, or those up to its own place counted from the end.
  std::int64_t visible(std::int64_t query) const { return causal ? query + 1 + keys - queries : keys; }
  /// Element 0 of row `s` of head `pair` = b * H + h, in a tensor with `length` rows a head.
  std::int64_t row(std::int64_t pair, std::int64_t length, std::int64_t s) const {
    return (heads_first ? pair * length + s : (pair / heads * length + s) * heads + pair % heads) * d;
  }
};

}  // namespace fulcrum::ops
