// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Types of operands: which kernel takes which shape's, and what they change about a call's work.
#pragma once

#include <fulcrum/backends.h>

namespace fulcrum::backends {

/// The type a kernel names, as a shape says it. An unknown name is an error that lists the known ones.
Result<DType> dtype_of(const Kernel& kernel);
/// Whether the kernel's operands have the shape's type; always so for ops without a choice of types.
bool takes_dtype(const Kernel& kernel, const ops::Op& op, DType dtype);
/// The op's work with the bytes of operands that have the shape's type; op.work() counts them as of the op's first.
Work work_of(const ops::Op& op, const Args& args, DType dtype);

}  // namespace fulcrum::backends
