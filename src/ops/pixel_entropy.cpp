// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// pixel_entropy: Shannon entropy, in bits, of the 256-bin histogram of the W x W neighbourhood of each pixel, cut at
// the border. Defined by integers (see entropy_table()), so the order of counting does not matter and every backend
// gives the same bits. Pixels of type u8 are their own bins: range, lo and hi say nothing about them, none is clamped.
// What stands here reads f32, where a u8 pixel k is k / 255 in the range 0 to 1.
#include <fulcrum/ops/pixel_entropy.h>

#include <fmt/format.h>

#include <cmath>

#include "ops/support/elementwise.h"

namespace fulcrum::ops {
namespace {

constexpr double kTolerance = 5e-7;  // of the table and of rounding to fp32 at 8

enum Pointer { kX, kOut, kClamped };
enum Dim { kH, kW };
enum Scalar { kWindow, kRule, kRange, kLo, kHi, kData };

std::int64_t pixels(const Args& args) { return product(args.dim[kH], args.dim[kW]); }

std::int64_t extent(const Args& args, int slot) {
  const std::int64_t count = pixels(args);
  return slot == kClamped ? std::min<std::int64_t>(count, 1) : count;
}

bool range_is_auto(const Args& args) { return args.scalar[kRange].i == 1; }

Status validate(const Args& args) {
  const std::int64_t window = entropy_window(args);
  if (window < 1 || window > kEntropyLargestWindow) {
    return Error{Code::invalid_argument, fmt::format("W={} of pixel_entropy is out of range", window),
                 fmt::format("windows are 1 to {} pixels wide, or W=auto", kEntropyLargestWindow)};
  }
  const auto lo = static_cast<float>(args.scalar[kLo].f), hi = static_cast<float>(args.scalar[kHi].f);
  if (!range_is_auto(args) && !(std::isfinite(lo) && std::isfinite(hi) && lo < hi)) {
    return Error{Code::invalid_argument,
                 fmt::format("lo={} and hi={} of pixel_entropy span no range", lo, hi),
                 "range=fixed needs finite lo < hi; range=auto takes those of the image"};
  }
  return {};
}

Work work(const Args& args) {
  const auto count = static_cast<double>(pixels(args));
  const auto window = static_cast<double>(entropy_window(args));
  return Work{.flops = (4 + 2 * window) * count,
              .issue_slots = (4 + 4 * window) * count,
              .read_bytes = 4 * count,
              .write_bytes = 4 * count,
              .streaming_bytes = range_is_auto(args) ? 12 * count : 8 * count,
              .link_in_bytes = 4 * count,
              .link_out_bytes = 4 * count};
}

EntropyBins bins_of(const Args& args) {
  if (!range_is_auto(args)) {
    return entropy_bins(static_cast<float>(args.scalar[kLo].f), static_cast<float>(args.scalar[kHi].f));
  }
  EntropyPart all;
  for (std::int64_t i = 0; i < pixels(args); ++i) {
    const float value = args.in<float>(kX)[i];
    if (!std::isfinite(value)) continue;
    all.min = std::min(all.min, value);
    all.max = std::max(all.max, value);
  }
  return entropy_bins_of_image(all.min, all.max);
}

/// The textbook sum in fp64 over one window, NaN when the window holds one.
double direct_entropy(const Args& args, const EntropyBins& bins, std::int64_t at) {
  const std::int64_t h = args.dim[kH], w = args.dim[kW], window = entropy_window(args);
  const EntropySpan rows = entropy_span(at / w, window, h), columns = entropy_span(at % w, window, w);
  int counts[kEntropyBins] = {};
  for (std::int64_t r = rows.first; r < rows.last; ++r) {
    for (std::int64_t c = columns.first; c < columns.last; ++c) {
      const float value = args.in<float>(kX)[r * w + c];
      if (std::isnan(value)) return NAN;
      ++counts[bins(value)];
    }
  }
  const auto n = static_cast<double>((rows.last - rows.first) * (columns.last - columns.first));
  double sum = 0;
  for (const int count : counts) {
    if (count > 0) sum -= count / n * std::log2(count / n);
  }
  return sum;
}

void reference(const Args& args, int slot, std::span<const std::int64_t> index, Truth* truth) {
  const EntropyBins bins = bins_of(args);
  if (slot == kClamped) {
    const auto* x = args.in<float>(kX);
    truth[0].value = static_cast<double>(
        std::count_if(x, x + pixels(args), [&](float value) { return bins.clamps(value); }));
    return;
  }
  for (std::size_t i = 0; i < index.size(); ++i) {
    truth[i] = Truth{.value = direct_entropy(args, bins, index[i]), .allowed = kTolerance};
  }
}

/// Drawn U(0,1) becomes an 8-bit image in [0,1]: noise over all levels, or a diagonal ramp with noise of 16 levels.
void make_inputs(const Args& args, std::uint64_t) {
  auto* x = args.out<float>(kX);
  const std::int64_t h = args.dim[kH], w = args.dim[kW];
  const bool smooth = args.scalar[kData].i == 1;
  for (std::int64_t i = 0; i < pixels(args); ++i) {
    if (!std::isfinite(x[i])) continue;
    const std::int64_t row = i / w, column = i % w;
    const double ramp = 240.0 * static_cast<double>(row + column) / static_cast<double>(h + w);
    x[i] = static_cast<float>(std::floor(smooth ? ramp + 16.0 * x[i] : 256.0 * x[i]) / 255);
  }
}

std::int64_t bands(const Args& args) { return divide_up(args.dim[kH], kEntropyPieceRows); }

std::int64_t pieces(const Args& args, int phase) {
  return pixels(args) == 0 || (phase == 0 && !range_is_auto(args)) ? 0 : bands(args);
}

void combine(const Args& args, int phase, void* scratch) {
  if (pieces(args, phase) == 0) return;
  combine_entropy_parts(static_cast<EntropyPart*>(scratch), bands(args), phase,
                        args.out<std::int64_t>(kClamped));
}

}  // namespace

EntropyBins entropy_bins(float lo, float hi) {
  if (!(lo < hi)) return EntropyBins{lo, hi, 0};
  const double scale = 256 / (static_cast<double>(hi) - lo);
  const double largest = std::numeric_limits<float>::max();
  return EntropyBins{lo, hi, static_cast<float>(std::min(scale, largest))};
}

EntropyBins entropy_bins_of_image(float min, float max) {
  if (min > max) min = max = 0;  // nothing finite
  EntropyBins bins = entropy_bins(min, max);
  if (min == max) bins.scale = std::numeric_limits<float>::max();
  return bins;
}

std::int64_t automatic_window(std::int64_t pixels) { return pixels > 200000 ? 8 : pixels > 50000 ? 16 : 32; }

std::int64_t entropy_window(const Args& args) {
  return args.scalar[kRule].i == 1 ? automatic_window(pixels(args)) : args.scalar[kWindow].i;
}

void combine_entropy_parts(EntropyPart* parts, std::int64_t pieces, int phase, std::int64_t* clamped) {
  if (phase == 0) {
    for (std::int64_t p = 1; p < pieces; ++p) {
      parts[0].min = std::min(parts[0].min, parts[p].min);
      parts[0].max = std::max(parts[0].max, parts[p].max);
    }
    return;
  }
  *clamped = 0;
  for (std::int64_t p = 0; p < pieces; ++p) *clamped += parts[p].clamped;
}

Op pixel_entropy() {
  return Op{
      .name = "pixel_entropy",
      .summary =
          "out[y,x] = entropy in bits of the 256-bin histogram of the W x W pixels around (y,x); "
          "u8 pixels are their own bins",
      .category = "stencil",
      .slots = {typed(in("x", uniform(0, 1))), out("out"), out("clamped", DType::i64), dim("h"), dim("w"),
                integer("W", 9), choice("w_rule", {"given", "auto"}), choice("range", {"fixed", "auto"}),
                real("lo", 0), real("hi", 1), choice("data", {"noise", "smooth"})},
      .extent = extent,
      .validate = validate,
      .work = work,
      .reference = reference,
      .remark =
          [](const Args& args) {
            return clamped_remark(*args.out<std::int64_t>(kClamped), extent(args, kOut));
          },
      .dtypes = {DType::f32, DType::u8},
      .prepare = [](const Args&) -> Result<std::shared_ptr<const void>> {
        return std::shared_ptr<const void>(std::shared_ptr<void>(), entropy_table());
      },
      .standing = []() -> const void* { return entropy_table(); },
      .make_inputs = make_inputs,
      .split = Split{.phases = 2,
                     .pieces = pieces,
                     .scratch_bytes =
                         [](const Args& args) {
                           return bands(args) * static_cast<std::int64_t>(sizeof(EntropyPart));
                         },
                     .combine = combine},
      .symbols = {"*pixel_entropy*", "*entropy*"},
      .default_sizes = {"h=512,w=512,W=8", "h=512,w=512,W=16", "h=512,w=512,W=32", "h=1080,w=1920,W=3",
                        "h=1080,w=1920,W=9", "h=1080,w=1920,W=25", "h=4096,w=4096,W=9"},
      .edge_shapes = {"h=20,w=40,W=1", "h=20,w=40,W=2", "h=19,w=41,W=3,lo=0.25,hi=0.5", "h=17,w=33,W=7",
                      "h=40,w=30,W=8", "h=41,w=50,W=16,range=auto", "h=23,w=70,W=25,data=smooth",
                      "h=12,w=9,W=255", "h=30,w=45,W=24,data=smooth,range=auto", "h=9,w=20,W=64,w_rule=auto",
                      "h=33,w=35,W=9,lo=-1000,hi=1000"},
      .reference_cost =
          [](const Args& args) {
            const auto window = static_cast<double>(entropy_window(args));
            return 3 * window * window + 1000;
          },
  };
}

}  // namespace fulcrum::ops
