// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// How softmax and log_softmax fall into pieces.
#pragma once

#include <fulcrum/ops.h>

namespace fulcrum::ops {

/// Piece row * chunks + c is chunk c of a row. Where a row is one chunk, phase 0 does all of it and there is no other.
/// Else phase 0 stores the SoftmaxPart in scratch[piece], combine() is merge_row() of each row, and phase 1 writes the
/// chunk from scratch[piece]. What phase 0 leaves in the output is up to the kernel.
inline constexpr std::int64_t kSoftmaxChunk = 8192;
/// The sum of exp(x - max). `max` need not be the maximum: any reference that the exponentials do not overflow at
/// will do, the same for every run. A chunk of -Inf alone: {0, -Inf}. A NaN or +Inf in the chunk: sum is NaN.
struct SoftmaxPart {
  double sum = 0;
  float max = 0;
  float chunk_max =
      0;  // of the chunk itself, for kernels that keep something relative to it between the phases
};
SoftmaxPart merge(const SoftmaxPart& left, const SoftmaxPart& right);
/// Folds the parts of a row in index order and writes sum and max of the row into each of them.
void merge_row(SoftmaxPart* parts, std::int64_t chunks);

inline std::int64_t softmax_chunks(std::int64_t n) { return (n + kSoftmaxChunk - 1) / kSoftmaxChunk; }

/// Where a piece lies among all elements.
struct SoftmaxPiece {
  std::int64_t first, length;
};
inline SoftmaxPiece softmax_piece(std::int64_t piece, std::int64_t n) {
  const std::int64_t chunks = softmax_chunks(n);
  const std::int64_t start = piece % chunks * kSoftmaxChunk;
  return SoftmaxPiece{piece / chunks * n + start, n - start < kSoftmaxChunk ? n - start : kSoftmaxChunk};
}

}  // namespace fulcrum::ops
