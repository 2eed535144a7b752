// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Perf events on a process and what they write: one ring a CPU, drained in the order of time.
//
// Each CPU has up to four events on the same ring and only one of them is on at a time: the ordinary rate and a faster
// one for the start, each with a small and with a large stack dump. Turning an event on and off reaches the threads and children
// that inherited it, which changing the period of an event does not.
#pragma once

#include <fulcrum/core.h>
#include <sys/types.h>

#include <memory>

#include "record/registers.h"

namespace fulcrum::record {

enum class Level : std::uint8_t { normal, burst, deep, deep_burst };
inline constexpr std::size_t kLevels = 4;

struct EventOptions {
  double rate_hz = 199, burst_rate_hz = 0;  // burst 0: no such event
  std::uint32_t stack_bytes = 16384, deep_stack_bytes = 32768;
  bool children = true, switches = true, enable_on_exec = true;
  bool force_user_only = false;  // leave the kernel out even where it may be seen
  bool force_clock = false;      // the CPU clock even where there are hardware cycles
};

/// What the kernel lets this user open, tried on ourselves.
struct EventAccess {
  bool allowed = false;
  bool hardware = false;   // cycles, else the CPU clock
  bool kernel = false;     // samples inside the kernel too
  int error_number = 0;    // when not allowed
  int paranoid_level = 0;  // of /proc/sys/kernel/perf_event_paranoid; -2: no such file
};
EventAccess probe_access();

/// A sample as it lies in the ring buffer's copy; valid until the next drain.
struct SampleView {
  std::uint64_t ip = 0, period = 0;
  std::uint32_t cpu = 0;
  bool in_kernel = false;
  std::span<const std::uint64_t> callchain;  // kernel part only
  bool has_registers = false;                // kernel threads and exiting processes have none
  Registers registers{};
  std::span<const std::byte> stack;  // from the stack pointer upwards
  std::uint64_t stack_asked = 0;     // bytes that were asked for
};

struct Record {
  enum class Kind : std::uint8_t { sample, map, name, fork, exit, switch_in, switch_out, lost, throttle };
  Kind kind = Kind::sample;
  std::uint64_t time_ns = 0;  // CLOCK_MONOTONIC
  pid_t pid = 0, tid = 0;
  pid_t parent_pid = 0, parent_tid = 0;               // fork
  std::uint64_t address = 0, length = 0, offset = 0;  // map
  std::string_view text;                              // map: file; name: of the thread
  bool exec = false;                                  // name: the process became another program
  bool preempted = false;                             // switch_out: it could have run on
  std::uint64_t count = 0;                            // lost
  SampleView sample;
};

class Events {
 public:
  /// On each of `threads`, on each CPU of `cpus`. They stay off until exec (enable_on_exec) or enable().
  static Result<Events> open(std::span<const pid_t> threads, std::span<const int> cpus, const EventOptions&,
                             const EventAccess&);
  Events(Events&&) noexcept;
  Events& operator=(Events&&) noexcept;
  ~Events();

  bool has(Level) const;
  void enable(Level);
  void disable();
  /// Closes the fast levels for good: each thread that the program starts copies every event that is open.
  void drop_burst();
  Level level() const;

  /// Waits until a ring fills, or `process` (a pidfd, -1 for none) ends, or `timeout_ms` went by.
  void wait(int timeout_ms, int process) const;
  /// Every record that is complete up to now, in the order of time. With `all`, also those of the last millisecond,
  /// which a slower CPU could still precede.
  void drain(bool all, const std::function<void(const Record&)>&);

  std::size_t ring_bytes() const;

 private:
  struct State;
  explicit Events(std::unique_ptr<State>);
  std::unique_ptr<State> state_;
};

/// CPUs that are online, and those that this process may run on.
std::vector<int> online_cpus();
std::vector<int> allowed_cpus();
std::uint64_t monotonic_ns();

}  // namespace fulcrum::record
