// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Where the elements of a convolution's windows lie: the walk along their depth (channels, rows and columns as one
// axis), and which of them are inside of the image.
#pragma once

#include <cstdint>
#include <limits>

#include "backends/cuda/conv_shape.h"

namespace fulcrum::backends::cuda::conv {

constexpr int kSlab = 8;  // depths that arrive together

/// What every thread needs to know, in the index type of the kernel.
template <class Index>
struct ConvGeometry {
  Index h, w, kh, kw, stride_y, stride_x, pad_y, pad_x, y_w;
  Index plane, row_step,
      channel_step;  // of the image: a channel, and from the end of a window's row to the next one
  Index depth, out;
  // How far the place inside a window moves when a thread's depth moves past the other threads' of its slab.
  Index skip_channels, skip_rows, skip_columns;
  int64_t image, y_plane, positions;
  int channel_tiles;
};

/// A place inside the windows: channel, row and column as one depth, and the element it stands for.
template <class Index>
struct Tap {
  Index depth = 0, row = 0, column = 0, offset = 0;

  constexpr void step(const ConvGeometry<Index>& g) {
    ++depth;
    ++column;
    ++offset;
    if (column < g.kw) return;
    column = 0;
    offset += g.row_step;
    if (++row < g.kh) return;
    row = 0;
    offset += g.channel_step;
  }
  constexpr void skip(const ConvGeometry<Index>& g, int depths) {
    depth += depths;
    column += g.skip_columns;
    row += g.skip_rows;
    offset += g.skip_channels * g.plane + g.skip_rows * g.w + g.skip_columns;
    if (column >= g.kw) {
      column -= g.kw;
      ++row;
      offset += g.row_step;
    }
    if (row >= g.kh) {
      row -= g.kh;
      offset += g.channel_step;
    }
  }
};

/// Bit i: whether place `corner` + i of an axis lies inside of its `size`, for i below `count`, which is at most 31.
template <class Index>
constexpr uint32_t inside_bits(Index corner, Index size, Index count) {
  const Index begin = corner < 0 ? -corner : 0, end = size - corner < count ? size - corner : count;
  if (begin >= end) return 0;
  return (1U << end) - (1U << begin);
}

/// For a CTA of `channels` whose threads have `taps` depths of a slab each.
template <class Index>
ConvGeometry<Index> geometry_of(const ConvShape& s, int channels, int taps) {
  const int64_t skipped = kSlab - taps;  // depths of the other threads
  return ConvGeometry<Index>{
      .h = static_cast<Index>(s.h),
      .w = static_cast<Index>(s.w),
      .kh = static_cast<Index>(s.kh),
      .kw = static_cast<Index>(s.kw),
      .stride_y = static_cast<Index>(s.stride_y),
      .stride_x = static_cast<Index>(s.stride_x),
      .pad_y = static_cast<Index>(s.pad_y),
      .pad_x = static_cast<Index>(s.pad_x),
      .y_w = static_cast<Index>(s.y_w),
      .plane = static_cast<Index>(s.h * s.w),
      .row_step = static_cast<Index>(s.w - s.kw),
      .channel_step = static_cast<Index>(s.h * s.w - s.kh * s.w),
      .depth = static_cast<Index>(s.depth()),
      .out = static_cast<Index>(s.out),
      .skip_channels = static_cast<Index>(skipped / (s.kh * s.kw)),
      .skip_rows = static_cast<Index>(skipped / s.kw % s.kh),
      .skip_columns = static_cast<Index>(skipped % s.kw),
      .image = s.in * s.h * s.w,
      .y_plane = s.y_h * s.y_w,
      .positions = s.positions(),
      .channel_tiles = static_cast<int>((s.out + channels - 1) / channels),
  };
}

/// Whether all that the 32-bit kernel counts stays below 2^31, with room for a
/// slab more.
inline bool is_small(const ConvShape& s) {
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max() / 2;
  return s.in * s.h * s.w < kMost && s.depth() < kMost && s.out < kMost && s.y_h * s.stride_y < kMost &&
         s.y_w * s.stride_x < kMost;
}

}  // namespace fulcrum::backends::cuda::conv
