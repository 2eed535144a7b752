// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// conv2d: one output at a time, its taps in row-major order.
#include "backends/scalar/conv2d_rows.h"

#include "backends/scalar/common.h"

namespace fulcrum::backends::scalar::kernels {
namespace {

enum Pointer { kX, kK, kY };

/// Output rows [begin, end), counted over all images.
void rows(const fulcrum_args& a, std::int64_t begin, std::int64_t end) {
  const ops::Conv2d g = ops::conv2d_geometry(a);
  while (begin < end) {
    const std::int64_t image = begin / g.ho, first = begin % g.ho;
    const std::int64_t last = std::min(g.ho, first + end - begin);
    conv2d_rows(g, a.in<float>(kX) + image * g.h * g.w, a.in<float>(kK), first, last,
                a.out<float>(kY) + begin * g.wo);
    begin += last - first;
  }
}

fulcrum_status run(const fulcrum_args* a, void*, std::int64_t count) {
  for (std::int64_t call = 0; call < count; ++call) rows(*a, 0, a->dim[0] * ops::conv2d_geometry(*a).ho);
  return done();
}

void partial(const fulcrum_args* a, std::int32_t, std::int64_t begin, std::int64_t end, void*) {
  const std::int64_t all = a->dim[0] * ops::conv2d_geometry(*a).ho;
  rows(*a, begin * ops::kConv2dPieceRows, std::min(end * ops::kConv2dPieceRows, all));
}

}  // namespace

std::span<const fulcrum_kernel> conv2d() {
  static const fulcrum_kernel kernels[] = {make_kernel(2, run, partial)};
  return kernels;
}

}  // namespace fulcrum::backends::scalar::kernels
