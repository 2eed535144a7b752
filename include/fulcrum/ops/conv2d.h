// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// The geometry of a single-channel convolution, which conv2d and conv_entropy_segment share, and how conv2d falls
// into pieces.
#pragma once

#include <fulcrum/ops.h>

namespace fulcrum::ops {

inline constexpr std::int64_t kConv2dLargestKernel = 31;
/// A piece is so many output rows, counted over all images of the batch.
inline constexpr std::int64_t kConv2dPieceRows = 8;

/// Output (oy, ox) reads rows oy*stride_y - pad_y + [0, kh) and columns alike; taps outside of the image are skipped.
struct Conv2d {
  std::int64_t batch = 1, h = 0, w = 0, kh = 0, kw = 0;
  std::int64_t stride_y = 1, stride_x = 1, pad_y = 0, pad_x = 0;
  std::int64_t ho = 0, wo = 0;  // 0 when the parameters make no sense, which check() says
};

/// Fills in ho and wo.
Conv2d with_output(Conv2d geometry);
/// The arguments of the op conv2d.
Conv2d conv2d_geometry(const Args& args);
/// The ranges of every field; `op` goes into the message.
Status check(const Conv2d& geometry, std::string_view op);

/// One output: a chain of fma in row-major order of the taps, from 0. Bits as every kernel with fma has them.
float conv2d_at(const Conv2d& geometry, const float* x, const float* k, std::int64_t oy, std::int64_t ox);

}  // namespace fulcrum::ops
