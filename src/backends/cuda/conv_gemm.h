// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Our own kernels for a convolution over channels: an implicit matrix product in fma chains, and one on tensor cores.
#pragma once

#include <array>

#include "backends/cuda/conv_shape.h"
#include "backends/cuda/runtime.h"

namespace fulcrum::backends::cuda {

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
