// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// What a sample takes from the program, measured on a thread of our own.
#pragma once

#include "record/events.h"

namespace fulcrum::record {

/// Seconds of CPU time that the kernel spends on one sample; measured once in a process. Takes about 0.1 s.
double seconds_per_sample(const EventAccess&);
/// On one record of a context switch: two short writes into the ring, as estimated.
inline constexpr double kSecondsPerSwitch = 0.3e-6;

}  // namespace fulcrum::record
