// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// softmax: per chunk the maximum and the sum of exponentials, then a second pass that writes.
#include <fulcrum/ops/softmax.h>

#include <limits>

#include "backends/scalar/common.h"

namespace fulcrum::backends::scalar::kernels {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

enum Pointer { kX, kOut };
enum Dim { kRows, kN };

ops::SoftmaxPart summarize(const float* x, std::int64_t n) {
  ops::SoftmaxPart part{0, -kInfinity};
  for (std::int64_t i = 0; i < n; ++i) part.max = x[i] > part.max ? x[i] : part.max;
  // Nothing above -Inf: the sum is 0 unless a NaN, which no comparison sees, is among them.
  const float shift = part.max == -kInfinity ? 0 : part.max;
  for (std::int64_t i = 0; i < n; ++i) part.sum += std::exp(x[i] - shift);
  return part;
}

void write(const float* x, float* out, std::int64_t n, const ops::SoftmaxPart& row) {
  const auto sum = static_cast<float>(row.sum);
  for (std::int64_t i = 0; i < n; ++i) out[i] = std::exp(x[i] - row.max) / sum;
}

/// Where a piece lies.
struct Chunk {
  std::int64_t first, length;
};
Chunk chunk_of(const fulcrum_args& a, std::int64_t piece) {
  const std::int64_t n = a.dim[kN];
  const std::int64_t chunks = (n + ops::kSoftmaxChunk - 1) / ops::kSoftmaxChunk;
  const std::int64_t start = piece % chunks * ops::kSoftmaxChunk;
  return Chunk{piece / chunks * n + start, std::min(ops::kSoftmaxChunk, n - start)};
}

void one_row(const float* x, float* out, std::int64_t n) {
  ops::SoftmaxPart row;
  for (std::int64_t first = 0; first < n; first += ops::kSoftmaxChunk) {
    const ops::SoftmaxPart part = summarize(x + first, std::min(ops::kSoftmaxChunk, n - first));
    row = first == 0 ? part : ops::merge(row, part);
  }
  write(x, out, n, row);
}

fulcrum_status run(const fulcrum_args* a, void*, std::int64_t count) {
  const std::int64_t n = a->dim[kN];
  for (std::int64_t i = 0; i < count; ++i) {
    for (std::int64_t r = 0; r < a->dim[kRows]; ++r)
      one_row(a->in<float>(kX) + r * n, a->out<float>(kOut) + r * n, n);
  }
  return done();
}

void partial(const fulcrum_args* a, std::int32_t phase, std::int64_t begin, std::int64_t end, void* scratch) {
  auto* parts = static_cast<ops::SoftmaxPart*>(scratch);
  for (std::int64_t piece = begin; piece < end; ++piece) {
    const Chunk chunk = chunk_of(*a, piece);
    const float* x = a->in<float>(kX) + chunk.first;
    if (phase == 0) {
      parts[piece] = summarize(x, chunk.length);
    } else {
      write(x, a->out<float>(kOut) + chunk.first, chunk.length, parts[piece]);
    }
  }
}

}  // namespace

std::span<const fulcrum_kernel> softmax() {
  static const fulcrum_kernel kernels[] = {make_kernel(1, run, partial)};
  return kernels;
}

}  // namespace fulcrum::backends::scalar::kernels
