// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// conv_entropy_segment in one pass: vectors of the convolution go to bins in registers, the sums of the sliding windows
// to labels by comparison with the sums at which a label begins, and rows of labels vote as soon as their neighbours
// are there. The image is read once, the labels are written once, and what lies between stays in the cache.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/simd/kernels/conv_entropy_segment.cpp"
#include <fulcrum/ops/conv_entropy_segment.h>
#include <hwy/foreach_target.h>

#include <cmath>
#include <span>

#include "backends/simd/conv2d-inl.h"
#include "backends/simd/entropy-inl.h"
#include "backends/simd/isa.h"
#include "backends/simd/label_sink-inl.h"
#include "backends/simd/tall_histogram-inl.h"
#include "backends/simd/workspace.h"
#include "backends/table.h"

HWY_BEFORE_NAMESPACE();
namespace fulcrum::backends::simd::HWY_NAMESPACE {
namespace {

using ops::Pipeline;

/// Bins of the convolution's rows; pixels of rows [begin, end) count as clamped, the first time that they are asked for.
struct ConvSource {
  const Pipeline& pipeline;
  const float* x;
  const float* k;
  std::int64_t begin, end;
  Binner binner;

  struct Store {
    ConvSource& source;
    std::int64_t first;
    BinRow rows;

    FULCRUM_INLINE_PIECE void operator()(Floats v, std::int64_t row, std::int64_t column, std::size_t n,
                                         std::int64_t done) const {
      const std::int64_t at = (row - first) * source.pipeline.conv.wo;
      const std::int64_t clamped = source.binner.clamped;
      const bool has_nan = source.binner(v, n, rows.bins + at + column, done);
      if (row < source.begin || row >= source.end) source.binner.clamped = clamped;
      if (HWY_UNLIKELY(has_nan)) note_nan(v, row - first, at, column, n);
    }
    HWY_NOINLINE void note_nan(Floats v, std::int64_t row, std::int64_t at, std::int64_t column,
                               std::size_t n) const {
      if (!rows.has_nan[row])
        std::memset(rows.nan + at, 0, static_cast<std::size_t>(source.pipeline.conv.wo));
      rows.has_nan[row] = true;
      HWY_ALIGN float lanes[kLanes];
      hn::Store(v, Float(), lanes);
      for (std::size_t i = 0; i < n; ++i) {
        if (std::isnan(lanes[i])) rows.nan[at + column + static_cast<std::int64_t>(i)] = 1;
      }
    }
  };

  void operator()(std::int64_t first, std::int64_t count, const BinRow& rows) {
    conv_rows(pipeline.conv, x, k, first, first + count, Store{*this, first, rows});
    begin = std::max(begin, first + count);
  }
};

/// Without memory: every output from the definition.
std::int64_t pipeline_directly(const fulcrum_args& a, const Pipeline& p, const ops::EntropyBins& bins,
                               std::int64_t begin, std::int64_t end) {
  std::int64_t clamped = 0;
  const std::int64_t w = p.conv.wo;
  const auto* x = a.in<float>(Pipeline::kX);
  const auto* k = a.in<float>(Pipeline::kK);
  for (std::int64_t i = begin * w; i < end * w; ++i) {
    clamped += bins.clamps(ops::conv2d_at(p.conv, x, k, i / w, i % w));
    a.out<std::uint8_t>(Pipeline::kOut)[i] = p.label_at(x, k, bins, i / w, i % w);
  }
  return clamped;
}

/// Rows of labels by sums of one kind.
template <class Histogram>
struct Labelled {
  using Sink = LabelSink<Histogram>;
  using Strip = typename Sink::Strip;

  static std::size_t floats(const Pipeline& p) {
    return strip_floats(p) + Sink::bytes(p.conv.wo, p.window) / sizeof(float) + 1;
  }
  static std::size_t strip_floats(const Pipeline& p) {
    return Strip::bytes(p.conv.wo, p.window) / sizeof(float) + 1;
  }
  /// Output rows [begin, end), or those before sums of this kind were not worth it; returns the first one that is left.
  static std::int64_t rows(ConvSource& source, std::int64_t begin, std::int64_t end, std::uint8_t* out,
                           float* memory) {
    const Pipeline& p = source.pipeline;
    Sink sink(p, begin, end, out, memory + strip_floats(p));
    Strip strip(p.conv.ho, p.conv.wo, p.window, sink.steps(), memory);
    const std::int64_t last = std::min(end + 1, p.conv.ho);
    const std::int64_t left = strip.run(std::max<std::int64_t>(begin - 1, 0), last, source, sink);
    return left == last ? end : left - 1;  // the last row of labels waits for the one below it to vote
  }
};

using FineLabels = Labelled<BlockHistogram<std::int32_t>>;
#if HWY_TARGET == HWY_AVX3
using TallLabels = Labelled<TallHistogram>;

bool fits_tall(const Pipeline& p) { return p.window <= kLargestTallWindow; }
constexpr std::int64_t kFineRows = 128;  // after which coarse sums are tried again
#endif

/// Output rows [begin, end); returns how many of their pixels were clamped.
std::int64_t pipeline_rows(const fulcrum_args& a, const ops::EntropyBins& bins, std::int64_t begin,
                           std::int64_t end) {
  const Pipeline p(a);
  std::size_t floats = FineLabels::floats(p);
#if HWY_TARGET == HWY_AVX3
  if (fits_tall(p)) floats = std::max(floats, TallLabels::floats(p));
#endif
  float* memory = workspace(floats);
  if (!memory) return pipeline_directly(a, p, bins, begin, end);
  ConvSource source{p, a.in<float>(Pipeline::kX), a.in<float>(Pipeline::kK), begin, end, Binner{bins}};
  auto* out = a.out<std::uint8_t>(Pipeline::kOut);
#if HWY_TARGET == HWY_AVX3
  while (begin < end && fits_tall(p)) {
    begin = TallLabels::rows(source, begin, end, out, memory);
    if (begin < end) begin = FineLabels::rows(source, begin, std::min(begin + kFineRows, end), out, memory);
  }
#endif
  if (begin < end) FineLabels::rows(source, begin, end, out, memory);
  return source.binner.clamped;
}

/// Finite extremes of the convolution.
struct ExtremesStore {
  Floats& min;
  Floats& max;

  FULCRUM_INLINE_PIECE void operator()(Floats v, std::int64_t, std::int64_t, std::size_t n,
                                       std::int64_t) const {
    const Float d;
    const auto infinity = hn::Set(d, std::numeric_limits<float>::infinity());
    const auto finite = hn::Le(hn::Abs(v), hn::Set(d, std::numeric_limits<float>::max()));
    const auto valid = hn::And(hn::FirstN(d, n), finite);
    min = hn::Min(min, hn::IfThenElse(valid, v, infinity));
    max = hn::Max(max, hn::IfThenElse(valid, v, hn::Neg(infinity)));
  }
};

ops::EntropyPart pipeline_extremes(const fulcrum_args& a, std::int64_t begin, std::int64_t end) {
  const Float d;
  auto min = hn::Set(d, std::numeric_limits<float>::infinity()), max = hn::Neg(min);
  conv_rows(Pipeline(a).conv, a.in<float>(Pipeline::kX), a.in<float>(Pipeline::kK), begin, end,
            ExtremesStore{min, max});
  return ops::EntropyPart{.min = hn::GetLane(hn::MinOfLanes(d, min)),
                          .max = hn::GetLane(hn::MaxOfLanes(d, max))};
}

}  // namespace
}  // namespace fulcrum::backends::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fulcrum::backends::simd {
namespace {

using ops::Pipeline;
HWY_EXPORT(pipeline_rows);
HWY_EXPORT(pipeline_extremes);

ops::EntropyBins bins_of(const fulcrum_args& a, const Pipeline& p, const ops::EntropyPart& image) {
  if (p.range == Pipeline::Range::image) return ops::entropy_bins_of_image(image.min, image.max);
  return p.bins(a.in<float>(Pipeline::kK));
}

fulcrum_status run(const fulcrum_args* a, void*, std::int64_t count) {
  const Pipeline p(*a);
  const std::int64_t h = p.conv.ho;
  const auto rows = HWY_DYNAMIC_DISPATCH(pipeline_rows);
  const auto extremes = HWY_DYNAMIC_DISPATCH(pipeline_extremes);
  for (std::int64_t call = 0; call < count && h > 0 && p.conv.wo > 0; ++call) {
    const bool pass = p.range == Pipeline::Range::image;
    const ops::EntropyBins bins = bins_of(*a, p, pass ? extremes(*a, 0, h) : ops::EntropyPart{});
    *a->out<std::int64_t>(Pipeline::kClamped) = rows(*a, bins, 0, h);
  }
  return done();
}

/// A range of pieces is one strip, so that its halo is computed once; its first part carries the whole count.
void partial(const fulcrum_args* a, std::int32_t phase, std::int64_t begin, std::int64_t end, void* scratch) {
  const Pipeline p(*a);
  auto* parts = static_cast<ops::EntropyPart*>(scratch);
  const std::int64_t first = ops::pipeline_piece_row(begin, p.conv.ho);
  const std::int64_t last = ops::pipeline_piece_row(end, p.conv.ho);
  if (begin == end) return;
  if (phase == 0) {
    std::fill(parts + begin, parts + end, (HWY_DYNAMIC_DISPATCH(pipeline_extremes))(*a, first, last));
    return;
  }
  for (std::int64_t piece = begin; piece < end; ++piece) parts[piece].clamped = 0;
  parts[begin].clamped = (HWY_DYNAMIC_DISPATCH(pipeline_rows))(*a, bins_of(*a, p, parts[0]), first, last);
}

}  // namespace

namespace kernels {
std::span<const fulcrum_kernel> conv_entropy_segment() {
  static const fulcrum_kernel kernels[] = {
      {.variant = "default", .level = 2, .isa = isa_name, .run = run, .partial = partial}};
  return kernels;
}
}  // namespace kernels

}  // namespace fulcrum::backends::simd
#endif
