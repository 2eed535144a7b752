// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Counts of a whole program and what it starts, where the machine has a PMU: pairs whose ratio means something are counted
// at the same time, so that multiplexing does not bend the ratio.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace fulcrum::record {

struct CountedEvent {
  std::string_view name;
  std::uint32_t type = 0;
  std::uint64_t config = 0;
};
/// Events that are on a PMU at the same time or not at all.
using CountedGroup = std::vector<CountedEvent>;

/// Cycles with instructions, cache references with misses, branches with misses, stalled cycles.
std::span<const CountedGroup> hardware_groups();

class Counters {
 public:
  Counters() = default;
  Counters(Counters&&) noexcept;
  Counters& operator=(Counters&&) noexcept;
  ~Counters();

  /// On a process that waits for its exec, or on one that runs. Groups that the machine cannot count are left out; none
  /// is left where it has no PMU.
  static Counters open(pid_t process, bool enable_on_exec, bool kernel,
                       std::span<const CountedGroup> groups = hardware_groups());
  bool empty() const { return open_.empty(); }
  /// Scaled to the whole time; what was never on the PMU is not there.
  std::map<std::string, double> read() const;
  /// The least part of the time that a group was on the PMU; 1: all of it.
  double least_counted() const;

 private:
  struct Open {
    std::string name;
    int descriptor = -1;
  };
  std::vector<Open> open_;
};

}  // namespace fulcrum::record
