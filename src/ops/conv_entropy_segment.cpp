// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// conv_entropy_segment: conv2d with stride 1, then pixel_entropy, then image_segmentation, as one op. A kernel may
// fuse them; its bits are those of the three ops one after the other.
#include <fulcrum/ops/conv_entropy_segment.h>

#include <fmt/format.h>

#include <cmath>

#include "ops/support/elementwise.h"

namespace fulcrum::ops {
namespace {

enum Dim { kH, kW, kKh, kKw };
enum Scalar { kPadY, kPadX, kWindow, kRange, kLo, kHi, kT };
constexpr std::string_view kName = "conv_entropy_segment";

std::int64_t extent(const Args& args, int slot) {
  const Conv2d conv = Pipeline(args).conv;
  if (slot == Pipeline::kX) return product(conv.h, conv.w);
  if (slot == Pipeline::kK) return product(conv.kh, conv.kw);
  const std::int64_t outputs = product(conv.ho, conv.wo);
  return slot == Pipeline::kClamped ? std::min<std::int64_t>(outputs, 1) : outputs;
}

Status validate(const Args& args) {
  const Pipeline pipeline(args);
  const Conv2d& conv = pipeline.conv;
  if (conv.h > 0 && conv.w > 0) FULCRUM_CHECK(check(conv, kName));
  if (pipeline.window < 1 || pipeline.window > kEntropyLargestWindow) {
    return Error{Code::invalid_argument, fmt::format("W={} of {} is out of range", pipeline.window, kName),
                 fmt::format("windows are 1 to {} pixels wide", kEntropyLargestWindow)};
  }
  const bool empty =
      pipeline.range == Pipeline::Range::fixed ? !(pipeline.lo < pipeline.hi) : !(pipeline.lo <= pipeline.hi);
  if (pipeline.range != Pipeline::Range::image &&
      (empty || !std::isfinite(pipeline.lo) || !std::isfinite(pipeline.hi))) {
    return Error{Code::invalid_argument,
                 fmt::format("lo={} and hi={} of {} span no range", pipeline.lo, pipeline.hi, kName),
                 "lo and hi are finite with lo < hi: of the convolution (range=fixed) or of the image "
                 "(range=kernel_bound)"};
  }
  return check_segment_threshold(args.scalar[kT].f, kName);
}

/// The parts' work; the bytes between them need not move.
Work work(const Args& args) {
  const Pipeline pipeline(args);
  const auto inputs = static_cast<double>(extent(args, Pipeline::kX));
  const auto outputs = static_cast<double>(extent(args, Pipeline::kOut));
  const auto taps = static_cast<double>(pipeline.conv.kh * pipeline.conv.kw);
  const auto window = static_cast<double>(pipeline.window);
  return Work{.flops = (2 * taps + 4 + 2 * window + 19) * outputs,
              .issue_slots = (taps + 4 + 4 * window + 19) * outputs,
              .read_bytes = 4 * (inputs + taps),
              .write_bytes = outputs,
              .streaming_bytes = 4 * (inputs + taps) + 19 * outputs,
              .link_in_bytes = 4 * (inputs + taps),
              .link_out_bytes = outputs};
}

EntropyBins bins_of(const Args& args) {
  const Pipeline pipeline(args);
  const auto* x = args.in<float>(Pipeline::kX);
  const auto* k = args.in<float>(Pipeline::kK);
  if (pipeline.range != Pipeline::Range::image) return pipeline.bins(k);
  EntropyPart all;
  for (std::int64_t y = 0; y < pipeline.conv.ho; ++y) {
    for (std::int64_t column = 0; column < pipeline.conv.wo; ++column) {
      const float value = conv2d_at(pipeline.conv, x, k, y, column);
      if (!std::isfinite(value)) continue;
      all.min = std::min(all.min, value);
      all.max = std::max(all.max, value);
    }
  }
  return entropy_bins_of_image(all.min, all.max);
}

void reference(const Args& args, int slot, std::span<const std::int64_t> index, Truth* truth) {
  const Pipeline pipeline(args);
  const auto* x = args.in<float>(Pipeline::kX);
  const auto* k = args.in<float>(Pipeline::kK);
  const EntropyBins bins = bins_of(args);
  const std::int64_t wo = pipeline.conv.wo;
  if (slot == Pipeline::kClamped) {
    for (std::int64_t i = 0; i < pipeline.conv.ho * wo; ++i) {
      truth[0].value += bins.clamps(conv2d_at(pipeline.conv, x, k, i / wo, i % wo)) ? 1 : 0;
    }
    return;
  }
  for (std::size_t i = 0; i < index.size(); ++i) {
    truth[i].value = pipeline.label_at(x, k, bins, index[i] / wo, index[i] % wo);
  }
}

std::int64_t bands(const Args& args) {
  const Conv2d conv = Pipeline(args).conv;
  return conv.wo == 0 ? 0 : pipeline_pieces(conv.ho);
}

std::int64_t pieces(const Args& args, int phase) {
  return phase == 0 && Pipeline(args).range != Pipeline::Range::image ? 0 : bands(args);
}

void combine(const Args& args, int phase, void* scratch) {
  if (pieces(args, phase) == 0) return;
  combine_entropy_parts(static_cast<EntropyPart*>(scratch), bands(args), phase,
                        args.out<std::int64_t>(Pipeline::kClamped));
}

}  // namespace

Pipeline::Pipeline(const Args& args)
    : conv(with_output(Conv2d{.h = args.dim[kH],
                              .w = args.dim[kW],
                              .kh = args.dim[kKh],
                              .kw = args.dim[kKw],
                              .pad_y = args.scalar[kPadY].i,
                              .pad_x = args.scalar[kPadX].i})),
      window(args.scalar[kWindow].i),
      range(static_cast<Range>(args.scalar[kRange].i)),
      lo(static_cast<float>(args.scalar[kLo].f)),
      hi(static_cast<float>(args.scalar[kHi].f)),
      thresholds(args.scalar[kT].f) {}

EntropyBins Pipeline::bins(const float* k) const {
  if (range != Range::kernel_bound) return entropy_bins(lo, hi);
  const bool padded = conv.pad_y > 0 || conv.pad_x > 0;
  const double a = padded ? std::min<double>(lo, 0) : lo, b = padded ? std::max<double>(hi, 0) : hi;
  double low = 0, high = 0;
  for (std::int64_t i = 0; i < conv.kh * conv.kw; ++i) {
    low += std::min(k[i] * a, k[i] * b);
    high += std::max(k[i] * a, k[i] * b);
  }
  return entropy_bins(static_cast<float>(low), static_cast<float>(high));
}

std::uint8_t Pipeline::label_at(const float* x, const float* k, const EntropyBins& bins, std::int64_t y,
                                std::int64_t column) const {
  const auto bin = [&](std::int64_t row, std::int64_t at) {
    const float value = conv2d_at(conv, x, k, row, at);
    return std::isnan(value) ? -1 : bins(value);
  };
  return segment_vote(y, column, conv.ho, conv.wo, [&](std::int64_t row, std::int64_t at) {
    return thresholds.label(entropy_at(row, at, window, conv.ho, conv.wo, bin));
  });
}

Op conv_entropy_segment() {
  return Op{
      .name = kName,
      .summary = "image_segmentation(pixel_entropy(conv2d(x, k), W), t)",
      .category = "stencil",
      .slots = {in("x", uniform(0, 1)), in_finite("k", uniform(-1, 1)), out("out", DType::u8),
                out("clamped", DType::i64), dim("h"), dim("w"), dim("kh"), dim("kw"), integer("pad_y", 0),
                integer("pad_x", 0), integer("W", 9), choice("range", {"kernel_bound", "fixed", "auto"}),
                real("lo", 0), real("hi", 1), real("t", 4)},
      .extent = extent,
      .validate = validate,
      .work = work,
      .reference = reference,
      .remark =
          [](const Args& args) {
            return clamped_remark(*args.out<std::int64_t>(Pipeline::kClamped), extent(args, Pipeline::kOut));
          },
      .prepare = [](const Args&) -> Result<std::shared_ptr<const void>> {
        return std::shared_ptr<const void>(std::shared_ptr<void>(), entropy_table());
      },
      .standing = []() -> const void* { return entropy_table(); },
      .split = Split{.phases = 2,
                     .pieces = pieces,
                     .scratch_bytes =
                         [](const Args& args) {
                           return bands(args) * static_cast<std::int64_t>(sizeof(EntropyPart));
                         },
                     .combine = combine},
      .symbols = {"*conv_entropy_segment*"},
      .default_sizes = {"h=256,w=256,kh=3,kw=3,pad_y=1,pad_x=1,W=3",
                        "h=256,w=256,kh=3,kw=3,pad_y=1,pad_x=1,W=8",
                        "h=256,w=256,kh=3,kw=3,pad_y=1,pad_x=1,W=9",
                        "h=1080,w=1920,kh=3,kw=3,pad_y=1,pad_x=1,W=3",
                        "h=1080,w=1920,kh=3,kw=3,pad_y=1,pad_x=1,W=8",
                        "h=1080,w=1920,kh=3,kw=3,pad_y=1,pad_x=1,W=9",
                        "h=4096,w=4096,kh=3,kw=3,pad_y=1,pad_x=1,W=9"},
      .edge_shapes = {"h=0,w=9,kh=3,kw=3", "h=3,w=3,kh=3,kw=3,W=3",
                      "h=20,w=40,kh=3,kw=3,pad_y=1,pad_x=1,W=3,t=2", "h=19,w=41,kh=3,kw=3,W=2,t=0.6",
                      "h=33,w=35,kh=2,kw=4,pad_y=1,pad_x=3,W=9",
                      "h=21,w=66,kh=3,kw=3,pad_y=1,pad_x=1,W=8,range=auto,t=3.5",
                      "h=26,w=30,kh=5,kw=5,pad_y=2,pad_x=2,W=9,range=fixed,lo=-1,hi=1",
                      "h=11,w=20,kh=3,kw=3,W=64", "h=17,w=50,kh=3,kw=3,pad_y=2,pad_x=2,W=1,t=0",
                      "h=16,w=33,kh=1,kw=1,W=3,t=2"},
      .reference_cost =
          [](const Args& args) {
            const Pipeline p(args);
            return 9.0 * (static_cast<double>(p.window * p.window) *
                              static_cast<double>(2 * p.conv.kh * p.conv.kw + 3) +
                          300);
          },
  };
}

}  // namespace fulcrum::ops
