// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// What the names mean that other tools give to calls, copies and overheads.
#pragma once

#include <fulcrum/core/trace.h>

namespace fulcrum::trace {

/// "cudaLaunchKernelExC", "cuMemcpyHtoDAsync_v2".
CallKind call_kind(std::string_view name);
/// "Memcpy HtoD (Pageable -> Device)": direction and both kinds of memory.
void read_copy_name(std::string_view name, GpuTrace::Op& op);
/// The same the other way round, in the runtime's and in Kineto's words.
std::string_view call_name(CallKind kind, bool async);
std::string copy_name(const GpuTrace::Op& op);
/// "Lazy Function Loading" becomes "lazy load"; what is not known stays as it is, in lower case.
std::string overhead_name(std::string_view name);
/// Blocks an SM holds, by compute capability; 0: not known.
int most_blocks(int major, int minor);
/// Blocks an SM, theoretical occupancy and what limits it, by the rules of the device; left alone where it is not known.
void estimate_occupancy(const GpuTrace::Device& device, LaunchShape& shape);

}  // namespace fulcrum::trace
