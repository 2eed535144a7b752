// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// dot: chunks in fp32, chunk sums in fp64, in the order the op fixes.
#include <fulcrum/ops/dot.h>

#include "backends/scalar/common.h"

namespace fulcrum::backends::scalar::kernels {
namespace {

enum Pointer { kA, kB, kOut };

double chunk(const fulcrum_args& a, std::int64_t piece) {
  const std::int64_t first = piece * ops::kDotChunk;
  return dot_product(a.in<float>(kA) + first, a.in<float>(kB) + first,
                     std::min(ops::kDotChunk, a.dim[0] - first));
}

fulcrum_status run(const fulcrum_args* a, void*, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) {
    double sum = 0;
    for (std::int64_t piece = 0; piece * ops::kDotChunk < a->dim[0]; ++piece) sum += chunk(*a, piece);
    *a->out<float>(kOut) = static_cast<float>(sum);
  }
  return done();
}

void partial(const fulcrum_args* a, std::int32_t, std::int64_t begin, std::int64_t end, void* scratch) {
  for (std::int64_t piece = begin; piece < end; ++piece)
    static_cast<double*>(scratch)[piece] = chunk(*a, piece);
}

}  // namespace

std::span<const fulcrum_kernel> dot() {
  static const fulcrum_kernel kernels[] = {make_kernel(1, run, partial)};
  return kernels;
}

}  // namespace fulcrum::backends::scalar::kernels
