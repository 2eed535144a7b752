// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Frames, stacks and samples of a profile as tables of numbers in its JSON.
#pragma once

#include <fulcrum/core/profile.h>

#include "core/json_fields.h"

namespace fulcrum {

/// Adds strings, frames, nodes, stacks, truncated and samples.
void add_profile_tables(const CpuProfile& profile, Json& json);
/// The way back; `profile` has its threads and regions already, which samples name by number. The first thing that is
/// wrong is kept in `state`.
void read_profile_tables(ReadState& state, const Json& json, CpuProfile& profile);

}  // namespace fulcrum
