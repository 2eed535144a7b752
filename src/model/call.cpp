// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// A call as the model sees it: from an op's definition, or as it was measured.
#include <fulcrum/model.h>
#include <fulcrum/ops/slices.h>

#include <algorithm>

namespace fulcrum::model {
namespace {

bool travels(ops::SlotKind kind) {
  return kind == ops::SlotKind::in || kind == ops::SlotKind::out || kind == ops::SlotKind::inout;
}

// How a backend may cut the call: what its pieces share, and whether there are pieces at all.
void find_pieces(const ops::Op& op, const Args& args, Call& call) {
  const int dim = ops::slice_dim_of(op, args);
  if (dim < 0) return;
  double whole = 0;
  int operands = 0, slot = -1;
  for (const ops::Slot& described : op.slots) {
    if (!travels(described.kind)) continue;
    ++slot;
    if (described.optional) continue;
    const std::int64_t one = ops::elements_of_one(op, args, dim, slot);
    // A result that pieces share, or an operand without even cuts, cannot be cut.
    if (one < 0 || (op.in_place && one > 1) || (one == 0 && described.kind != ops::SlotKind::in)) return;
    if (one > 0) continue;
    whole += static_cast<double>(op.extent(args, slot) * bytes_of(ops::dtype_of(op, slot, call.shape.dtype)));
    ++operands;
  }
  call.sliceable = args.dim[dim] > op.slice_unit;
  call.shares_nothing = operands == 0;
  call.whole_bytes = std::min(whole, call.work.link_in_bytes);
  call.whole_operands = operands;
}

// Buffers in and out, without inputs that may be left away.
void count_operands(const ops::Op& op, Call& call) {
  int in = 0, out = 0;
  for (const ops::Slot& slot : op.slots) {
    if (!travels(slot.kind) || slot.optional) continue;
    in += slot.kind != ops::SlotKind::out;
    out += slot.kind != ops::SlotKind::in;
  }
  call.operands_in = std::max(1, in);
  call.operands_out = std::max(1, out);
}

}  // namespace

Result<Call> call_of(std::string_view op_name, const Shape& shape, std::string_view precision) {
  FULCRUM_TRY(const ops::Op* op, ops::find(op_name));
  FULCRUM_TRY(Shape completed, ops::complete(*op, shape));
  FULCRUM_TRY(const Args args, ops::resolve(*op, completed));
  Call call;
  call.op = op->name;
  call.category = op->category;
  call.shape = std::move(completed);
  call.work = op->work(args);
  call.precision = precision;
  call.outputs = static_cast<double>(ops::outputs(*op, args));
  count_operands(*op, call);
  find_pieces(*op, args, call);
  return call;
}

Call call_of(const Measurement& measurement) {
  Call call;
  call.op = measurement.op;
  call.shape = measurement.shape;
  call.work = measurement.work;
  call.precision = measurement.precision;
  call.cache = measurement.cache;
  if (const auto op = ops::find(measurement.op); op.ok()) {
    call.category = (*op)->category;
    count_operands(**op, call);
    if (const auto args = ops::resolve(**op, measurement.shape); args.ok()) {
      call.outputs = static_cast<double>(ops::outputs(**op, *args));
      find_pieces(**op, *args, call);
    }
  }
  return call;
}

}  // namespace fulcrum::model
