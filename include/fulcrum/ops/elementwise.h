// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// How element-wise ops fall into pieces.
#pragma once

#include <fulcrum/ops.h>

namespace fulcrum::ops {

/// Piece p is the elements [16 p, 16 p + 16), a cache line of f32. vec_add in list form: piece p is vector p.
inline constexpr std::int64_t kElementPiece = 16;

}  // namespace fulcrum::ops
