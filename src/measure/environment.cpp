// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// See environment.h. Everything here is read with plain system calls outside the timed regions.
#include "measure/environment.h"

#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <limits>

namespace fulcrum::measure {
namespace {

constexpr int kChainLength = 20'000;  // 60,000 cycles: 15-30 us
constexpr int kChainRuns = 5;
#if defined(__x86_64__)
constexpr double kMultiplyCycles = 3;  // 64-bit imul, every x86-64 core since 2006 that anyone still runs
#else
constexpr double kMultiplyCycles = 0;  // differs between ARM cores: not known
#endif
// The kernel counts stolen time in ticks; a shorter sample cannot be blamed for one.
constexpr double kStealTickSeconds = 0.01;

double seconds_of(const timeval& t) {
  return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
}

void multiply_chain() {
  std::uint64_t x = 3, factor = 0x9e3779b97f4a7c15;
  for (int i = 0; i < kChainLength; ++i) {
    x *= factor;
    asm volatile("" : "+r"(x), "+r"(factor));  // neither folded nor unrolled into independent products
  }
}

}  // namespace

double estimate_clock_hz(const Clock& clock) {
  if (kMultiplyCycles == 0) return 0;
  double best = std::numeric_limits<double>::infinity();
  for (int run = 0; run < kChainRuns; ++run) {
    const double begin = clock.now();
    multiply_chain();
    best = std::min(best, clock.now() - begin);
  }
  return best > 0 ? kMultiplyCycles * kChainLength / best : 0;
}

double stolen_seconds() {
  std::ifstream file("/proc/stat");
  std::string cpu;
  std::int64_t ticks[8] = {};  // user nice system idle iowait irq softirq steal
  if (!(file >> cpu)) return 0;
  for (std::int64_t& value : ticks) {
    if (!(file >> value)) return 0;
  }
  return static_cast<double>(ticks[7]) / static_cast<double>(sysconf(_SC_CLK_TCK));
}

EnvironmentWatch::Counters EnvironmentWatch::read() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return {.context_switches = usage.ru_nvcsw + usage.ru_nivcsw,
          .page_faults = usage.ru_minflt + usage.ru_majflt,
          .cpu_seconds = seconds_of(usage.ru_utime) + seconds_of(usage.ru_stime),
          .cpu = sched_getcpu()};
}

EnvironmentWatch::EnvironmentWatch(const Clock& clock)
    : clock_(&clock), started_seconds_(clock.now()), started_steal_seconds_(stolen_seconds()) {
  environment_.clock_hz_before = estimate_clock_hz(clock);
  started_ = before_ = read();
}

void EnvironmentWatch::before_sample() {
  if (last_sample_seconds_ >= kStealTickSeconds) steal_before_seconds_ = stolen_seconds();
  before_ = read();
}

std::uint8_t EnvironmentWatch::after_sample(double sample_seconds) {
  const Counters now = read();
  std::uint8_t tags = 0;
  if (now.context_switches != before_.context_switches) tags |= kContextSwitch;
  if (now.page_faults != before_.page_faults) tags |= kPageFault;
  if (now.cpu != before_.cpu) {
    tags |= kMigration;
    ++environment_.migrations;
  }
  if (last_sample_seconds_ >= kStealTickSeconds && sample_seconds >= kStealTickSeconds &&
      stolen_seconds() > steal_before_seconds_) {
    tags |= kSteal;
  }
  last_sample_seconds_ = sample_seconds;
  return tags;
}

Environment EnvironmentWatch::finish() {
  const Counters now = read();
  environment_.context_switches = now.context_switches - started_.context_switches;
  environment_.page_faults = now.page_faults - started_.page_faults;
  environment_.cpu_seconds = now.cpu_seconds - started_.cpu_seconds;
  environment_.wall_seconds = clock_->now() - started_seconds_;
  environment_.steal_seconds = stolen_seconds() - started_steal_seconds_;
  environment_.clock_hz_after = estimate_clock_hz(*clock_);
  return environment_;
}

}  // namespace fulcrum::measure
