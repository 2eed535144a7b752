// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// The sizes of a convolution over channels.
#pragma once

#include <compare>
#include <cstdint>

namespace fulcrum::backends::cuda {

/// x[n, in, h, w], k[out, in, kh, kw] -> y[n, out, y_h, y_w].
struct ConvShape {
  int64_t n = 0, in = 0, h = 0, w = 0, out = 0, kh = 0, kw = 0;
  int64_t stride_y = 1, stride_x = 1, pad_y = 0, pad_x = 0, y_h = 0, y_w = 0;

  int64_t depth() const { return in * kh * kw; }
  int64_t positions() const { return n * y_h * y_w; }
  int64_t outputs() const { return positions() * out; }
  auto operator<=>(const ConvShape&) const = default;
};

}  // namespace fulcrum::backends::cuda
