// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// See counters.h.
#include "record/counters.h"

#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace fulcrum::record {
namespace {

struct Reading {
  std::uint64_t value = 0, enabled_ns = 0, running_ns = 0;
};

bool read_counter(int descriptor, Reading& reading) {
  return ::read(descriptor, &reading, sizeof(reading)) == static_cast<ssize_t>(sizeof(reading));
}

int open_counter(const CountedEvent& event, pid_t process, int leader, bool enable_on_exec, bool kernel) {
  perf_event_attr a;
  std::memset(&a, 0, sizeof(a));
  a.size = sizeof(a);
  a.type = event.type;
  a.config = event.config;
  a.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
  a.inherit = 1;
  a.exclude_kernel = kernel ? 0 : 1;
  a.exclude_hv = 1;
  // The others of a group follow their leader, which begins when all are there: else it would count alone at first.
  a.disabled = leader < 0 ? 1 : 0;
  a.enable_on_exec = leader < 0 && enable_on_exec ? 1 : 0;
  return static_cast<int>(::syscall(SYS_perf_event_open, &a, process, -1, leader, PERF_FLAG_FD_CLOEXEC));
}

}  // namespace

std::span<const CountedGroup> hardware_groups() {
  static const std::vector<CountedGroup> groups = {
      {{"cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES},
       {"instructions", PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS}},
      {{"cache_references", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_REFERENCES},
       {"cache_misses", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_MISSES}},
      {{"branches", PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_INSTRUCTIONS},
       {"branch_misses", PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_MISSES}},
      {{"stalled_cycles_backend", PERF_TYPE_HARDWARE, PERF_COUNT_HW_STALLED_CYCLES_BACKEND}}};
  return groups;
}

Counters::Counters(Counters&& other) noexcept : open_(std::exchange(other.open_, {})) {}
Counters& Counters::operator=(Counters&& other) noexcept {
  std::swap(open_, other.open_);
  return *this;
}
Counters::~Counters() {
  for (const Open& one : open_) ::close(one.descriptor);
}

Counters Counters::open(pid_t process, bool enable_on_exec, bool kernel,
                        std::span<const CountedGroup> groups) {
  Counters counters;
  for (const CountedGroup& group : groups) {
    std::vector<Open> members;
    for (const CountedEvent& event : group) {
      const int leader = members.empty() ? -1 : members.front().descriptor;
      const int descriptor = open_counter(event, process, leader, enable_on_exec, kernel);
      if (descriptor < 0) break;
      members.push_back({std::string(event.name), descriptor});
    }
    const bool whole = !members.empty() && members.size() == group.size();
    if (whole && !enable_on_exec) ::ioctl(members.front().descriptor, PERF_EVENT_IOC_ENABLE, 0);
    for (Open& one : members) {
      if (whole) {
        counters.open_.push_back(std::move(one));
      } else {
        ::close(one.descriptor);
      }
    }
  }
  return counters;
}

std::map<std::string, double> Counters::read() const {
  std::map<std::string, double> counts;
  for (const Open& one : open_) {
    Reading reading;
    if (!read_counter(one.descriptor, reading) || reading.running_ns == 0) continue;
    counts[one.name] = static_cast<double>(reading.value) * static_cast<double>(reading.enabled_ns) /
                       static_cast<double>(reading.running_ns);
  }
  return counts;
}

double Counters::least_counted() const {
  double least = 1;
  for (const Open& one : open_) {
    Reading reading;
    if (!read_counter(one.descriptor, reading) || reading.enabled_ns == 0) continue;
    least =
        std::min(least, static_cast<double>(reading.running_ns) / static_cast<double>(reading.enabled_ns));
  }
  return least;
}

}  // namespace fulcrum::record
