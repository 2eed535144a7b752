// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// The fma chains of gemm.h with as much of C in registers as they hold, for f32 operands whose rows are whole vectors
// of 16 bytes: the same sums, and the rate of the arithmetic units where tiles fill the device.
#pragma once

#include "backends/cuda/gemm.h"

namespace fulcrum::backends::cuda {

/// Tiles of C, and how much of one a thread has.
enum class WideTile : int32_t { t128x64_by_8x8, t128x64_by_8x4, t128x128_by_8x8 };
inline constexpr WideTile kWideTiles[] = {WideTile::t128x64_by_8x8, WideTile::t128x64_by_8x4,
                                          WideTile::t128x128_by_8x8};

/// Enqueues; launch errors are left for launched(). It takes what tensor_takes() says of f32 operands.
void enqueue_wide(const Gemm& gemm, const GemmOperands& operands, WideTile tile, cudaStream_t stream);

}  // namespace fulcrum::backends::cuda
