// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// conv2d_channels, directly: for each output the taps that meet the image, in the order of the weights. Needs no
// padded copy, so that the first phase of a split call is empty.
#include <fulcrum/ops/conv2d_channels.h>

#include "backends/scalar/common.h"

namespace fulcrum::backends::scalar::kernels {
namespace {

enum Pointer { kX, kKernel, kY };

/// Taps [first, last) of `taps` that fall on pixels [0, size) when the first falls on `at`.
struct Taps {
  std::int64_t first, last;
  Taps(std::int64_t at, std::int64_t taps, std::int64_t size)
      : first(std::max<std::int64_t>(0, -at)), last(std::min(taps, size - at)) {}
};

float output(const fulcrum_args& a, const ops::ConvSizes& s, std::int64_t image, std::int64_t channel,
             std::int64_t row, std::int64_t column) {
  const std::int64_t y = row * s.stride_y - s.pad_y, x = column * s.stride_x - s.pad_x;
  const Taps down(y, s.kh, s.h), across(x, s.kw, s.w);
  float sum = 0;
  for (std::int64_t c = 0; c < s.in; ++c) {
    const float* pixels = a.in<float>(kX) + ((image * s.in + c) * s.h + y) * s.w + x;
    const float* kernel = a.in<float>(kKernel) + (channel * s.in + c) * s.kh * s.kw;
    for (std::int64_t r = down.first; r < down.last; ++r) {
      for (std::int64_t t = across.first; t < across.last; ++t)
        sum += kernel[r * s.kw + t] * pixels[r * s.w + t];
    }
  }
  return sum;
}

void partial(const fulcrum_args* a, std::int32_t phase, std::int64_t begin, std::int64_t end, void*) {
  if (phase == 0) return;
  const ops::ConvSizes s(*a);
  const ops::ConvLayout layout(s);
  const std::int64_t channel_blocks = ops::conv_channel_blocks(s), blocks = ops::conv_position_blocks(s);
  const std::int64_t positions = ops::conv_block_positions(s);
  for (std::int64_t piece = begin; piece < end; ++piece) {
    const std::int64_t image = piece / channel_blocks / blocks;
    const std::int64_t position = piece / channel_blocks % blocks * positions;
    const std::int64_t channel = piece % channel_blocks * ops::kConvChannels;
    const std::int64_t last = std::min(position + positions, layout.positions(s));
    for (std::int64_t o = channel; o < std::min(channel + ops::kConvChannels, s.out); ++o) {
      float* y = a->out<float>(kY) + (image * s.out + o) * s.y_h * s.y_w;
      for (std::int64_t at = position; at < last; ++at) {
        const std::int64_t row = at / layout.width, column = at % layout.width;
        if (column < s.y_w) y[row * s.y_w + column] = output(*a, s, image, o, row, column);
      }
    }
  }
}

fulcrum_status run(const fulcrum_args* a, void*, std::int64_t count) {
  const ops::ConvSizes s(*a);
  const std::int64_t pieces = s.n * ops::conv_position_blocks(s) * ops::conv_channel_blocks(s);
  for (std::int64_t i = 0; i < count; ++i) partial(a, 1, 0, pieces, nullptr);
  return done();
}

}  // namespace

std::span<const fulcrum_kernel> conv2d_channels() {
  static const fulcrum_kernel kernels[] = {make_kernel(1, run, partial)};
  return kernels;
}

}  // namespace fulcrum::backends::scalar::kernels
