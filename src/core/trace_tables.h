// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// The long tables of a trace as columns in its JSON.
#pragma once

#include <fulcrum/core/trace.h>

#include "core/json_fields.h"

namespace fulcrum {

/// Adds ops, calls, ranges, overheads, faults, clocks and counter_samples.
void add_trace_tables(const GpuTrace& trace, Json& json);
/// The way back. The first thing that is wrong is kept in `state`.
void read_trace_tables(ReadState& state, const Json& json, GpuTrace& trace);

}  // namespace fulcrum
