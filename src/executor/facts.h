// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// What the engine must know of an op at every call, looked up once: its pointer slots, and how a call is cut.
#pragma once

#include <fulcrum/ops.h>

#include <array>
#include <optional>

namespace fulcrum::executor {

struct SlotFacts {
  bool reads = false, writes = false, optional = false;
};

struct OpFacts {
  const ops::Op* op = nullptr;
  int pointers = 0;
  std::array<SlotFacts, FULCRUM_SLOTS> slots{};
  int slice_dim = -1;

  std::int64_t bytes(const Args& args, int slot, DType dtype) const {
    return op->extent(args, slot) * bytes_of(ops::dtype_of(*op, slot, dtype));
  }
  /// Arrays of pointers: no device sees through them.
  bool is_list(const Args& args) const { return op->list_lengths && op->list_lengths(args) >= 0; }
};
OpFacts facts_of(const ops::Op& op);

/// The type that is meant where a caller may leave it out.
inline DType type_of(const ops::Op& op, std::optional<DType> asked) {
  return asked.value_or(op.dtypes.empty() ? DType::f32 : op.dtypes.front());
}

/// Units [begin, end) of the slice dim of a call on host memory.
Args slice(const OpFacts& facts, const Args& args, DType dtype, std::int64_t begin, std::int64_t end);
/// Whether every operand is cut in proportion or not at all.
bool can_slice(const OpFacts& facts, const Args& args);

}  // namespace fulcrum::executor
