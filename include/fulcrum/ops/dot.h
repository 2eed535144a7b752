// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// How dot falls into pieces.
#pragma once

#include <fulcrum/ops.h>

namespace fulcrum::ops {

/// Piece p is the chunk [4096 p, 4096 p + 4096); it stores its sum as double in scratch[p]. combine() adds them in
/// index order, in fp64, starting at 0, and writes the output.
inline constexpr std::int64_t kDotChunk = 4096;

}  // namespace fulcrum::ops
