// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// What tracing costs on this machine: one small kernel launched over and over, with and without the tracer.
#pragma once

#include <fulcrum/trace.h>

#include "cli/context.h"

namespace fulcrum::cli {

/// Seconds of a call in each round, without and with the tracer.
struct CallTimes {
  std::vector<double> bare, traced;
};
/// What a record costs by the medians of both; an error when they cannot be told apart.
Result<trace::Costs> costs_of(const CallTimes& times);

/// Takes the times with this program's own `bench` on the GPU, in turns.
Result<CallTimes> measure_tracing(Context& context);

}  // namespace fulcrum::cli
