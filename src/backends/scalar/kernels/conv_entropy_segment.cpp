// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// conv_entropy_segment: rows of the convolution become rows of bins, those become rows of labels, and the labels vote.
// Nothing but the labels is written out.
#include <fulcrum/ops/conv_entropy_segment.h>

#include "backends/scalar/common.h"
#include "backends/scalar/conv2d_rows.h"
#include "backends/scalar/scratch.h"
#include "backends/scalar/sliding_histogram.h"

namespace fulcrum::backends::scalar::kernels {
namespace {

using ops::Pipeline;

/// Convolution rows [begin, end) one after the other, each as visit(row, values).
template <class Visit>
void each_conv_row(const fulcrum_args& a, const Pipeline& p, std::int64_t begin, std::int64_t end,
                   float* values, const Visit& visit) {
  for (std::int64_t y = begin; y < end; ++y) {
    conv2d_rows(p.conv, a.in<float>(Pipeline::kX), a.in<float>(Pipeline::kK), y, y + 1, values);
    visit(y, values);
  }
}

float conv_at(const fulcrum_args& a, const Pipeline& p, std::int64_t y, std::int64_t x) {
  return ops::conv2d_at(p.conv, a.in<float>(Pipeline::kX), a.in<float>(Pipeline::kK), y, x);
}

ops::EntropyPart extremes(const fulcrum_args& a, const Pipeline& p, std::int64_t begin, std::int64_t end) {
  ops::EntropyPart part;
  for (std::int64_t y = begin; y < end; ++y) {
    for (std::int64_t x = 0; x < p.conv.wo; ++x) {
      const float value = conv_at(a, p, y, x);
      if (!std::isfinite(value)) continue;
      part.min = std::min(part.min, value);
      part.max = std::max(part.max, value);
    }
  }
  return part;
}

/// Without memory: every output from the definition.
std::int64_t direct_rows(const fulcrum_args& a, const Pipeline& p, const ops::EntropyBins& bins,
                         std::int64_t begin, std::int64_t end) {
  std::int64_t clamped = 0;
  const std::int64_t w = p.conv.wo;
  for (std::int64_t i = begin * w; i < end * w; ++i) {
    clamped += bins.clamps(conv_at(a, p, i / w, i % w));
    a.out<std::uint8_t>(Pipeline::kOut)[i] =
        p.label_at(a.in<float>(Pipeline::kX), a.in<float>(Pipeline::kK), bins, i / w, i % w);
  }
  return clamped;
}

/// Output rows [begin, end); returns how many of their pixels were clamped.
std::int64_t rows(const fulcrum_args& a, const Pipeline& p, const ops::EntropyBins& bins, std::int64_t begin,
                  std::int64_t end) {
  const std::int64_t h = p.conv.ho, w = p.conv.wo;
  const std::int64_t first_label = std::max<std::int64_t>(begin - 1, 0), last_label = std::min(end + 1, h);
  const std::int64_t first = ops::entropy_span(first_label, p.window, h).first;
  const std::int64_t last = ops::entropy_span(last_label - 1, p.window, h).last;
  const auto row_floats = static_cast<std::size_t>(w);
  const std::size_t map = static_cast<std::size_t>(last_label - first_label) * row_floats;
  const std::size_t image = static_cast<std::size_t>(last - first) * row_floats;
  std::uint8_t* memory = scratch(row_floats * sizeof(float) + image * sizeof(std::uint16_t) + map);
  if (!memory) return direct_rows(a, p, bins, begin, end);
  auto* values = reinterpret_cast<float*>(memory);
  auto* image_bins = reinterpret_cast<std::uint16_t*>(values + w);
  auto* labels = reinterpret_cast<std::uint8_t*>(image_bins + image);

  std::int64_t clamped = 0;
  each_conv_row(a, p, first, last, values, [&](std::int64_t y, const float* row) {
    std::uint16_t* to = image_bins + (y - first) * w;
    for (std::int64_t x = 0; x < w; ++x) {
      to[x] = std::isnan(row[x]) ? kNanBin : static_cast<std::uint16_t>(bins(row[x]));
      clamped += y >= begin && y < end && bins.clamps(row[x]);
    }
  });
  SlidingHistogram histogram;
  for (std::int64_t y = first_label; y < last_label; ++y) {
    entropy_row(
        y, p.window, h, w, [&](std::int64_t row) { return image_bins + (row - first) * w; }, histogram,
        values);
    for (std::int64_t x = 0; x < w; ++x) labels[(y - first_label) * w + x] = p.thresholds.label(values[x]);
  }
  const auto label = [&](std::int64_t y, std::int64_t x) { return labels[(y - first_label) * w + x]; };
  for (std::int64_t y = begin; y < end; ++y) {
    for (std::int64_t x = 0; x < w; ++x)
      a.out<std::uint8_t>(Pipeline::kOut)[y * w + x] = ops::segment_vote(y, x, h, w, label);
  }
  return clamped;
}

ops::EntropyBins bins_of(const fulcrum_args& a, const Pipeline& p, const ops::EntropyPart& image) {
  if (p.range == Pipeline::Range::image) return ops::entropy_bins_of_image(image.min, image.max);
  return p.bins(a.in<float>(Pipeline::kK));
}

fulcrum_status run(const fulcrum_args* a, void*, std::int64_t count) {
  const Pipeline p(*a);
  for (std::int64_t call = 0; call < count && p.conv.ho > 0 && p.conv.wo > 0; ++call) {
    const bool pass = p.range == Pipeline::Range::image;
    const ops::EntropyBins bins = bins_of(*a, p, pass ? extremes(*a, p, 0, p.conv.ho) : ops::EntropyPart{});
    *a->out<std::int64_t>(Pipeline::kClamped) = rows(*a, p, bins, 0, p.conv.ho);
  }
  return done();
}

void partial(const fulcrum_args* a, std::int32_t phase, std::int64_t begin, std::int64_t end, void* scratch) {
  const Pipeline p(*a);
  auto* parts = static_cast<ops::EntropyPart*>(scratch);
  for (std::int64_t piece = begin; piece < end; ++piece) {
    const std::int64_t first = ops::pipeline_piece_row(piece, p.conv.ho);
    const std::int64_t last = ops::pipeline_piece_row(piece + 1, p.conv.ho);
    if (phase == 0) {
      parts[piece] = extremes(*a, p, first, last);
    } else {
      parts[piece].clamped = rows(*a, p, bins_of(*a, p, parts[0]), first, last);
    }
  }
}

}  // namespace

std::span<const fulcrum_kernel> conv_entropy_segment() {
  static const fulcrum_kernel kernels[] = {make_kernel(2, run, partial)};
  return kernels;
}

}  // namespace fulcrum::backends::scalar::kernels
