// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// See facts.h.
#include "executor/facts.h"

#include <fulcrum/ops/slices.h>

namespace fulcrum::executor {
namespace {

std::int64_t elements_of_one(const OpFacts& facts, const Args& args, int slot) {
  return ops::elements_of_one(*facts.op, args, facts.slice_dim, slot);
}

}  // namespace

OpFacts facts_of(const ops::Op& op) {
  OpFacts facts{.op = &op};
  int dim = 0;
  for (const ops::Slot& slot : op.slots) {
    using Kind = ops::SlotKind;
    if (slot.kind == Kind::in || slot.kind == Kind::out || slot.kind == Kind::inout) {
      auto& at = facts.slots[static_cast<std::size_t>(facts.pointers++)];
      at.reads = slot.kind != Kind::out;
      at.writes = slot.kind != Kind::in;
      at.optional = slot.optional;
    }
    if (slot.kind != Kind::dim) continue;
    if (!op.slice_dim.empty() && slot.name == op.slice_dim) facts.slice_dim = dim;
    ++dim;
  }
  return facts;
}

bool can_slice(const OpFacts& facts, const Args& args) {
  if (facts.slice_dim < 0 || facts.is_list(args) || args.prepared) return false;
  for (int slot = 0; slot < facts.pointers; ++slot) {
    if (!args.ptr[slot]) continue;
    const std::int64_t one = elements_of_one(facts, args, slot);
    // Element-wise ops are cut between elements: a batch of vectors in one buffer has no such cut along n.
    if (one < 0 || (facts.op->in_place && one > 1)) return false;
  }
  return true;
}

Args slice(const OpFacts& facts, const Args& args, DType dtype, std::int64_t begin, std::int64_t end) {
  Args part = args;
  part.dim[facts.slice_dim] = end - begin;
  for (int slot = 0; slot < facts.pointers; ++slot) {
    if (!args.ptr[slot]) continue;
    const std::int64_t one = elements_of_one(facts, args, slot);
    const std::int64_t bytes = one * begin * bytes_of(ops::dtype_of(*facts.op, slot, dtype));
    part.ptr[slot] = static_cast<std::byte*>(args.ptr[slot]) + bytes;
  }
  return part;
}

}  // namespace fulcrum::executor
