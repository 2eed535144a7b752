// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Which kernel takes what (effort.h). Apart from the kernels: their times stay what they were when this changes.
#pragma once

#include <fulcrum/abi.h>

#include <string_view>

namespace fulcrum::backends::cuda {

/// fulcrum_kernel::effort of a kernel; null: its work says it.
double (*effort_of(std::string_view op, std::string_view variant))(const fulcrum_args*);

}  // namespace fulcrum::backends::cuda
