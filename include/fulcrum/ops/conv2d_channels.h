// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// The sizes of conv2d_channels by name, its pieces, and the layout in which kernels may keep a padded image between
// the two phases of a split call.
#pragma once

#include <fulcrum/ops.h>

#include <algorithm>

namespace fulcrum::ops {

/// Outputs along one axis; 0 for sizes that validate() refuses, which may be anything.
constexpr std::int64_t conv_outputs(std::int64_t size, std::int64_t kernel, std::int64_t stride,
                                    std::int64_t pad) {
  constexpr std::int64_t kLarge = std::int64_t{1} << 60;
  if (size < 0 || size > kLarge || kernel < 1 || stride < 1 || pad < 0 || pad > kLarge) return 0;
  return size + 2 * pad < kernel ? 0 : (size + 2 * pad - kernel) / stride + 1;
}

/// x[n, in, h, w], k[out, in, kh, kw] -> y[n, out, y_h, y_w].
struct ConvSizes {
  std::int64_t n, in, h, w, out, kh, kw, stride_y, stride_x, pad_y, pad_x, y_h, y_w;

  explicit ConvSizes(const Args& a)
      : n(a.dim[0]),
        in(a.dim[1]),
        h(a.dim[2]),
        w(a.dim[3]),
        out(a.dim[4]),
        kh(a.dim[5]),
        kw(a.dim[6]),
        stride_y(a.scalar[0].i),
        stride_x(a.scalar[1].i),
        pad_y(a.scalar[2].i),
        pad_x(a.scalar[3].i),
        y_h(conv_outputs(h, kh, stride_y, pad_y)),
        y_w(conv_outputs(w, kw, stride_x, pad_x)) {}

  std::int64_t depth() const { return in * kh * kw; }  ///< products of one output
};

/// One image with its zeros around, split into the phases of the strides that a tap reads, a plane each, for every
/// channel: then the input of output (i, j) under tap (r, s) is at j + width * i of plane (r % stride_y, s % stride_x),
/// moved by (s / stride_x) + width * (r / stride_y), for every stride. Outputs are numbered i * width + j; those with
/// j >= y_w are not outputs.
struct ConvLayout {
  std::int64_t phases_y, phases_x;
  std::int64_t width, height, plane, channel, image;  // floats
  /// What vectors may read behind the last plane.
  static constexpr std::int64_t kSlack = 64;

  explicit ConvLayout(const ConvSizes& s)
      : phases_y(std::min(s.stride_y, s.kh)),
        phases_x(std::min(s.stride_x, s.kw)),
        width(s.y_w + (s.kw - 1) / s.stride_x),
        height(s.y_h + (s.kh - 1) / s.stride_y),
        plane(width * height),
        channel(plane * phases_y * phases_x),
        image(channel * s.in + kSlack) {}

  std::int64_t positions(const ConvSizes& s) const { return (s.y_h - 1) * width + s.y_w; }
};

/// Phase 0 has a piece a channel of an image (its padded copy), phase 1 a block of positions of an image against a
/// block of output channels, channels fastest.
inline constexpr std::int64_t kConvChannels = 64;

constexpr std::int64_t conv_channel_blocks(const ConvSizes& s) {
  return (s.out + kConvChannels - 1) / kConvChannels;
}
/// Positions of a block: 192, or 96 or 48 where an image has few blocks and each is much work.
inline std::int64_t conv_block_positions(const ConvSizes& s) {
  constexpr std::int64_t kEnough = 32, kLeastFmas = 1 << 17;  // the latter take a core some microseconds
  const std::int64_t all = ConvLayout(s).positions(s), channels = std::min(s.out, kConvChannels);
  std::int64_t positions = 192;
  while (positions > 48 && (all + positions - 1) / positions * conv_channel_blocks(s) < kEnough &&
         std::min(positions, all) * channels * s.depth() >= 2 * kLeastFmas)
    positions /= 2;
  return positions;
}
inline std::int64_t conv_position_blocks(const ConvSizes& s) {
  const std::int64_t positions = conv_block_positions(s);
  return (ConvLayout(s).positions(s) + positions - 1) / positions;
}

}  // namespace fulcrum::ops
