// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Takes perf records in the order of time and keeps what a profile needs of them: threads and how long each ran, waited
// and was kept from running, and the stack of each sample, unwound at once so that no dump is stored.
#pragma once

#include <fulcrum/core/profile.h>

#include <memory>
#include <unordered_map>

#include "record/events.h"
#include "record/modules.h"
#include "record/symbols.h"
#include "record/unwind.h"

namespace fulcrum::record {

/// Stacks of locations, each kept once.
class StackTable {
 public:
  struct Entry {
    std::vector<Location> locations;  // leaf first
    bool truncated = false;
    std::string why;
  };
  std::uint32_t intern(Entry entry);
  const std::vector<Entry>& entries() const { return entries_; }
  std::size_t locations() const { return location_count_; }

 private:
  std::vector<Entry> entries_;
  std::unordered_multimap<std::size_t, std::uint32_t> by_hash_;
  std::size_t location_count_ = 0;
};

/// Waits shorter than this are gathered until they are this long together.
inline constexpr double kBlockedGrainSeconds = 1.0 / 199;

class Assembler {
 public:
  explicit Assembler(std::uint64_t begin_ns) : begin_ns_(begin_ns) {}

  /// A thread that was there before the first record; `running`: on a CPU now.
  void add_thread(pid_t pid, pid_t tid, std::string name, bool running);
  void add_mappings(pid_t pid) { read_maps(pid, modules_, processes_[pid].space); }

  /// Looks at the mappings of a process anew, for when nobody tells of changes.
  void refresh_mappings(pid_t pid);
  bool knows(pid_t pid, std::uint64_t address) const;
  /// Where an address of a process lies; in no module that is known: Modules::kUnknown.
  Location locate(pid_t pid, std::uint64_t address) const;
  bool knows_thread(pid_t tid) const { return by_tid_.count(tid) != 0; }

  void take(const Record&);
  void finish(std::uint64_t end_ns);

  /// Names everything and fills frames, stacks, threads and samples.
  void write(CpuProfile& profile);

  std::int64_t samples() const { return static_cast<std::int64_t>(samples_.size()); }
  std::int64_t on_cpu_samples() const { return on_cpu_samples_; }
  std::int64_t small_dumps() const { return small_dumps_; }
  std::int64_t lost() const { return lost_; }
  std::int64_t throttled() const { return throttled_; }
  std::int64_t switches() const { return switches_; }
  std::int64_t bytes() const;
  int live_threads() const { return live_threads_; }
  bool saw_process(pid_t pid) const { return processes_.count(pid) != 0; }
  /// Sum of the on-CPU samples' weights.
  double sampled_seconds() const { return sampled_seconds_; }

  const Modules& modules() const { return modules_; }
  Symbols& symbols() { return symbols_; }
  const StackTable& stacks() const { return stacks_; }
  std::vector<CpuProfile::Sample>& sample_list() { return samples_; }

  /// Called with each sample of a process, to say which region it is in (number plus one, 0 for none).
  std::function<std::uint32_t(pid_t pid, pid_t tid, const SampleView&)> region_of;

 private:
  struct Process {
    AddressSpace space;
    std::shared_ptr<Unwinder> unwinder;  // a child has its parent's until either maps something new
    int live_threads = 0;
  };
  struct ThreadState {
    std::uint32_t number = 0;
    bool on_cpu = false, off_cpu = false, preempted = false;
    std::uint64_t since_ns = 0;
    std::optional<std::uint32_t> last_stack;
    std::uint32_t last_region = 0;
    double gathered_seconds = 0;  // blocked, not yet a sample
    std::uint64_t gathered_at_ns = 0;
  };
  ThreadState& thread_of(pid_t pid, pid_t tid, std::uint64_t time_ns);
  void take_sample(const Record&);
  void take_fork(const Record&);
  void take_exit(const Record&);
  void take_name(const Record&);
  void take_switch(const Record&);
  void put_gathered(ThreadState&);
  void end_wait(ThreadState&, std::uint64_t now_ns);
  void forget_code(Process&, pid_t pid);
  double seconds(std::uint64_t time_ns) const;

  std::uint64_t begin_ns_;
  Modules modules_;
  Symbols symbols_{modules_};
  StackTable stacks_;
  std::unordered_map<pid_t, Process> processes_;
  std::unordered_map<pid_t, AddressSpace> ended_;  // where the code of processes lay that are gone
  std::unordered_map<pid_t, ThreadState> by_tid_;
  std::vector<CpuProfile::Thread> threads_;
  std::vector<CpuProfile::Sample> samples_;
  UnwoundStack unwound_;
  std::int64_t on_cpu_samples_ = 0, small_dumps_ = 0, lost_ = 0, throttled_ = 0, switches_ = 0;
  double sampled_seconds_ = 0;
  int live_threads_ = 0;
};

}  // namespace fulcrum::record
