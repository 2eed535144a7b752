// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// How lstm_cell falls into pieces, and how lstm_sequence is made of its calls. A piece owns all four gates of its
// hidden units, so that the point-wise part needs nobody else's sums.
#pragma once

#include <fulcrum/ops.h>

namespace fulcrum::ops {

/// Piece u * batch_blocks + b is hidden units 16 u .. of batch rows 48 b .. .
inline constexpr std::int64_t kLstmUnits = 16;
inline constexpr std::int64_t kLstmRows = 48;

/// Rows of W_ih, W_hh and b come in this order, H of each.
enum LstmGate { kGateInput, kGateForget, kGateCell, kGateOutput, kLstmGates };

/// Slots of lstm_sequence are those of lstm_cell, with all hidden states in the place of the next one and T in front of
/// the sizes.
enum LstmSequencePointer { kSequenceX, kSequenceH, kSequenceC, kSequenceY = 6, kSequenceNextC = 7 };
enum LstmSequenceDim { kSequenceSteps, kSequenceBatch, kSequenceInputs, kSequenceHidden };

/// The call of lstm_cell that is step t of a sequence; its plan stays. The state between steps lives where the last one
/// goes: a unit reads its own before it writes it.
inline Args lstm_step(const Args& sequence, std::int64_t t) {
  const std::int64_t batch = sequence.dim[kSequenceBatch], inputs = sequence.dim[kSequenceInputs],
                     hidden = sequence.dim[kSequenceHidden];
  Args cell = sequence;
  cell.dim[0] = batch, cell.dim[1] = inputs, cell.dim[2] = hidden, cell.dim[3] = 0;
  if (t > 0) {
    cell.ptr[kSequenceX] = static_cast<float*>(sequence.ptr[kSequenceX]) + t * batch * inputs;
    cell.ptr[kSequenceH] = static_cast<float*>(sequence.ptr[kSequenceY]) + (t - 1) * batch * hidden;
    cell.ptr[kSequenceC] = sequence.ptr[kSequenceNextC];
    cell.ptr[kSequenceY] = static_cast<float*>(sequence.ptr[kSequenceY]) + t * batch * hidden;
  }
  return cell;
}

}  // namespace fulcrum::ops
