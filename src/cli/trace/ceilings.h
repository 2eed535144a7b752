// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// What is known of the GPU that a trace is of: from this machine's profile, or from one that comes with the program.
#pragma once

#include <fulcrum/diagnose.h>
#include <fulcrum/trace.h>

namespace fulcrum::cli {

struct Ceilings {
  trace::Costs costs;
  diagnose::Roofs roofs;
};
/// By the device's name; what nobody measured stays zero.
Ceilings ceilings_of(const GpuTrace& trace);

/// What tracing adds to a launch on this machine, as an earlier calibration kept it; zero: not known.
trace::Costs kept_costs();
Status keep_costs(const trace::Costs& costs);

}  // namespace fulcrum::cli
