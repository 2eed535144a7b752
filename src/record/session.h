// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// One recording with perf events, from the first event to the profile.
#pragma once

#include <fulcrum/record.h>

#include "record/assembler.h"
#include "record/target.h"

namespace fulcrum::record {

/// Records with perf events.
Result<CpuProfile> record_perf(const Options&, const EventAccess&);
/// Records with timers inside the program, for where perf events are forbidden; only programs that we start.
Result<CpuProfile> record_timer(const Options&, const EventAccess&);

/// Of a profile that was full after so many seconds.
std::string size_limit_note(double seconds);

/// CPU seconds of the calling thread.
double thread_cpu_seconds();
/// Seconds that the hypervisor took from this machine so far, all CPUs.
double steal_seconds();

}  // namespace fulcrum::record
