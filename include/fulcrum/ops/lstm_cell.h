// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// How lstm_cell falls into pieces. A piece owns all four gates of its hidden units, so that the point-wise part needs
// nobody else's sums.
#pragma once

#include <fulcrum/ops.h>

namespace fulcrum::ops {

/// Piece u * batch_blocks + b is hidden units 16 u .. of batch rows 48 b .. .
inline constexpr std::int64_t kLstmUnits = 16;
inline constexpr std::int64_t kLstmRows = 48;

/// Rows of W_ih, W_hh and b come in this order, H of each.
enum LstmGate { kGateInput, kGateForget, kGateCell, kGateOutput, kLstmGates };

}  // namespace fulcrum::ops
