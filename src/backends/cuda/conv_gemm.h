// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// The sizes of a convolution over channels, and our own kernels for it: an implicit matrix product in fma chains, and one
// on tensor cores.
#pragma once

#include <array>

#include "backends/cuda/runtime.h"

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

struct ConvOperands {
  const float *x = nullptr, *k = nullptr;
  float* y = nullptr;
};

/// A CTA's output channels times positions.
enum class ConvTile : int32_t { channels64_positions128, channels32_positions128, channels32_positions64 };
inline constexpr std::array kConvTiles = {
    ConvTile::channels64_positions128, ConvTile::channels32_positions128, ConvTile::channels32_positions64};

/// The tile by the shape alone: the largest that leaves no multiprocessor idle.
ConvTile conv_tile_for(const ConvShape& shape);

/// Enqueues one call. Each output is one chain of fma over channels, rows and columns of its window, whatever the tile.
fulcrum_status enqueue_conv(const ConvShape& shape, const ConvOperands& operands, ConvTile tile,
                            cudaStream_t stream);

/// The same on tensor cores with the operands rounded to tf32, for shapes whose numbers fit 32 bits.
bool conv_tensor_takes(const ConvShape& shape);
fulcrum_status enqueue_conv_tensor(const ConvShape& shape, const ConvOperands& operands, ConvTile tile,
                                   cudaStream_t stream);

}  // namespace fulcrum::backends::cuda
