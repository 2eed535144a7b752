// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Our own product of f32 operands by fma alone: each thread makes 8 by 16 outputs, because shared memory feeds the units
// of a multiprocessor only when an operand that was loaded is used that often. Two CTAs may share a tile's terms.
#pragma once

#include "backends/cuda/group_gemm.h"

namespace fulcrum::backends::cuda {

/// Takes what group_takes() takes, with the plans of kWidePlans.
inline constexpr int kWidePlans[] = {0, 1, 2};
/// With terms shared where the tiles alone would leave half of the device idle.
int wide_plan_for(const Gemm& gemm);
/// Enqueues.
fulcrum_status enqueue_wide(const Gemm& gemm, const GemmOperands& operands, int plan, cudaStream_t stream);

}  // namespace fulcrum::backends::cuda
