// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// pixel_entropy: rows of the image become bins, eight rows of outputs share one sliding pass (histogram-inl.h), and
// the sums become bits by one fp64 division each. Pixels of the variant u8 are bins already.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/simd/kernels/pixel_entropy.cpp"
#include <fulcrum/ops/pixel_entropy.h>
#include <hwy/foreach_target.h>

#include <cmath>
#include <span>

#include "backends/simd/entropy-inl.h"
#include "backends/simd/isa.h"
#include "backends/simd/workspace.h"
#include "backends/table.h"

HWY_BEFORE_NAMESPACE();
namespace fulcrum::backends::simd::HWY_NAMESPACE {
namespace {

enum Pointer { kX, kOut, kClamped };
enum Dim { kH, kW };
using PixelStrip = EntropyStrip<BlockHistogram<std::int64_t>>;

/// Bins of the image's rows; pixels of rows [begin, end) count as clamped.
struct ImageSource {
  const float* x;
  std::int64_t w, begin, end;
  Binner binner;

  void operator()(std::int64_t first, std::int64_t count, const BinRow& rows) {
    for (std::int64_t r = 0; r < count; ++r) {
      const float* from = x + (first + r) * w;
      const std::int64_t clamped = binner.clamped;
      bool has_nan = false;
      std::int64_t i = 0;
      for (; i + static_cast<std::int64_t>(kLanes) <= w; i += kLanes)
        has_nan |= binner(hn::LoadU(Float(), from + i), kLanes, rows.bins + r * w + i);
      const auto left = static_cast<std::size_t>(w - i);
      if (left > 0) has_nan |= binner(load_first(from + i, left), left, rows.bins + r * w + i);
      if (first + r < begin || first + r >= end) binner.clamped = clamped;
      rows.has_nan[r] = has_nan;
      for (i = 0; has_nan && i < w; ++i) rows.nan[r * w + i] = std::isnan(from[i]) ? 1 : 0;
    }
  }
};

/// Pixels that are bins.
struct LevelSource {
  const std::uint8_t* x;
  std::int64_t w;

  void operator()(std::int64_t first, std::int64_t count, const BinRow& rows) {
    std::memcpy(rows.bins, x + first * w, static_cast<std::size_t>(count * w));
  }
};

/// The entropy of each sum.
struct EntropySink {
  float* out;
  std::int64_t w, window;

  void take(const EntropyBlock& block, std::int64_t from, std::int64_t to, const std::int64_t* sums,
            const PixelStrip&) {
    const hn::CappedTag<double, kBlockRows> d;
    const hn::Rebind<std::int64_t, decltype(d)> di;
    const hn::Rebind<float, decltype(d)> df;
    HWY_ALIGN float tile[kChunk * kBlockRows];
    HWY_ALIGN double scales[kBlockRows];
    HWY_ALIGN std::int64_t wholes[kBlockRows];
    std::int64_t width = 0;
    for (std::int64_t x = from; x < to; ++x) {
      const ops::EntropySpan columns = ops::entropy_span(x, window, w);
      if (columns.last - columns.first != width) {
        width = columns.last - columns.first;
        for (std::int64_t r = 0; r < kBlockRows; ++r) {
          scales[r] = static_cast<double>(width * block.heights[r]) * 0x1p32;
          wholes[r] = ops::entropy_table()[width * block.heights[r]];
        }
      }
      const std::int64_t at = (x - from) * kBlockRows;
      for (std::size_t r = 0; r < kBlockRows; r += hn::Lanes(d)) {
        const auto bits = hn::ConvertTo(d, hn::Sub(hn::Load(di, wholes + r), hn::Load(di, sums + at + r)));
        hn::Store(hn::DemoteTo(df, hn::Div(bits, hn::Load(d, scales + r))), df, tile + at + r);
      }
    }
    for (std::int64_t r = 0; r < block.rows; ++r) {
      float* row = out + (block.y + r) * w + from;
      for (std::int64_t x = 0; x < to - from; ++x) row[x] = tile[x * kBlockRows + r];
    }
  }
  void nan(const EntropyBlock& block, std::int64_t r, std::int64_t x) {
    out[(block.y + r) * w + x] = std::numeric_limits<float>::quiet_NaN();
  }
  static bool end(const EntropyBlock&) { return true; }
};

/// Without memory for records: every window on its own.
std::int64_t entropy_directly(const fulcrum_args& a, const ops::EntropyBins& bins, std::int64_t begin,
                              std::int64_t end) {
  const std::int64_t h = a.dim[kH], w = a.dim[kW], window = ops::entropy_window(a);
  const float* x = a.in<float>(kX);
  std::int64_t clamped = 0;
  for (std::int64_t i = begin * w; i < end * w; ++i) {
    clamped += bins.clamps(x[i]);
    a.out<float>(kOut)[i] = ops::entropy_at(i / w, i % w, window, h, w, [&](std::int64_t r, std::int64_t c) {
      return std::isnan(x[r * w + c]) ? -1 : bins(x[r * w + c]);
    });
  }
  return clamped;
}

/// Output rows [begin, end); returns how many of their pixels were clamped.
std::int64_t entropy_rows(const fulcrum_args& a, const ops::EntropyBins& bins, std::int64_t begin,
                          std::int64_t end) {
  const std::int64_t h = a.dim[kH], w = a.dim[kW], window = ops::entropy_window(a);
  void* memory = workspace_bytes(PixelStrip::bytes(w, window));
  if (!memory) return entropy_directly(a, bins, begin, end);
  PixelStrip strip(h, w, window, ops::entropy_steps(), memory);
  ImageSource source{a.in<float>(kX), w, begin, end, Binner{bins}};
  EntropySink sink{a.out<float>(kOut), w, window};
  strip.run(begin, end, source, sink);
  return source.binner.clamped;
}

/// The same rows of an image of bins. Without memory for records: every window on its own.
void level_rows(const fulcrum_args& a, std::int64_t begin, std::int64_t end) {
  const std::int64_t h = a.dim[kH], w = a.dim[kW], window = ops::entropy_window(a);
  const std::uint8_t* x = a.in<std::uint8_t>(kX);
  float* out = a.out<float>(kOut);
  if (void* memory = workspace_bytes(PixelStrip::bytes(w, window))) {
    PixelStrip strip(h, w, window, ops::entropy_steps(), memory);
    LevelSource source{x, w};
    EntropySink sink{out, w, window};
    strip.run(begin, end, source, sink);
    return;
  }
  const auto bin = [&](std::int64_t r, std::int64_t c) { return static_cast<int>(x[r * w + c]); };
  for (std::int64_t i = begin * w; i < end * w; ++i)
    out[i] = ops::entropy_at(i / w, i % w, window, h, w, bin);
}

/// Finite extremes of n pixels. Inf and NaN fail |x| <= largest.
ops::EntropyPart extremes(const float* x, std::int64_t n) {
  const Float d;
  const auto infinity = hn::Set(d, std::numeric_limits<float>::infinity());
  const auto largest = hn::Set(d, std::numeric_limits<float>::max());
  auto min = infinity, max = hn::Neg(infinity);
  for (std::int64_t i = 0; i < n; i += kLanes) {
    const auto left = static_cast<std::size_t>(n - i);
    const auto value = left < kLanes ? load_first(x + i, left) : hn::LoadU(d, x + i);
    const auto valid = hn::And(hn::FirstN(d, std::min(left, kLanes)), hn::Le(hn::Abs(value), largest));
    min = hn::Min(min, hn::IfThenElse(valid, value, infinity));
    max = hn::Max(max, hn::IfThenElse(valid, value, hn::Neg(infinity)));
  }
  return ops::EntropyPart{.min = hn::GetLane(hn::MinOfLanes(d, min)),
                          .max = hn::GetLane(hn::MaxOfLanes(d, max))};
}

}  // namespace
}  // namespace fulcrum::backends::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fulcrum::backends::simd {
namespace {

enum Scalar { kWindow, kRule, kRange, kLo, kHi };
HWY_EXPORT(entropy_rows);
HWY_EXPORT(level_rows);
HWY_EXPORT(extremes);

bool range_is_auto(const fulcrum_args& a) { return a.scalar[kRange].i == 1; }

ops::EntropyBins bins_of(const fulcrum_args& a, const ops::EntropyPart& image) {
  if (range_is_auto(a)) return ops::entropy_bins_of_image(image.min, image.max);
  return ops::entropy_bins(static_cast<float>(a.scalar[kLo].f), static_cast<float>(a.scalar[kHi].f));
}

ops::EntropyPart extremes_of(const fulcrum_args& a, std::int64_t begin, std::int64_t end) {
  const std::int64_t w = a.dim[1];
  return (HWY_DYNAMIC_DISPATCH(extremes))(a.in<float>(0) + begin * w, (end - begin) * w);
}

fulcrum_status run(const fulcrum_args* a, void*, std::int64_t count) {
  const std::int64_t h = a->dim[0];
  const auto rows = HWY_DYNAMIC_DISPATCH(entropy_rows);
  for (std::int64_t call = 0; call < count && h > 0 && a->dim[1] > 0; ++call) {
    const ops::EntropyBins bins = bins_of(*a, range_is_auto(*a) ? extremes_of(*a, 0, h) : ops::EntropyPart{});
    *a->out<std::int64_t>(2) = rows(*a, bins, 0, h);
  }
  return done();
}

/// A range of pieces is one strip, so that its records are filled once; its first part carries the whole count.
void partial(const fulcrum_args* a, std::int32_t phase, std::int64_t begin, std::int64_t end, void* scratch) {
  auto* parts = static_cast<ops::EntropyPart*>(scratch);
  const std::int64_t first = begin * ops::kEntropyPieceRows;
  const std::int64_t last = std::min(end * ops::kEntropyPieceRows, a->dim[0]);
  if (begin == end) return;
  if (phase == 0) {
    std::fill(parts + begin, parts + end, extremes_of(*a, first, last));
    return;
  }
  for (std::int64_t piece = begin; piece < end; ++piece) parts[piece].clamped = 0;
  parts[begin].clamped = (HWY_DYNAMIC_DISPATCH(entropy_rows))(*a, bins_of(*a, parts[0]), first, last);
}

fulcrum_status run_levels(const fulcrum_args* a, void*, std::int64_t count) {
  const auto rows = HWY_DYNAMIC_DISPATCH(level_rows);
  for (std::int64_t call = 0; call < count && a->dim[0] > 0 && a->dim[1] > 0; ++call) {
    rows(*a, 0, a->dim[0]);
    *a->out<std::int64_t>(2) = 0;
  }
  return done();
}

/// Nothing is to be known about the image first, and nothing clamped.
void partial_levels(const fulcrum_args* a, std::int32_t phase, std::int64_t begin, std::int64_t end,
                    void* scratch) {
  std::fill_n(static_cast<ops::EntropyPart*>(scratch) + begin, end - begin, ops::EntropyPart{});
  if (phase == 0 || begin == end) return;
  (HWY_DYNAMIC_DISPATCH(level_rows))(*a, begin * ops::kEntropyPieceRows,
                                     std::min(end * ops::kEntropyPieceRows, a->dim[0]));
}

}  // namespace

namespace kernels {
std::span<const fulcrum_kernel> pixel_entropy() {
  static const fulcrum_kernel kernels[] = {
      {.variant = "default", .level = 2, .isa = isa_name, .run = run, .partial = partial},
      {.variant = "u8",
       .dtype = "u8",
       .level = 2,
       .isa = isa_name,
       .run = run_levels,
       .partial = partial_levels}};
  return kernels;
}
}  // namespace kernels

}  // namespace fulcrum::backends::simd
#endif
