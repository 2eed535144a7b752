// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// What the scalar softmax and log_softmax share: per chunk the maximum and the sum of exponentials, then a second pass
// that writes.
#pragma once

#include <fulcrum/ops/softmax.h>

#include <limits>

#include "backends/scalar/common.h"

namespace fulcrum::backends::scalar {

inline ops::SoftmaxPart summarize(const float* x, std::int64_t n) {
  constexpr float kNone = -std::numeric_limits<float>::infinity();
  ops::SoftmaxPart part{0, kNone};
  for (std::int64_t i = 0; i < n; ++i) part.max = x[i] > part.max ? x[i] : part.max;
  // Nothing above -Inf: the sum is 0 unless a NaN, which no comparison sees, is among them.
  const float shift = part.max == kNone ? 0 : part.max;
  for (std::int64_t i = 0; i < n; ++i) part.sum += std::exp(x[i] - shift);
  return part;
}

/// Writes n outputs of a row whose sum and maximum are known.
using Write = void (*)(const float* x, float* out, std::int64_t n, const ops::SoftmaxPart& row);

template <Write kWrite>
fulcrum_status run_rows(const fulcrum_args* a, void*, std::int64_t count) {
  const std::int64_t n = a->dim[1];
  for (std::int64_t i = 0; i < count; ++i) {
    for (std::int64_t r = 0; r < a->dim[0]; ++r) {
      const float* x = a->in<float>(0) + r * n;
      ops::SoftmaxPart row;
      for (std::int64_t first = 0; first < n; first += ops::kSoftmaxChunk) {
        const ops::SoftmaxPart part = summarize(x + first, std::min(ops::kSoftmaxChunk, n - first));
        row = first == 0 ? part : ops::merge(row, part);
      }
      kWrite(x, a->out<float>(1) + r * n, n, row);
    }
  }
  return done();
}

template <Write kWrite>
void partial_rows(const fulcrum_args* a, std::int32_t phase, std::int64_t begin, std::int64_t end,
                  void* scratch) {
  auto* parts = static_cast<ops::SoftmaxPart*>(scratch);
  const bool whole = ops::softmax_chunks(a->dim[1]) == 1;
  for (std::int64_t piece = begin; piece < end; ++piece) {
    const auto [first, n] = ops::softmax_piece(piece, a->dim[1]);
    const float* x = a->in<float>(0) + first;
    if (whole) {
      kWrite(x, a->out<float>(1) + first, n, summarize(x, n));
    } else if (phase == 0) {
      parts[piece] = summarize(x, n);
    } else {
      kWrite(x, a->out<float>(1) + first, n, parts[piece]);
    }
  }
}

}  // namespace fulcrum::backends::scalar
