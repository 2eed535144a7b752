// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Our own matrix product by warpgroups, of 16-bit operands or of f32, sums in f32, bias and activation on them before
// the one rounding. Two CTAs may share a tile's terms: the sums of the upper ones are then added to those of the lower
// ones. For products that are over in a few launches' time, where a pass of its own for the epilogue costs much, and for
// f32, which tensor cores multiply in three products of tf32 faster than anything else does in one.
#pragma once

#include "backends/cuda/gemm.h"
#include "backends/cuda/runtime.h"

namespace fulcrum::backends::cuda {

/// CTAs that share a tile's terms.
inline constexpr int kGroupSplits[] = {1, 2};

struct GroupWay {
  int split = 1;     // of kGroupSplits
  int products = 1;  // of tf32 for one of f32: 1 rounds the operands to tf32, 3 keep the precision of f32
};

/// Rows of A and B are whole chunks of 16 bytes, at such addresses; a device of 9.0.
bool group_takes(const Gemm& gemm, const GemmOperands& operands, int products);
/// Two where one would leave half of the device idle.
int group_split_for(const Gemm& gemm);
/// Enqueues; `operands` as group_takes() wants them.
fulcrum_status enqueue_group(const Gemm& gemm, const GemmOperands& operands, const GroupWay& way,
                             cudaStream_t stream);
/// The f32 half of it.
fulcrum_status enqueue_group_f32(const Gemm& gemm, const GemmOperands& operands, const GroupWay& way,
                                 cudaStream_t stream);

}  // namespace fulcrum::backends::cuda
