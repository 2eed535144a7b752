// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// See dtypes.h.
#include <fulcrum/backends/dtypes.h>

namespace fulcrum::backends {
namespace {

/// Bytes of the operands that are there, in all of one direction: as the type says, over as the op's first.
double byte_ratio(const ops::Op& op, const Args& args, DType dtype, ops::SlotKind not_counted) {
  double typed_bytes = 0, first_bytes = 0;
  int pointer = -1;
  for (const ops::Slot& slot : op.slots) {
    const bool is_pointer = slot.kind == ops::SlotKind::in || slot.kind == ops::SlotKind::out ||
                            slot.kind == ops::SlotKind::inout;
    if (!is_pointer) continue;
    ++pointer;
    if (slot.kind == not_counted || (slot.optional && !args.ptr[pointer])) continue;
    const auto elements = static_cast<double>(op.extent(args, pointer));
    typed_bytes += elements * static_cast<double>(bytes_of(ops::dtype_of(op, pointer, dtype)));
    first_bytes += elements * static_cast<double>(bytes_of(ops::dtype_of(op, pointer, op.dtypes.front())));
  }
  return first_bytes > 0 ? typed_bytes / first_bytes : 1;
}

}  // namespace

Result<DType> dtype_of(const Kernel& kernel) { return parse_enum<DType>("dtype", kernel.dtype()); }

bool takes_dtype(const Kernel& kernel, const ops::Op& op, DType dtype) {
  return op.dtypes.empty() || kernel.dtype() == to_string(dtype);
}

Work work_of(const ops::Op& op, const Args& args, DType dtype) {
  Work work = op.work(args);
  if (op.dtypes.empty() || dtype == op.dtypes.front()) return work;
  const double in = byte_ratio(op, args, dtype, ops::SlotKind::out);
  const double out = byte_ratio(op, args, dtype, ops::SlotKind::in);
  const double again = work.streaming_bytes - work.bytes();  // what further passes read
  work.read_bytes *= in;
  work.link_in_bytes *= in;
  work.write_bytes *= out;
  work.link_out_bytes *= out;
  if (work.streaming_bytes > 0) work.streaming_bytes = work.bytes() + in * again;
  return work;
}

}  // namespace fulcrum::backends
