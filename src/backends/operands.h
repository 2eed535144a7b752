// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// A call's operands with the way they may be cut, checked before a byte moves.
#pragma once

#include <fulcrum/backends/device.h>

namespace fulcrum::backends {

struct Operands {
  std::vector<fulcrum_operand> list;
  int slice_dim = -1;
  std::int64_t slice_unit = 1;
};
Operands cut_operands(const ops::Op& op, const Args& args, DType dtype);
/// The same for a kernel and host data, or why the kernel cannot take them.
Result<Operands> checked_operands(const Kernel& kernel, const Args& host);

}  // namespace fulcrum::backends
