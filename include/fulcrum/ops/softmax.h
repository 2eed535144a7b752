// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// How softmax and log_softmax fall into pieces.
#pragma once

#include <fulcrum/ops.h>

namespace fulcrum::ops {

/// Piece row * chunks + c is chunk c of a row. Phase 0 stores its SoftmaxPart in scratch[piece]; combine() folds the
/// parts of a row with merge() in index order and writes the result over each of them; phase 1 writes the chunk from
/// scratch[piece].
inline constexpr std::int64_t kSoftmaxChunk = 8192;
/// max and sum of exp(x - max). A chunk of -Inf alone: {-Inf, 0}. A NaN or +Inf in the chunk: sum is NaN.
struct SoftmaxPart {
  double sum = 0;
  float max = 0;
};
SoftmaxPart merge(const SoftmaxPart& left, const SoftmaxPart& right);

}  // namespace fulcrum::ops
