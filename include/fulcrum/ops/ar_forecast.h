// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// How ar_forecast falls into pieces.
#pragma once

#include <fulcrum/ops.h>

namespace fulcrum::ops {

/// Piece i is series 64 i .. : enough to fill the vectors that hide the latency of a chain of fmas.
inline constexpr std::int64_t kArSeries = 64;
inline constexpr std::int64_t kArLargestOrder = 1024;

}  // namespace fulcrum::ops
