// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// How lstm_cell falls into pieces, and how lstm_sequence is made of its calls. A piece owns all four gates of its
// hidden units, so that the point-wise part needs nobody else's sums.
#pragma once

#include <fulcrum/ops.h>

#include <algorithm>

namespace fulcrum::ops {

/// Piece u * batch_blocks + b is hidden units 16 u .. of batch rows 48 b .. .
inline constexpr std::int64_t kLstmUnits = 16;
inline constexpr std::int64_t kLstmRows = 48;

inline std::int64_t lstm_pieces(std::int64_t hidden, std::int64_t batch) {
  return (hidden + kLstmUnits - 1) / kLstmUnits * ((batch + kLstmRows - 1) / kLstmRows);
}

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

/// Batch rows know nothing of each other: a piece of a sequence may be a row with all its steps, and nobody waits for
/// anybody between them. So it is where a step is short beside handing it out, and where there are rows for several
/// threads and weights that fit into a core's own cache. Else steps are phases, whose pieces are those of a cell; without
/// steps one phase hands the state on.
inline bool lstm_by_rows(const Args& sequence) {
  constexpr double kShortStep = 400e3, kMostWeights = 128 << 10, kManyRows = 12;  // in multiplications
  const auto rows = static_cast<double>(sequence.dim[kSequenceBatch]),
             inputs = static_cast<double>(sequence.dim[kSequenceInputs]),
             hidden = static_cast<double>(sequence.dim[kSequenceHidden]);
  const double weights = static_cast<double>(kLstmGates) * hidden * (inputs + hidden);
  return rows >= 2 && (weights * rows <= kShortStep || (weights <= kMostWeights && rows >= kManyRows));
}

inline int lstm_sequence_phases(const Args& sequence) {
  return lstm_by_rows(sequence) ? 1
                                : static_cast<int>(std::max<std::int64_t>(1, sequence.dim[kSequenceSteps]));
}
inline std::int64_t lstm_sequence_pieces(const Args& sequence) {
  const std::int64_t batch = sequence.dim[kSequenceBatch];
  return lstm_by_rows(sequence) ? batch : lstm_pieces(sequence.dim[kSequenceHidden], batch);
}

/// The call of lstm_cell for rows [begin, end) of `cell`'s.
inline Args lstm_rows(Args cell, std::int64_t begin, std::int64_t end) {
  const std::int64_t inputs = cell.dim[1], hidden = cell.dim[2];
  for (const int slot :
       {kSequenceX + 0, kSequenceH + 0, kSequenceC + 0, kSequenceY + 0, kSequenceNextC + 0}) {
    float* rows = static_cast<float*>(cell.ptr[slot]);
    if (rows) cell.ptr[slot] = rows + begin * (slot == kSequenceX ? inputs : hidden);
  }
  cell.dim[0] = end - begin;
  return cell;
}

}  // namespace fulcrum::ops
