// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Tier T1: what the SMs, the tensor cores and the memory of the GPUs did, every 20 microseconds or so, by CUPTI's PM
// sampling. One pass, no replay: the program runs as it would.
#pragma once

#include "trace/inject/writer.h"

#include <cuda.h>

namespace fulcrum::trace::inject {

/// To be called for every context that is made; the first of a device counts. Returns at once: a thread sets sampling
/// up, reads and writes. The writer must outlive it. Whatever refuses says so in the property "counters_refused", with
/// what to do about it.
void start_counters(Writer&, CUcontext) noexcept;
/// Reads what is left and ends sampling; two seconds at the latest. Nothing in a forked child.
void stop_counters() noexcept;

}  // namespace fulcrum::trace::inject
