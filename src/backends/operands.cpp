// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// See operands.h.
#include "backends/operands.h"

#include <fmt/format.h>
#include <fulcrum/ops/slices.h>

namespace fulcrum::backends {
namespace {

std::int32_t role_of(ops::SlotKind kind) {
  if (kind == ops::SlotKind::inout) return FULCRUM_INOUT;
  return kind == ops::SlotKind::out ? FULCRUM_OUT : FULCRUM_IN;
}

bool is_pointer(ops::SlotKind kind) {
  return kind == ops::SlotKind::in || kind == ops::SlotKind::out || kind == ops::SlotKind::inout;
}

}  // namespace

Operands cut_operands(const ops::Op& op, const Args& args, DType dtype) {
  Operands result;
  result.slice_dim = ops::slice_dim_of(op, args);
  result.slice_unit = op.slice_unit;
  int slot = 0;
  for (const ops::Slot& described : op.slots) {
    if (!is_pointer(described.kind)) continue;
    if (args.ptr[slot]) {
      const std::int64_t size = bytes_of(ops::dtype_of(op, slot, dtype));
      const std::int64_t one =
          result.slice_dim < 0 ? 0 : ops::elements_of_one(op, args, result.slice_dim, slot);
      // Element-wise ops are cut between elements: a batch of vectors in one buffer has no such cut along n.
      if (one < 0 || (op.in_place && one > 1)) result.slice_dim = -1;
      result.list.push_back(fulcrum_operand{slot, role_of(described.kind), op.extent(args, slot) * size,
                                            one > 0 ? one * size : 0});
    }
    ++slot;
  }
  if (result.slice_dim < 0) {
    for (fulcrum_operand& operand : result.list) operand.slice_bytes = 0;
  }
  return result;
}

std::vector<fulcrum_operand> operands_of(const ops::Op& op, const Args& args, DType dtype) {
  return cut_operands(op, args, dtype).list;
}

Result<Operands> checked_operands(const Kernel& kernel, const Args& host) {
  FULCRUM_TRY(const ops::Op* op, ops::find(kernel.op()));
  FULCRUM_TRY(const DType dtype, parse_enum<DType>("dtype", kernel.dtype()));
  FULCRUM_CHECK(ops::check_args(*op, host));
  FULCRUM_CHECK(ops::check_pointers(*op, host, dtype));
  if (!has_memory(kernel.backend())) {
    return Error{Code::unsupported,
                 fmt::format("the backend {} has no memory of its own", kernel.backend().name()),
                 "use the regime host"};
  }
  if (!kernel.supports(host)) {
    return Error{Code::unsupported,
                 fmt::format("{} does not support {}", kernel.name(), ops::shape_of(*op, host).text()),
                 "use another variant or backend"};
  }
  return cut_operands(*op, host, dtype);
}

}  // namespace fulcrum::backends
