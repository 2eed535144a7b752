// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// conv2d: cross-correlation of single-channel images with one kernel, zero padding. An output is one chain of fma
// over its taps in row-major order, so all backends with fma give the same bits.
#include <fulcrum/ops/conv2d.h>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "ops/support/elementwise.h"

namespace fulcrum::ops {
namespace {

enum Pointer { kX, kK, kY };
enum Dim { kBatch, kH, kW, kKh, kKw };
enum Scalar { kStrideY, kStrideX, kPadY, kPadX };

/// Outputs along one axis; 0 when there is none.
std::int64_t output_size(std::int64_t size, std::int64_t kernel, std::int64_t stride, std::int64_t pad) {
  std::int64_t padded = 0;
  if (kernel < 1 || kernel > kConv2dLargestKernel || stride < 1 || pad < 0 || pad >= kernel) return 0;
  if (__builtin_add_overflow(size, 2 * pad, &padded) || padded < kernel) return 0;
  return (padded - kernel) / stride + 1;
}

std::int64_t extent(const Args& args, int slot) {
  const Conv2d g = conv2d_geometry(args);
  if (slot == kX) return product(product(g.batch, g.h), g.w);
  if (slot == kK) return product(g.kh, g.kw);
  return product(product(g.batch, g.ho), g.wo);
}

Work work(const Args& args) {
  const Conv2d g = conv2d_geometry(args);
  const auto taps = static_cast<double>(g.kh * g.kw);
  const double inputs = 4 * (static_cast<double>(extent(args, kX)) + taps);
  const auto outputs = static_cast<double>(extent(args, kY));
  return Work{.flops = 2 * taps * outputs,
              .issue_slots = taps * outputs,
              .read_bytes = inputs,
              .write_bytes = 4 * outputs,
              .link_in_bytes = inputs,
              .link_out_bytes = 4 * outputs};
}

/// The taps [first, last) of an axis that meet the image when the window begins at `origin`.
struct Taps {
  std::int64_t first, last;
};
Taps taps_inside(std::int64_t origin, std::int64_t kernel, std::int64_t size) {
  return Taps{std::max<std::int64_t>(0, -origin), std::min(kernel, size - origin)};
}

Truth truth_at(const Conv2d& g, const float* x, const float* k, std::int64_t oy, std::int64_t ox) {
  const std::int64_t y0 = oy * g.stride_y - g.pad_y, x0 = ox * g.stride_x - g.pad_x;
  const Taps rows = taps_inside(y0, g.kh, g.h), columns = taps_inside(x0, g.kw, g.w);
  double sum = 0, magnitude = 0;
  for (std::int64_t i = rows.first; i < rows.last; ++i) {
    for (std::int64_t j = columns.first; j < columns.last; ++j) {
      const double term = static_cast<double>(k[i * g.kw + j]) * x[(y0 + i) * g.w + x0 + j];
      sum += term;
      magnitude += std::abs(term);
    }
  }
  const bool finite = std::isfinite(sum);
  return Truth{
      .value = sum,
      .allowed = finite ? std::max(static_cast<double>(g.kh * g.kw + 1) * 0x1p-24 * magnitude, 0x1p-126) : 0,
      .any_non_finite = finite && magnitude > static_cast<double>(std::numeric_limits<float>::max())};
}

void reference(const Args& args, int, std::span<const std::int64_t> index, Truth* truth) {
  const Conv2d g = conv2d_geometry(args);
  for (std::size_t n = 0; n < index.size(); ++n) {
    const std::int64_t row = index[n] / g.wo;
    const float* image = args.in<float>(kX) + row / g.ho * g.h * g.w;
    truth[n] = truth_at(g, image, args.in<float>(kK), row % g.ho, index[n] % g.wo);
  }
}

std::int64_t pieces(const Args& args, int) {
  const Conv2d g = conv2d_geometry(args);
  return divide_up(g.batch * g.ho, kConv2dPieceRows);
}

Status check_axis(std::string_view op, std::string_view axis, std::int64_t size, std::int64_t kernel,
                  std::int64_t stride, std::int64_t pad) {
  const auto wrong = [&](Code code, std::string_view name, std::int64_t value, std::string hint) {
    return Error{code, fmt::format("{}{}={} of {} is out of range", name, axis, value, op), std::move(hint)};
  };
  if (kernel < 1 || kernel > kConv2dLargestKernel) {
    return Error{Code::invalid_shape,
                 fmt::format("k{}={} of {} is out of range", axis == "y" ? "h" : "w", kernel, op),
                 fmt::format("kernels are 1 to {} taps on each axis", kConv2dLargestKernel)};
  }
  if (stride < 1) return wrong(Code::invalid_argument, "stride_", stride, "strides are 1 or more");
  if (pad < 0 || pad >= kernel) {
    return wrong(
        Code::invalid_argument, "pad_", pad,
        fmt::format("padding is 0 to {} for a kernel of {} taps, so that each window meets the image",
                    kernel - 1, kernel));
  }
  if (size < 1 || output_size(size, kernel, stride, pad) < 1) {
    return Error{Code::invalid_shape,
                 fmt::format("{}={} of {} with padding {} is smaller than the kernel's {} taps",
                             axis == "y" ? "h" : "w", size, op, pad, kernel),
                 "use a larger image or a smaller kernel"};
  }
  return {};
}

}  // namespace

Conv2d with_output(Conv2d g) {
  g.ho = output_size(g.h, g.kh, g.stride_y, g.pad_y);
  g.wo = output_size(g.w, g.kw, g.stride_x, g.pad_x);
  return g;
}

Conv2d conv2d_geometry(const Args& args) {
  return with_output(Conv2d{.batch = args.dim[kBatch],
                            .h = args.dim[kH],
                            .w = args.dim[kW],
                            .kh = args.dim[kKh],
                            .kw = args.dim[kKw],
                            .stride_y = args.scalar[kStrideY].i,
                            .stride_x = args.scalar[kStrideX].i,
                            .pad_y = args.scalar[kPadY].i,
                            .pad_x = args.scalar[kPadX].i});
}

Status check(const Conv2d& g, std::string_view op) {
  FULCRUM_CHECK(check_axis(op, "y", g.h, g.kh, g.stride_y, g.pad_y));
  return check_axis(op, "x", g.w, g.kw, g.stride_x, g.pad_x);
}

float conv2d_at(const Conv2d& g, const float* x, const float* k, std::int64_t oy, std::int64_t ox) {
  const std::int64_t y0 = oy * g.stride_y - g.pad_y, x0 = ox * g.stride_x - g.pad_x;
  const Taps rows = taps_inside(y0, g.kh, g.h), columns = taps_inside(x0, g.kw, g.w);
  float sum = 0;
  for (std::int64_t i = rows.first; i < rows.last; ++i) {
    for (std::int64_t j = columns.first; j < columns.last; ++j) {
      sum = std::fma(k[i * g.kw + j], x[(y0 + i) * g.w + x0 + j], sum);
    }
  }
  return sum;
}

Op conv2d() {
  return Op{
      .name = "conv2d",
      .summary = "y[b,i,j] = sum over r,s of k[r,s] * x[b, i*stride_y+r-pad_y, j*stride_x+s-pad_x]",
      .category = "stencil",
      .slots = {in("x", uniform(0, 1)), in_finite("k", uniform(-1, 1)), out("y"), dim("B", 1), dim("h"),
                dim("w"), dim("kh"), dim("kw"), integer("stride_y", 1), integer("stride_x", 1),
                integer("pad_y", 0), integer("pad_x", 0)},
      .extent = extent,
      .validate = [](const Args& args) { return check(conv2d_geometry(args), "conv2d"); },
      .work = work,
      .reference = reference,
      .slice_dim = "B",
      .split = Split{.phases = 1, .pieces = pieces},
      .symbols = {"*conv2d*", "*Conv2d*", "*filter2D*", "*convolve2d*"},
      .default_sizes = {"h=256,w=256,kh=3,kw=3,pad_y=1,pad_x=1", "h=1080,w=1920,kh=3,kw=3,pad_y=1,pad_x=1",
                        "h=1080,w=1920,kh=5,kw=5,pad_y=2,pad_x=2", "h=4096,w=4096,kh=3,kw=3,pad_y=1,pad_x=1",
                        "h=4096,w=4096,kh=7,kw=7,pad_y=3,pad_x=3",
                        "h=257,w=511,kh=4,kw=4,stride_y=2,stride_x=2"},
      .edge_shapes = {"B=0,h=5,w=5,kh=3,kw=3", "B=2,h=17,w=33,kh=3,kw=3,pad_y=1,pad_x=1",
                      "h=19,w=67,kh=3,kw=3", "h=5,w=130,kh=3,kw=3,pad_y=2,pad_x=2",
                      "h=3,w=3,kh=3,kw=3,pad_y=1,pad_x=1", "h=1,w=1,kh=31,kw=31,pad_y=30,pad_x=30",
                      "h=20,w=70,kh=5,kw=5,pad_y=2,pad_x=2", "h=23,w=101,kh=7,kw=7,pad_y=3,pad_x=3",
                      "h=9,w=40,kh=4,kw=6,pad_y=1,pad_x=5", "h=40,w=37,kh=1,kw=3",
                      "h=40,w=37,kh=3,kw=1,pad_y=2", "h=35,w=90,kh=31,kw=31,pad_y=7,pad_x=15",
                      "h=33,w=65,kh=4,kw=4,stride_y=2,stride_x=2",
                      "B=3,h=16,w=80,kh=3,kw=3,stride_y=2,stride_x=2,pad_y=1,pad_x=1",
                      "h=31,w=120,kh=3,kw=5,stride_y=1,stride_x=3,pad_x=4",
                      "h=31,w=120,kh=3,kw=5,stride_y=5,stride_x=1,pad_y=2,pad_x=4",
                      "h=9,w=9,kh=2,kw=2,stride_y=100,stride_x=100"},
      .reference_cost =
          [](const Args& args) { return 3.0 * static_cast<double>(args.dim[kKh] * args.dim[kKw]); },
  };
}

}  // namespace fulcrum::ops
