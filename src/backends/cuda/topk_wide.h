// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// The search for candidates that only devices of compute capability 9.0 run. See topk_wide_90a.cu.
#pragma once

#include "backends/cuda/runtime.h"

namespace fulcrum::backends::cuda::topk {

struct TensorSearch;

inline constexpr int kWideQueries = 256;
inline constexpr int kWideMostK = 16;
/// Rows and queries lie at multiples of 16 bytes.
fulcrum_status enqueue_wide(const TensorSearch& search, bool programmatic, void* stream);

}  // namespace fulcrum::backends::cuda::topk
