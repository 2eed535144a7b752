// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// The steady clock and what reading it costs. Time counts from the first use: seconds since boot in a double
// would lose nanoseconds on a machine that has been up for months.
#include <fulcrum/measure.h>
#include <time.h>

#include <algorithm>
#include <limits>

namespace fulcrum::measure {
namespace {

constexpr int kReads = 1000;  // some 25 us: most runs fall between two interruptions
constexpr int kRuns = 100;

std::int64_t monotonic_nanoseconds() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::int64_t>(now.tv_sec) * 1'000'000'000 + now.tv_nsec;
}

// The smallest step seen between two reads, and the cost of one in the quietest of a few runs.
Clock make_steady_clock() {
  static const std::int64_t origin = monotonic_nanoseconds();
  std::int64_t step = std::numeric_limits<std::int64_t>::max();
  double read_seconds = std::numeric_limits<double>::infinity();
  for (int run = 0; run < kRuns; ++run) {
    const std::int64_t begin = monotonic_nanoseconds();
    std::int64_t last = begin;
    for (int i = 0; i < kReads; ++i) {
      const std::int64_t now = monotonic_nanoseconds();
      if (now > last) step = std::min(step, now - last);
      last = now;
    }
    read_seconds = std::min(read_seconds, 1e-9 * static_cast<double>(last - begin) / kReads);
  }
  return Clock{.now = [] { return 1e-9 * static_cast<double>(monotonic_nanoseconds() - origin); },
               .resolution_seconds = 1e-9 * static_cast<double>(step),
               .read_seconds = read_seconds};
}

}  // namespace

const Clock& steady_clock() {
  static const Clock clock = make_steady_clock();
  return clock;
}

}  // namespace fulcrum::measure
