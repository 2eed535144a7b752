// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Our own matrix product on tensor cores: f32 operands taken as tf32, sums in f32, bias and activation on them. The
// terms of an output are added in the same order by every tile, so its bits depend on nothing else. It is for products
// that hardly fill the device; larger ones are the library's, whose CTAs share what they read.
#pragma once

#include "backends/cuda/gemm.h"
#include "backends/cuda/runtime.h"

namespace fulcrum::backends::cuda {

/// The tiles of C that it is built for, largest first.
enum class TensorTile : int32_t { t64x64, t64x32, t32x32 };
inline constexpr TensorTile kTensorTiles[] = {TensorTile::t64x64, TensorTile::t64x32, TensorTile::t32x32};

/// f32, rows of A and B whole chunks of 16 bytes, at such addresses.
bool tensor_takes(const Gemm& gemm, const GemmOperands& operands);
/// The largest tile that gives most multiprocessors work.
TensorTile tensor_tile_for(const Gemm& gemm);
/// Enqueues; `operands` as tensor_takes() wants them.
fulcrum_status enqueue_tensor(const Gemm& gemm, const GemmOperands& operands, TensorTile tile,
                              cudaStream_t stream);

}  // namespace fulcrum::backends::cuda
