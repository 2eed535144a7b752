// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// image_segmentation: three rows of labels are kept; each new one lets the row above it vote.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/simd/kernels/image_segmentation.cpp"
#include <fulcrum/ops/image_segmentation.h>
#include <hwy/foreach_target.h>

#include <cstring>
#include <span>

#include "backends/simd/isa.h"
#include "backends/simd/segment-inl.h"
#include "backends/simd/workspace.h"
#include "backends/table.h"

HWY_BEFORE_NAMESPACE();
namespace fulcrum::backends::simd::HWY_NAMESPACE {
namespace {

constexpr std::int64_t kKept = 3;

/// Without memory for rows of labels: every pixel finds those of its neighbours again.
void segment_directly(const fulcrum_args& a, std::int64_t begin, std::int64_t end) {
  const ops::SegmentThresholds thresholds(a.scalar[0].f);
  const std::int64_t h = a.dim[0], w = a.dim[1];
  const float* x = a.in<float>(0);
  for (std::int64_t i = begin * w; i < end * w; ++i) {
    a.out<std::uint8_t>(1)[i] = ops::segment_vote(
        i / w, i % w, h, w, [&](std::int64_t r, std::int64_t c) { return thresholds.label(x[r * w + c]); });
  }
}

void segment_rows(const fulcrum_args& a, std::int64_t begin, std::int64_t end) {
  const std::int64_t h = a.dim[0], w = a.dim[1];
  const ops::SegmentThresholds thresholds(a.scalar[0].f);
  const float* x = a.in<float>(0);
  auto* out = a.out<std::uint8_t>(1);
  if (a.scalar[1].i != 0)
    return label_pixels<false>(x + begin * w, (end - begin) * w, thresholds, out + begin * w);
  auto* memory =
      static_cast<std::uint8_t*>(workspace_bytes(static_cast<std::size_t>(kKept * LabelRow::bytes(w))));
  if (!memory) return segment_directly(a, begin, end);
  const std::int64_t first = std::max<std::int64_t>(begin - 1, 0), last = std::min(end + 1, h);
  for (std::int64_t y = first; y < last; ++y) {
    const LabelRow row(memory, y % kKept, w);
    label_pixels<true>(x + y * w, w, thresholds, row.labels);
    row.encode(w);
    const bool border = y == 0 || y + 1 == h;
    if (border && y >= begin && y < end) std::memcpy(out + y * w, row.labels, static_cast<std::size_t>(w));
    if (y - 2 < first) continue;  // the row above has none above it
    vote(LabelRow(memory, (y - 2) % kKept, w), LabelRow(memory, (y - 1) % kKept, w), row, w,
         out + (y - 1) * w);
  }
}

}  // namespace
}  // namespace fulcrum::backends::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fulcrum::backends::simd {
namespace {

HWY_EXPORT(segment_rows);

fulcrum_status run(const fulcrum_args* a, void*, std::int64_t count) {
  const auto rows = HWY_DYNAMIC_DISPATCH(segment_rows);
  for (std::int64_t call = 0; call < count && a->dim[0] > 0 && a->dim[1] > 0; ++call) rows(*a, 0, a->dim[0]);
  return done();
}

void partial(const fulcrum_args* a, std::int32_t, std::int64_t begin, std::int64_t end, void*) {
  (HWY_DYNAMIC_DISPATCH(segment_rows))(*a, begin * ops::kSegmentPieceRows,
                                       std::min(end * ops::kSegmentPieceRows, a->dim[0]));
}

}  // namespace

namespace kernels {
std::span<const fulcrum_kernel> image_segmentation() {
  static const fulcrum_kernel kernels[] = {
      {.variant = "default", .level = 2, .isa = isa_name, .run = run, .partial = partial}};
  return kernels;
}
}  // namespace kernels

}  // namespace fulcrum::backends::simd
#endif
