// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Where a call may be cut into calls on neighbouring data: the backends cut there, the model prices it.
#pragma once

#include <fulcrum/ops.h>

namespace fulcrum::ops {

/// The number of the dim named Op::slice_dim; -1: the op has none, or this call is a list, which has no even cuts.
inline int slice_dim_of(const Op& op, const Args& args) {
  if (op.slice_dim.empty() || (op.list_lengths && op.list_lengths(args) >= 0)) return -1;
  int index = 0;
  for (const Slot& slot : op.slots) {
    if (slot.kind != SlotKind::dim) continue;
    if (slot.name == op.slice_dim) return index;
    ++index;
  }
  return -1;
}

/// Elements of a slot behind one unit of the dim; 0 when it does not depend on it, -1 when it grows otherwise.
inline std::int64_t elements_of_one(const Op& op, Args args, int dim, int slot) {
  args.dim[dim] = 1;
  const std::int64_t one = op.extent(args, slot);
  args.dim[dim] = 2;
  const std::int64_t two = op.extent(args, slot);
  if (two == one) return 0;
  return two == 2 * one ? one : -1;
}

}  // namespace fulcrum::ops
