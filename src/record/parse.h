// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// A perf record's bytes as a Record. Pure, so that cut and corrupt records can be tested.
#pragma once

#include <linux/perf_event.h>

#include "record/events.h"

namespace fulcrum::record {

/// What our events put into their samples; the callchain only where the kernel may be seen.
inline constexpr std::uint64_t kSampleType = PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME |
                                             PERF_SAMPLE_CPU | PERF_SAMPLE_PERIOD | PERF_SAMPLE_REGS_USER |
                                             PERF_SAMPLE_STACK_USER;

/// Time of a record with its header; 0 when it is too short to have one.
std::uint64_t record_time_ns(std::span<const std::byte> bytes);
/// Nothing for a kind that we do not use, and for a record that does not hold what its kind must.
std::optional<Record> parse_record(std::span<const std::byte> bytes, bool with_callchain);

}  // namespace fulcrum::record
