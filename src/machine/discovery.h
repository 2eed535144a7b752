// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Discovery on a given tree of system files and affinity mask, so that recorded machines can be tested.
#pragma once

#include <fulcrum/machine.h>

#include "machine/system_files.h"

namespace fulcrum::machine {

/// `usable`: CPUs of the affinity mask, ascending; empty: all that are online.
CpuTopology discover_cpu(const SystemFiles& files, std::vector<int> usable);
std::vector<MemoryLevel> discover_levels(const SystemFiles& files, std::vector<int> usable);
Limits discover_limits(const SystemFiles& files);

/// CPUs that this process may run on.
std::vector<int> affinity();
/// Bytes that can be had without swapping; 0: not known.
std::int64_t available_bytes(const SystemFiles& files);

}  // namespace fulcrum::machine
