// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Our own matrix product by warpgroups, of 16-bit operands or of f32 taken as tf32, sums in f32, bias and activation on them before the one
// rounding. Two CTAs may share a tile's terms: the sums of the upper ones are then added to those of the lower ones. For
// products that are over in a few launches' time, where a pass of its own for the epilogue costs much.
#pragma once

#include "backends/cuda/gemm.h"
#include "backends/cuda/runtime.h"

namespace fulcrum::backends::cuda {

/// CTAs that share a tile's terms.
inline constexpr int kGroupSplits[] = {1, 2};

/// Rows of A and B are whole chunks of 16 bytes, at such addresses; a device of 9.0.
bool group_takes(const Gemm& gemm, const GemmOperands& operands);
/// Two where one would leave half of the device idle.
int group_split_for(const Gemm& gemm);
/// Enqueues; `operands` as group_takes() wants them.
fulcrum_status enqueue_group(const Gemm& gemm, const GemmOperands& operands, int split, cudaStream_t stream);
/// The f32 half of it.
fulcrum_status enqueue_group_tf32(const Gemm& gemm, const GemmOperands& operands, int split,
                                  cudaStream_t stream);

}  // namespace fulcrum::backends::cuda
