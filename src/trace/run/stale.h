// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Whether a program was traced that is older than its sources, or than another build of it.
#pragma once

#include <fulcrum/core/trace.h>

namespace fulcrum::trace {

/// Sets `newer` and `newer_by_ns` of binaries that are still on the disk as they were traced. Those of the system and
/// of installed packages are left alone.
void look_for_newer(std::vector<GpuTrace::Binary>& binaries);

}  // namespace fulcrum::trace
