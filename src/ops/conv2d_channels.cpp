// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// conv2d_channels: the convolution of networks (a cross-correlation: no flip), zero padding, no bias, no groups. It
// is a matmul with K = Cin * kh * kw in all but the way its right side is found.
#include <fulcrum/ops/conv2d_channels.h>

#include <fmt/format.h>

#include "ops/support/dense.h"
#include "ops/support/elementwise.h"

namespace fulcrum::ops {
namespace {

constexpr std::int64_t kLargestKernel = 31;

enum Pointer { kX, kKernel, kY };

std::int64_t extent(const Args& args, int slot) {
  const ConvSizes s(args);
  switch (slot) {
    case kX:
      return product(product(s.n, s.in), product(s.h, s.w));
    case kKernel:
      return product(product(s.out, s.in), product(s.kh, s.kw));
    default:
      return product(product(s.n, s.out), product(s.y_h, s.y_w));
  }
}

Error wrong(Code code, std::string message, std::string hint) {
  return Error{code, fmt::format("{} of conv2d_channels", message), std::move(hint)};
}

/// One axis: the kernel's size, the stride, the padding, and that the kernel fits into the padded image.
Status check_axis(const char* axis, std::int64_t size, std::int64_t kernel, std::int64_t stride,
                  std::int64_t pad) {
  const bool vertical = *axis == 'y';
  const char* kernel_name = vertical ? "kh" : "kw";
  if (size < 1) {
    return wrong(Code::invalid_shape, fmt::format("{}={}", vertical ? "h" : "w", size),
                 "an image has pixels");
  }
  if (kernel < 1 || kernel > kLargestKernel) {
    return wrong(Code::invalid_shape, fmt::format("{}={}", kernel_name, kernel),
                 fmt::format("use 1 to {}", kLargestKernel));
  }
  if (stride < 1) {
    return wrong(Code::invalid_argument, fmt::format("stride_{}={}", axis, stride), "use 1 or more");
  }
  if (pad < 0 || pad >= kernel) {
    return wrong(
        Code::invalid_argument, fmt::format("pad_{}={}", axis, pad),
        fmt::format("use 0 to {}: each window must meet the image ({}={})", kernel - 1, kernel_name, kernel));
  }
  if (size > (std::int64_t{1} << 60) || size + 2 * pad < kernel) {
    return wrong(Code::invalid_shape,
                 fmt::format("{}={} with padding {} against {}={}", vertical ? "h" : "w", size, pad,
                             kernel_name, kernel),
                 "the kernel must fit into the padded image");
  }
  return {};
}

Status validate(const Args& args) {
  const std::int64_t in = args.dim[1], out = args.dim[4];
  if (in < 1 || out < 1) {
    return wrong(Code::invalid_shape, fmt::format("Cin={}, Cout={}", in, out), "use one channel or more");
  }
  FULCRUM_CHECK(check_axis("y", args.dim[2], args.dim[5], args.scalar[0].i, args.scalar[2].i));
  return check_axis("x", args.dim[3], args.dim[6], args.scalar[1].i, args.scalar[3].i);
}

Work work(const Args& args) {
  const ConvSizes s(args);
  const auto x = static_cast<double>(extent(args, kX)), kernel = static_cast<double>(extent(args, kKernel)),
             y = static_cast<double>(extent(args, kY)), k = static_cast<double>(s.depth());
  const double columns = static_cast<double>(s.n * s.y_h * s.y_w) * k;
  return Work{.flops = 2 * y * k,
              .issue_slots = y * k,
              .read_bytes = 4 * (x + kernel),
              .write_bytes = 4 * y,
              .streaming_bytes = 4 * (x + kernel + y) + 8 * columns,
              .link_in_bytes = 4 * (x + kernel),
              .link_out_bytes = 4 * y};
}

/// One output, taps outside of the image left out.
Truth output(const Args& args, const ConvSizes& s, std::int64_t index) {
  const std::int64_t column = index % s.y_w, row = index / s.y_w % s.y_h;
  const std::int64_t channel = index / (s.y_w * s.y_h) % s.out, image = index / (s.y_w * s.y_h * s.out);
  double sum = 0;
  double magnitude = 0;
  for (std::int64_t c = 0; c < s.in; ++c) {
    const float* x = args.in<float>(kX) + (image * s.in + c) * s.h * s.w;
    const float* kernel = args.in<float>(kKernel) + (channel * s.in + c) * s.kh * s.kw;
    for (std::int64_t r = 0; r < s.kh; ++r) {
      const std::int64_t y = row * s.stride_y + r - s.pad_y;
      for (std::int64_t t = 0; t < s.kw && y >= 0 && y < s.h; ++t) {
        const std::int64_t at = column * s.stride_x + t - s.pad_x;
        if (at < 0 || at >= s.w) continue;
        const double term = static_cast<double>(kernel[r * s.kw + t]) * x[y * s.w + at];
        sum += term;
        magnitude += std::abs(term);
      }
    }
  }
  return product_truth(sum, magnitude, product_bound(s.depth()));
}

void reference(const Args& args, int, std::span<const std::int64_t> index, Truth* truth) {
  const ConvSizes s(args);
  for (std::size_t i = 0; i < index.size(); ++i) truth[i] = output(args, s, index[i]);
}

std::string check_all(const Args&, std::span<const Checked> checked) { return check_norm(checked); }

std::int64_t pieces(const Args& args, int phase) {
  const ConvSizes s(args);
  return phase == 0 ? s.n * s.in : s.n * conv_position_blocks(s) * conv_channel_blocks(s);
}

}  // namespace

Op conv2d_channels() {
  return Op{
      .name = "conv2d_channels",
      .summary = "y[n,o,i,j] = sum over c,r,s of k[o,c,r,s] * x[n,c,i*stride_y+r-pad_y,j*stride_x+s-pad_x]",
      .category = "dense",
      .slots = {in("x", uniform(-1, 1)), in_finite("k", uniform(-1, 1)), out("y"), dim("N"), dim("Cin"),
                dim("h"), dim("w"), dim("Cout"), dim("kh"), dim("kw"), integer("stride_y", 1),
                integer("stride_x", 1), integer("pad_y", 0), integer("pad_x", 0)},
      .extent = extent,
      .validate = validate,
      .work = work,
      .reference = reference,
      .check_all = check_all,
      .check_all_drawn_only = true,
      .slice_dim = "N",
      .split = Split{.phases = 2,
                     .pieces = pieces,
                     .scratch_bytes =
                         [](const Args& args) {
                           const ConvSizes s(args);
                           return s.n * ConvLayout(s).image * static_cast<std::int64_t>(sizeof(float));
                         }},
      .symbols = {"*conv2d*", "*Conv2d*", "*convolution*", "*Convolution*", "*implicit_gemm*", "*wino*"},
      .default_sizes = {"N=1,Cin=3,h=256,w=256,Cout=32,kh=3,kw=3,pad_y=1,pad_x=1",
                        "N=1,Cin=64,h=56,w=56,Cout=64,kh=3,kw=3,pad_y=1,pad_x=1",
                        "N=1,Cin=64,h=256,w=256,Cout=64,kh=3,kw=3,pad_y=1,pad_x=1"},
      .edge_shapes = {"N=2,Cin=5,h=17,w=19,Cout=7,kh=3,kw=5,stride_y=2,pad_y=1,pad_x=2",
                      "N=0,Cin=5,h=17,w=19,Cout=7,kh=3,kw=5", "N=1,Cin=1,h=1,w=1,Cout=1,kh=1,kw=1",
                      "N=1,Cin=1,h=4,w=4,Cout=1,kh=3,kw=3,pad_y=1,pad_x=1",
                      "N=1,Cin=3,h=5,w=3,Cout=3,kh=5,kw=3",
                      "N=1,Cin=16,h=9,w=20,Cout=17,kh=3,kw=3,pad_y=1,pad_x=1",
                      "N=1,Cin=16,h=13,w=13,Cout=16,kh=3,kw=3,pad_y=1,pad_x=1",
                      "N=2,Cin=2,h=12,w=13,Cout=9,kh=4,kw=2,stride_y=3,stride_x=2,pad_y=3,pad_x=1",
                      "N=1,Cin=2,h=7,w=70,Cout=65,kh=1,kw=7,stride_x=3,pad_x=6",
                      "N=1,Cin=1,h=40,w=33,Cout=2,kh=31,kw=31,pad_y=30,pad_x=30",
                      "N=1,Cin=2,h=6,w=200,Cout=8,kh=3,kw=3,pad_y=2,pad_x=2",
                      "N=1,Cin=33,h=8,w=8,Cout=5,kh=1,kw=1",
                      "N=3,Cin=4,h=3,w=3,Cout=4,kh=2,kw=2,stride_y=5,stride_x=5",
                      "N=2,Cin=3,h=11,w=23,Cout=5,kh=2,kw=1,stride_y=3,stride_x=4,pad_y=1"},
      .reference_cost = [](const Args& args) { return 6.0 * static_cast<double>(ConvSizes(args).depth()); },
  };
}

}  // namespace fulcrum::ops
