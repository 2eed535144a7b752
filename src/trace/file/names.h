// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// The names of properties in a trace file (docs/trace-file.md): of one process, and of the whole run, which stand in
// the first section of a file that was merged.
#pragma once

#include <cstdint>
#include <string_view>

namespace fulcrum::trace::file {

namespace property {
// Of a process.
inline constexpr std::string_view kCommand = "command";
inline constexpr std::string_view kProfiler = "profiler";
inline constexpr std::string_view kCuptiVersion = "cupti_version";
inline constexpr std::string_view kDriverVersion = "driver_version";
inline constexpr std::string_view kKind = "kind";        // one a kind that was on
inline constexpr std::string_view kRefused = "refused";  // one a kind that was refused
inline constexpr std::string_view kFullOverheadShare = "full_overhead_share";
inline constexpr std::string_view kOverheadSeconds = "overhead_seconds";
inline constexpr std::string_view kEnd = "end";  // of a process without a footer
inline constexpr std::string_view kEndNs = "end_ns";
inline constexpr std::string_view kCountersRefused = "counters_refused";
inline constexpr std::string_view kNote = "note";
// Why something is missing.
inline constexpr std::string_view kClocksRefused = "clocks_refused";
inline constexpr std::string_view kClocksMissing = "clocks_missing";
inline constexpr std::string_view kCountersEnded = "counters_ended";
// Of the whole run. Whole numbers that a double cannot hold are texts.
inline constexpr std::string_view kRunCommand = "run.command";
inline constexpr std::string_view kCreated = "run.created_utc";
inline constexpr std::string_view kMachine = "run.machine_id";
inline constexpr std::string_view kProgram = "run.program";
inline constexpr std::string_view kOrigin = "run.origin";
inline constexpr std::string_view kBaseNs = "run.base_ns";    // the stamp of instant 0 in the file
inline constexpr std::string_view kBeginNs = "run.begin_ns";  // GpuTrace::begin_ns
inline constexpr std::string_view kWallNs = "run.wall_ns";
inline constexpr std::string_view kExitCode = "run.exit_code";
inline constexpr std::string_view kCpuProfile = "run.cpu_profile";  // fulcrum.profile/1
inline constexpr std::string_view kCpuOffset = "run.cpu_offset_seconds";
inline constexpr std::string_view kKernelCounters = "run.kernel_counters";  // a JSON array
}  // namespace property

/// Later stamps, and instants farther from the begin of the run, are damage; 73 and 18 years. Every sum and difference
/// of two of them fits.
inline constexpr std::int64_t kLatestStamp = std::int64_t{1} << 61, kFarthest = std::int64_t{1} << 59;
/// Kernel::shape of a whole replay of a graph whose nodes were not seen.
inline constexpr std::uint32_t kWholeGraph = 0xffffffff;
inline constexpr std::uint8_t kMemset = 255;  // Copy::kind
inline constexpr std::uint32_t kLongCall = 0xffffffff;
enum : std::uint32_t { kLegacyDefault = 1, kNonBlocking = 2, kPerThreadDefault = 4 };  // Stream::flags

}  // namespace fulcrum::trace::file
