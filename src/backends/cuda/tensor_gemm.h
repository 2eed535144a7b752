// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Our own matrix product on tensor cores, for tf32, f16 and bf16: sums in f32, bias and activation on them before the
// one rounding. The terms of an output are added in the same order by every tile, so its bits depend on nothing else.
#pragma once

#include "backends/cuda/gemm.h"
#include "backends/cuda/runtime.h"

namespace fulcrum::backends::cuda {

/// The tiles of C that it is built for.
enum class TensorTile : int32_t { t128x128, t128x64, t128x64_wide, t64x64, t32x32 };
inline constexpr TensorTile kTensorTiles[] = {TensorTile::t128x128, TensorTile::t128x64,
                                              TensorTile::t128x64_wide, TensorTile::t64x64,
                                              TensorTile::t32x32};

/// Rows of A and B must be whole chunks of 16 bytes, at such addresses. f32 operands are taken as tf32.
bool tensor_takes(const Gemm& gemm);
bool tensor_takes(const Gemm& gemm, const GemmOperands& operands);
/// The largest tile that gives most multiprocessors work.
TensorTile tensor_tile_for(const Gemm& gemm);
/// Enqueues; `operands` as tensor_takes() wants them.
fulcrum_status enqueue_tensor(const Gemm& gemm, const GemmOperands& operands, TensorTile tile,
                              cudaStream_t stream);

}  // namespace fulcrum::backends::cuda
