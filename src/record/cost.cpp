// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// The same work with and without sampling, in turn, by the thread's CPU time. Samples come fifty times as often as in a
// recording, so that their cost shows above the noise.
#include "record/cost.h"

#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <thread>

#include "record/session.h"

namespace fulcrum::record {
namespace {

constexpr double kRateHz = 10'000;
constexpr int kPairs = 9;
constexpr double kHalfSeconds =
    1e-3;  // of work, with and without: ten samples are enough for a median of nine

double work_seconds(std::uint64_t steps) {
  const double begin = thread_cpu_seconds();
  std::uint64_t x = steps;
  for (std::uint64_t i = 0; i < steps; ++i) {
    x = x * 6364136223846793005u + 1;
    asm volatile("" : "+r"(x));
  }
  return thread_cpu_seconds() - begin;
}

double measure(const EventAccess& access) {
  EventOptions options;
  options.rate_hz = kRateHz;
  options.enable_on_exec = false;
  options.switches = false;
  options.deep_stack_bytes = 0;
  const auto self = static_cast<pid_t>(::syscall(SYS_gettid));
  auto events = Events::open(std::span(&self, 1), allowed_cpus(), options, access);
  if (!events.ok()) return 0;
  // A stack as deep as the dump, as a program's might be.
  volatile char depth[16384];
  std::memset(const_cast<char*>(depth), 1, sizeof(depth));
  const std::uint64_t steps =
      static_cast<std::uint64_t>(1e6 * kHalfSeconds / std::max(1e-4, work_seconds(1'000'000)));
  std::vector<double> costs;
  for (int i = 0; i < kPairs; ++i) {
    const double without = work_seconds(steps);
    events->enable(Level::normal);
    const double with = work_seconds(steps);
    events->disable();
    std::int64_t samples = 0;
    events->drain(true,
                  [&](const Record& record) { samples += record.kind == Record::Kind::sample ? 1 : 0; });
    if (samples > 0) costs.push_back((with - without) / static_cast<double>(samples));
  }
  if (costs.empty()) return 0;
  std::nth_element(costs.begin(), costs.begin() + static_cast<std::ptrdiff_t>(costs.size() / 2), costs.end());
  return std::max(0.0, costs[costs.size() / 2]);
}

}  // namespace

double seconds_per_sample(const EventAccess& access) {
  static const double seconds = [&] {
    double result = 0;
    // A thread of its own: events are inherited, and the caller's other threads are none of ours.
    std::thread([&] { result = measure(access); }).join();
    return result;
  }();
  return seconds;
}

}  // namespace fulcrum::record
