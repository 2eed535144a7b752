// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// What the machine did to us meanwhile: context switches, migrations, faults, stolen time, the CPU's clock.
#pragma once

#include <fulcrum/measure.h>

namespace fulcrum::measure {

/// Bits of Sample::tags. Interrupted: of the time of a batch's slices, more than a tenth is not in the sample.
enum Tag : std::uint8_t { kContextSwitch = 1, kMigration = 2, kPageFault = 4, kSteal = 8, kInterrupted = 16 };

class EnvironmentWatch {
 public:
  explicit EnvironmentWatch(const Clock& clock);
  /// Around each sample, outside its clock reads; `after` says what happened in between.
  void before_sample();
  std::uint8_t after_sample(double sample_seconds);
  Environment finish();

 private:
  struct Counters {
    std::int64_t context_switches = 0, page_faults = 0;
    double cpu_seconds = 0;
    int cpu = -1;
  };
  static Counters read();

  const Clock* clock_;
  double started_seconds_;
  double started_steal_seconds_;
  Counters started_, before_;
  double steal_before_seconds_ = 0;
  double last_sample_seconds_ = 0;
  Environment environment_;
};

/// Clock frequency from a chain of dependent multiplications; 0 where their latency is not known. Under 1 ms.
double estimate_clock_hz(const Clock& clock);
/// Time that a hypervisor took from all CPUs since boot; 0 where the system does not say.
double stolen_seconds();

}  // namespace fulcrum::measure
