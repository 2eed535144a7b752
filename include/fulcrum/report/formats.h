// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// CPU profiles in the formats of other tools, out and in. Every reader takes files from anywhere: what is damaged is an
// Error that names the file and the place, never a crash and never a guess.
#pragma once

#include <fulcrum/core/profile.h>

namespace fulcrum::report {

/// A format that a profile can be written in.
struct ProfileFormat {
  std::string_view name;    // as on the command line
  std::string_view ending;  // of its files, with the dot
  std::string_view opens;   // what reads it
  std::string (*text)(const CpuProfile&);
};
/// "json" (fulcrum.profile/1, the only one that keeps everything), "folded", "pprof", "speedscope", "chrome".
std::span<const ProfileFormat> profile_formats();

/// One line a stack, callers first, and how often it was seen: in units of the shortest sample. Blocked time ends in
/// the frame [blocked]; inlined frames end in _[i].
std::string folded(const CpuProfile&);
/// profile.proto, not compressed: samples, CPU time and waiting time, with threads and regions as labels.
std::string pprof(const CpuProfile&);
/// One sampled profile a thread, in seconds.
std::string speedscope(const CpuProfile&);
/// Slices of neighbouring samples on a time line: chrome://tracing, Perfetto.
std::string chrome_trace(const CpuProfile&);

/// Files are recognised by what is in them, not by their names: fulcrum.profile/1, pprof (also gzip'ed), the text of
/// `perf script`, folded stacks.
Result<CpuProfile> read_profile(std::string_view content, std::string_view origin);
Result<CpuProfile> from_folded(std::string_view text, std::string_view origin);
Result<CpuProfile> from_perf_script(std::string_view text, std::string_view origin);
Result<CpuProfile> from_pprof(std::string_view bytes, std::string_view origin);

/// Counts by event, "cache_misses" for cache-misses, and "elapsed_seconds": from the table, the separated lines (-x) or
/// the JSON lines (-j) that `perf stat` prints. A CpuProfile takes them as its counters.
Result<std::map<std::string, double>> from_perf_stat(std::string_view text, std::string_view origin);

/// The content of a gzip file (RFC 1952), at most `most` bytes of it.
Result<std::string> gunzip(std::string_view bytes, std::string_view origin,
                           std::size_t most = std::size_t{1} << 28);

}  // namespace fulcrum::report
