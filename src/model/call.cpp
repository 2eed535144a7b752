// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// A call as the model sees it: from an op's definition, or as it was measured.
#include <fulcrum/model.h>

#include <algorithm>

namespace fulcrum::model {
namespace {

bool travels(ops::SlotKind kind) {
  return kind == ops::SlotKind::in || kind == ops::SlotKind::out || kind == ops::SlotKind::inout;
}

// Buffers in and out, without inputs that may be left away.
void count_operands(const ops::Op& op, Call& call) {
  int in = 0, out = 0;
  for (const ops::Slot& slot : op.slots) {
    if (!travels(slot.kind) || slot.optional) continue;
    in += slot.kind != ops::SlotKind::out;
    out += slot.kind != ops::SlotKind::in;
  }
  const Shape::Value* cut = op.slice_dim.empty() ? nullptr : call.shape.find(op.slice_dim);
  call.sliceable =
      cut && std::holds_alternative<std::int64_t>(*cut) && std::get<std::int64_t>(*cut) > op.slice_unit;
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
    }
  }
  return call;
}

}  // namespace fulcrum::model
