// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// pixel_entropy. default: the image becomes one of bins, and a histogram slides along each row. direct: every window
// counted on its own, from the pixels; it needs no memory.
#include <fulcrum/ops/pixel_entropy.h>

#include "backends/scalar/common.h"
#include "backends/scalar/scratch.h"
#include "backends/scalar/sliding_histogram.h"

namespace fulcrum::backends::scalar::kernels {
namespace {

enum Pointer { kX, kOut, kClamped };
enum Dim { kH, kW };
enum Scalar { kWindow, kRule, kRange, kLo, kHi };

/// Finite extremes of rows [begin, end).
ops::EntropyPart extremes(const fulcrum_args& a, std::int64_t begin, std::int64_t end) {
  ops::EntropyPart part;
  const auto* x = a.in<float>(kX);
  for (std::int64_t i = begin * a.dim[kW]; i < end * a.dim[kW]; ++i) {
    if (!std::isfinite(x[i])) continue;
    part.min = std::min(part.min, x[i]);
    part.max = std::max(part.max, x[i]);
  }
  return part;
}

bool range_is_auto(const fulcrum_args& a) { return a.scalar[kRange].i == 1; }

ops::EntropyBins bins_of(const fulcrum_args& a, const ops::EntropyPart& image) {
  if (range_is_auto(a)) return ops::entropy_bins_of_image(image.min, image.max);
  return ops::entropy_bins(static_cast<float>(a.scalar[kLo].f), static_cast<float>(a.scalar[kHi].f));
}

std::int64_t count_clamped(const fulcrum_args& a, const ops::EntropyBins& bins, std::int64_t begin,
                           std::int64_t end) {
  const auto* x = a.in<float>(kX);
  std::int64_t clamped = 0;
  for (std::int64_t i = begin * a.dim[kW]; i < end * a.dim[kW]; ++i) clamped += bins.clamps(x[i]);
  return clamped;
}

void direct_rows(const fulcrum_args& a, const ops::EntropyBins& bins, std::int64_t begin, std::int64_t end) {
  const std::int64_t h = a.dim[kH], w = a.dim[kW], window = ops::entropy_window(a);
  const auto* x = a.in<float>(kX);
  const auto bin = [&](std::int64_t row, std::int64_t column) {
    const float value = x[row * w + column];
    return std::isnan(value) ? -1 : bins(value);
  };
  for (std::int64_t i = begin * w; i < end * w; ++i)
    a.out<float>(kOut)[i] = ops::entropy_at(i / w, i % w, window, h, w, bin);
}

void sliding_rows(const fulcrum_args& a, const ops::EntropyBins& bins, std::int64_t begin, std::int64_t end) {
  const std::int64_t h = a.dim[kH], w = a.dim[kW], window = ops::entropy_window(a);
  const std::int64_t first = ops::entropy_span(begin, window, h).first;
  const std::int64_t last = ops::entropy_span(end - 1, window, h).last;
  auto* image = reinterpret_cast<std::uint16_t*>(scratch(static_cast<std::size_t>((last - first) * w) * 2));
  if (!image) return direct_rows(a, bins, begin, end);
  const float* x = a.in<float>(kX) + first * w;
  for (std::int64_t i = 0; i < (last - first) * w; ++i) {
    image[i] = std::isnan(x[i]) ? kNanBin : static_cast<std::uint16_t>(bins(x[i]));
  }
  SlidingHistogram histogram;
  for (std::int64_t y = begin; y < end; ++y) {
    entropy_row(
        y, window, h, w, [&](std::int64_t row) { return image + (row - first) * w; }, histogram,
        a.out<float>(kOut) + y * w);
  }
}

using RowsFunction = void (*)(const fulcrum_args&, const ops::EntropyBins&, std::int64_t, std::int64_t);

template <RowsFunction kRows>
fulcrum_status run(const fulcrum_args* a, void*, std::int64_t count) {
  const std::int64_t h = a->dim[kH];
  for (std::int64_t call = 0; call < count && h > 0 && a->dim[kW] > 0; ++call) {
    const ops::EntropyBins bins = bins_of(*a, range_is_auto(*a) ? extremes(*a, 0, h) : ops::EntropyPart{});
    kRows(*a, bins, 0, h);
    *a->out<std::int64_t>(kClamped) = count_clamped(*a, bins, 0, h);
  }
  return done();
}

template <RowsFunction kRows>
void partial(const fulcrum_args* a, std::int32_t phase, std::int64_t begin, std::int64_t end, void* scratch) {
  auto* parts = static_cast<ops::EntropyPart*>(scratch);
  for (std::int64_t piece = begin; piece < end; ++piece) {
    const std::int64_t first = piece * ops::kEntropyPieceRows;
    const std::int64_t last = std::min(first + ops::kEntropyPieceRows, a->dim[kH]);
    if (phase == 0) {
      parts[piece] = extremes(*a, first, last);
    } else {
      const ops::EntropyBins bins = bins_of(*a, parts[0]);
      kRows(*a, bins, first, last);
      parts[piece].clamped = count_clamped(*a, bins, first, last);
    }
  }
}

}  // namespace

std::span<const fulcrum_kernel> pixel_entropy() {
  static const fulcrum_kernel kernels[] = {make_kernel(2, run<sliding_rows>, partial<sliding_rows>),
                                           {.variant = "direct",
                                            .level = 2,
                                            .isa = isa,
                                            .run = run<direct_rows>,
                                            .partial = partial<direct_rows>}};
  return kernels;
}

}  // namespace fulcrum::backends::scalar::kernels
