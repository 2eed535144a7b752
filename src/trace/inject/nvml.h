// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Clocks, power, temperature, what holds the clocks down, and who else computes on the GPUs of this process: ten times
// a second from the driver's management library, into the trace file.
#pragma once

#include "trace/inject/writer.h"

namespace fulcrum::trace::inject {

/// Starts a thread of low priority. The writer must outlive it. What the library refuses is absent from the records
/// (-1), and a property of the file says what and why.
void start_clocks(Writer&) noexcept;
/// Returns in a quarter of a second at the latest. Nothing in a forked child.
void stop_clocks() noexcept;

}  // namespace fulcrum::trace::inject
