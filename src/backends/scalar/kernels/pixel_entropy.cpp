// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// pixel_entropy. default: the image becomes one of bins, and a histogram slides along each row. direct: every window
// counted on its own, from the pixels; it needs no memory. u8: default on pixels that are bins already.
#include <fulcrum/ops/pixel_entropy.h>

#include "backends/scalar/common.h"
#include "backends/scalar/scratch.h"
#include "backends/scalar/sliding_histogram.h"

namespace fulcrum::backends::scalar::kernels {
namespace {

enum Pointer { kX, kOut, kClamped };
enum Dim { kH, kW };
enum Scalar { kWindow, kRule, kRange, kLo, kHi };

bool range_is_auto(const fulcrum_args& a) { return a.scalar[kRange].i == 1; }

/// How f32 pixels become bins: by a range, which may be that of the image.
struct ValuePixels {
  using Pixel = float;
  ops::EntropyBins bins;

  /// Finite extremes of rows [begin, end).
  static ops::EntropyPart extremes(const fulcrum_args& a, std::int64_t begin, std::int64_t end) {
    ops::EntropyPart part;
    const auto* x = a.in<float>(kX);
    for (std::int64_t i = begin * a.dim[kW]; i < end * a.dim[kW]; ++i) {
      if (!std::isfinite(x[i])) continue;
      part.min = std::min(part.min, x[i]);
      part.max = std::max(part.max, x[i]);
    }
    return part;
  }
  ValuePixels(const fulcrum_args& a, const ops::EntropyPart& image)
      : bins(range_is_auto(a) ? ops::entropy_bins_of_image(image.min, image.max)
                              : ops::entropy_bins(static_cast<float>(a.scalar[kLo].f),
                                                  static_cast<float>(a.scalar[kHi].f))) {}
  std::uint16_t operator()(float x) const {
    return std::isnan(x) ? kNanBin : static_cast<std::uint16_t>(bins(x));
  }
  bool clamps(float x) const { return bins.clamps(x); }
};

/// u8 pixels are bins.
struct LevelPixels {
  using Pixel = std::uint8_t;

  static ops::EntropyPart extremes(const fulcrum_args&, std::int64_t, std::int64_t) { return {}; }
  LevelPixels(const fulcrum_args&, const ops::EntropyPart&) {}
  std::uint16_t operator()(std::uint8_t x) const { return x; }
  bool clamps(std::uint8_t) const { return false; }
};

template <class Pixels>
std::int64_t count_clamped(const fulcrum_args& a, const Pixels& pixels, std::int64_t begin,
                           std::int64_t end) {
  const auto* x = a.in<typename Pixels::Pixel>(kX);
  std::int64_t clamped = 0;
  for (std::int64_t i = begin * a.dim[kW]; i < end * a.dim[kW]; ++i) clamped += pixels.clamps(x[i]);
  return clamped;
}

/// Every window counted on its own.
struct Direct {
  template <class Pixels>
  static void rows(const fulcrum_args& a, const Pixels& pixels, std::int64_t begin, std::int64_t end) {
    const std::int64_t h = a.dim[kH], w = a.dim[kW], window = ops::entropy_window(a);
    const auto* x = a.in<typename Pixels::Pixel>(kX);
    const auto bin = [&](std::int64_t row, std::int64_t column) {
      const std::uint16_t at = pixels(x[row * w + column]);
      return at == kNanBin ? -1 : static_cast<int>(at);
    };
    for (std::int64_t i = begin * w; i < end * w; ++i)
      a.out<float>(kOut)[i] = ops::entropy_at(i / w, i % w, window, h, w, bin);
  }
};

struct Sliding {
  template <class Pixels>
  static void rows(const fulcrum_args& a, const Pixels& pixels, std::int64_t begin, std::int64_t end) {
    const std::int64_t h = a.dim[kH], w = a.dim[kW], window = ops::entropy_window(a);
    const std::int64_t first = ops::entropy_span(begin, window, h).first;
    const std::int64_t last = ops::entropy_span(end - 1, window, h).last;
    auto* image = reinterpret_cast<std::uint16_t*>(scratch(static_cast<std::size_t>((last - first) * w) * 2));
    if (!image) return Direct::rows(a, pixels, begin, end);
    const auto* x = a.in<typename Pixels::Pixel>(kX) + first * w;
    for (std::int64_t i = 0; i < (last - first) * w; ++i) image[i] = pixels(x[i]);
    SlidingHistogram histogram;
    for (std::int64_t y = begin; y < end; ++y) {
      entropy_row(
          y, window, h, w, [&](std::int64_t row) { return image + (row - first) * w; }, histogram,
          a.out<float>(kOut) + y * w);
    }
  }
};

template <class Form, class Pixels>
fulcrum_status run(const fulcrum_args* a, void*, std::int64_t count) {
  const std::int64_t h = a->dim[kH];
  for (std::int64_t call = 0; call < count && h > 0 && a->dim[kW] > 0; ++call) {
    const Pixels pixels(*a, range_is_auto(*a) ? Pixels::extremes(*a, 0, h) : ops::EntropyPart{});
    Form::rows(*a, pixels, 0, h);
    *a->out<std::int64_t>(kClamped) = count_clamped(*a, pixels, 0, h);
  }
  return done();
}

template <class Form, class Pixels>
void partial(const fulcrum_args* a, std::int32_t phase, std::int64_t begin, std::int64_t end, void* scratch) {
  auto* parts = static_cast<ops::EntropyPart*>(scratch);
  for (std::int64_t piece = begin; piece < end; ++piece) {
    const std::int64_t first = piece * ops::kEntropyPieceRows;
    const std::int64_t last = std::min(first + ops::kEntropyPieceRows, a->dim[kH]);
    if (phase == 0) {
      parts[piece] = Pixels::extremes(*a, first, last);
    } else {
      const Pixels pixels(*a, parts[0]);
      Form::rows(*a, pixels, first, last);
      parts[piece].clamped = count_clamped(*a, pixels, first, last);
    }
  }
}

template <class Form, class Pixels>
fulcrum_kernel make(const char* variant, const char* dtype) {
  return fulcrum_kernel{.variant = variant,
                        .dtype = dtype,
                        .level = 2,
                        .isa = isa,
                        .run = run<Form, Pixels>,
                        .partial = partial<Form, Pixels>};
}

}  // namespace

std::span<const fulcrum_kernel> pixel_entropy() {
  static const fulcrum_kernel kernels[] = {make<Sliding, ValuePixels>("default", "f32"),
                                           make<Direct, ValuePixels>("direct", "f32"),
                                           make<Sliding, LevelPixels>("u8", "u8")};
  return kernels;
}

}  // namespace fulcrum::backends::scalar::kernels
