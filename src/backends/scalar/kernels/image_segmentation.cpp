// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// image_segmentation: the label of a pixel and of its neighbours, then their vote.
#include <fulcrum/ops/image_segmentation.h>

#include "backends/scalar/common.h"

namespace fulcrum::backends::scalar::kernels {
namespace {

enum Pointer { kX, kOut };
enum Dim { kH, kW };
enum Scalar { kT, kSmooth };

/// A label is three comparisons: those of the neighbours are found again for each pixel, and no map is kept.
void rows(const fulcrum_args& a, std::int64_t begin, std::int64_t end) {
  const std::int64_t h = a.dim[kH], w = a.dim[kW];
  const auto* x = a.in<float>(kX);
  auto* out = a.out<std::uint8_t>(kOut);
  const ops::SegmentThresholds thresholds(a.scalar[kT].f);
  const bool smooth = a.scalar[kSmooth].i == 0;
  const auto label = [&](std::int64_t row, std::int64_t column) {
    return thresholds.label(x[row * w + column]);
  };
  for (std::int64_t row = begin; row < end; ++row) {
    for (std::int64_t column = 0; column < w; ++column) {
      out[row * w + column] = smooth ? ops::segment_vote(row, column, h, w, label) : label(row, column);
    }
  }
}

fulcrum_status run(const fulcrum_args* a, void*, std::int64_t count) {
  for (std::int64_t call = 0; call < count; ++call) rows(*a, 0, a->dim[kH]);
  return done();
}

void partial(const fulcrum_args* a, std::int32_t, std::int64_t begin, std::int64_t end, void*) {
  rows(*a, begin * ops::kSegmentPieceRows, std::min(end * ops::kSegmentPieceRows, a->dim[kH]));
}

}  // namespace

std::span<const fulcrum_kernel> image_segmentation() {
  static const fulcrum_kernel kernels[] = {make_kernel(2, run, partial)};
  return kernels;
}

}  // namespace fulcrum::backends::scalar::kernels
