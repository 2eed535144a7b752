// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Records into threads, stacks and samples.
#include "record/assembler.h"

#include <algorithm>

namespace fulcrum::record {
namespace {

constexpr std::size_t kMostEnded = 64;

std::size_t hash_of(const StackTable::Entry& entry) {
  std::uint64_t hash = entry.truncated ? 0x9e3779b97f4a7c15u : 0;
  for (const Location& l : entry.locations) {
    hash = (hash ^ (l.address + (std::uint64_t{l.module} << 48))) * 0x100000001b3u;
    hash ^= hash >> 29;
  }
  return hash;
}

}  // namespace

std::uint32_t StackTable::intern(Entry entry) {
  const std::size_t hash = hash_of(entry);
  const auto [begin, end] = by_hash_.equal_range(hash);
  for (auto at = begin; at != end; ++at) {
    const Entry& known = entries_[at->second];
    if (known.truncated == entry.truncated && known.why == entry.why && known.locations == entry.locations) {
      return at->second;
    }
  }
  const auto number = static_cast<std::uint32_t>(entries_.size());
  location_count_ += entry.locations.size();
  entries_.push_back(std::move(entry));
  by_hash_.emplace(hash, number);
  return number;
}

double Assembler::seconds(std::uint64_t time_ns) const {
  return time_ns <= begin_ns_ ? 0 : static_cast<double>(time_ns - begin_ns_) * 1e-9;
}

std::int64_t Assembler::bytes() const {
  // As the profile's JSON has them, roughly: a sample, a stack's numbers, a frame's text.
  return static_cast<std::int64_t>(samples_.size() * 40 + stacks_.locations() * 6 +
                                   stacks_.entries().size() * 150);
}

Assembler::ThreadState& Assembler::thread_of(pid_t pid, pid_t tid, std::uint64_t time_ns) {
  const auto [entry, is_new] = by_tid_.try_emplace(tid);
  if (!is_new) return entry->second;
  entry->second.number = static_cast<std::uint32_t>(threads_.size());
  threads_.push_back({.pid = pid, .tid = tid, .begin_seconds = seconds(time_ns)});
  ++processes_[pid].live_threads;
  ++live_threads_;
  return entry->second;
}

void Assembler::add_thread(pid_t pid, pid_t tid, std::string name, bool running) {
  ThreadState& thread = thread_of(pid, tid, begin_ns_);
  threads_[thread.number].name = std::move(name);
  thread.on_cpu = running;
  thread.since_ns = begin_ns_;
}

void Assembler::refresh_mappings(pid_t pid) {
  AddressSpace fresh;
  read_maps(pid, modules_, fresh);
  if (fresh.mappings().empty()) return;  // it is gone: what we know is the best there is
  Process& process = processes_[pid];
  process.space.clear();
  for (const auto& [begin, m] : fresh.mappings()) {
    process.space.add(m.begin, m.end - m.begin, m.offset, m.module, modules_[m.module]);
  }
}

bool Assembler::knows(pid_t pid, std::uint64_t address) const {
  const auto process = processes_.find(pid);
  return process != processes_.end() && process->second.space.find(address) != nullptr;
}

Location Assembler::locate(pid_t pid, std::uint64_t address) const {
  const auto process = processes_.find(pid);
  if (process != processes_.end()) return process->second.space.locate(address);
  const auto ended = ended_.find(pid);
  return ended == ended_.end() ? Location{Modules::kUnknown, address} : ended->second.locate(address);
}

void Assembler::take(const Record& record) {
  switch (record.kind) {
    case Record::Kind::sample:
      return take_sample(record);
    case Record::Kind::map: {
      Process& process = processes_[record.pid];
      const std::uint32_t module = modules_.find_or_add(record.text, record.pid);
      if (process.unwinder.use_count() > 1) process.unwinder.reset();
      return process.space.add(record.address, record.length, record.offset, module, modules_[module]);
    }
    case Record::Kind::name:
      return take_name(record);
    case Record::Kind::fork:
      return take_fork(record);
    case Record::Kind::exit:
      return take_exit(record);
    case Record::Kind::switch_in:
    case Record::Kind::switch_out:
      return take_switch(record);
    case Record::Kind::lost:
      lost_ += static_cast<std::int64_t>(record.count);
      return;
    case Record::Kind::throttle:
      ++throttled_;
      return;
  }
}

void Assembler::take_sample(const Record& record) {
  const SampleView& sample = record.sample;
  ThreadState& thread = thread_of(record.pid, record.tid, record.time_ns);
  Process& process = processes_[record.pid];
  if (!process.unwinder) process.unwinder = std::make_shared<Unwinder>(record.pid, modules_);
  process.unwinder->unwind(process.space, sample, unwound_);

  StackTable::Entry entry;
  entry.truncated = !unwound_.complete;
  entry.why = unwound_.why;
  for (const std::uint64_t address : sample.callchain) {
    // Values near the top of the range mark where the kernel's or the user's part begins.
    if (address < ~std::uint64_t{4095}) entry.locations.push_back({Modules::kKernel, address});
  }
  if (sample.in_kernel && entry.locations.empty()) entry.locations.push_back({Modules::kKernel, sample.ip});
  for (const UnwoundStack::Step& step : unwound_.steps)
    entry.locations.push_back(process.space.locate(step.address));
  if (unwound_.dump_too_small) ++small_dumps_;

  thread.last_region = region_of ? region_of(record.pid, record.tid, sample) : 0;
  put_gathered(thread);
  thread.last_stack = stacks_.intern(std::move(entry));
  const double weight = static_cast<double>(sample.period) * 1e-9;
  samples_.push_back({.thread = thread.number,
                      .stack = *thread.last_stack,
                      .seconds = seconds(record.time_ns),
                      .weight_seconds = weight,
                      .region = thread.last_region});
  ++on_cpu_samples_;
  sampled_seconds_ += weight;
}

void Assembler::forget_code(Process& process, pid_t pid) {
  if (process.unwinder && !process.unwinder->jit().empty()) symbols_.set_jit(pid, process.unwinder->jit());
  process.unwinder.reset();
  process.space.clear();
}

void Assembler::take_name(const Record& record) {
  if (record.exec) forget_code(processes_[record.pid], record.pid);
  ThreadState& thread = thread_of(record.pid, record.tid, record.time_ns);
  threads_[thread.number].name = std::string(record.text);
}

void Assembler::take_fork(const Record& record) {
  ThreadState& parent = thread_of(record.parent_pid, record.parent_tid, record.time_ns);
  const std::string name = threads_[parent.number].name;
  if (record.pid != record.parent_pid && !saw_process(record.pid)) {
    const Process& from = processes_[record.parent_pid];
    Process to{.space = from.space, .unwinder = from.unwinder, .live_threads = 0};
    processes_.insert_or_assign(record.pid, std::move(to));
  }
  // A number that is used again is a new thread.
  if (by_tid_.count(record.tid) != 0) take_exit(record);
  ThreadState& thread = thread_of(record.pid, record.tid, record.time_ns);
  threads_[thread.number].name = name;
}

void Assembler::take_exit(const Record& record) {
  const auto entry = by_tid_.find(record.tid);
  if (entry == by_tid_.end()) return;
  ThreadState& thread = entry->second;
  CpuProfile::Thread& shown = threads_[thread.number];
  if (thread.on_cpu && record.time_ns > thread.since_ns) {
    shown.cpu_seconds += static_cast<double>(record.time_ns - thread.since_ns) * 1e-9;
  }
  put_gathered(thread);
  shown.end_seconds = seconds(record.time_ns);
  const auto process = processes_.find(static_cast<pid_t>(shown.pid));
  by_tid_.erase(entry);
  --live_threads_;
  if (process != processes_.end() && --process->second.live_threads <= 0) {
    if (ended_.size() < kMostEnded) ended_.insert_or_assign(process->first, process->second.space);
    forget_code(process->second, process->first);
    processes_.erase(process);
  }
}

/// A wait that ended: gathered with its neighbours, so that a program that sleeps a thousand times a second does not
/// make a thousand samples.
void Assembler::end_wait(ThreadState& thread, std::uint64_t now_ns) {
  if (!thread.off_cpu || now_ns <= thread.since_ns) return;
  const double waited = static_cast<double>(now_ns - thread.since_ns) * 1e-9;
  CpuProfile::Thread& shown = threads_[thread.number];
  if (thread.preempted) {
    shown.preempted_seconds += waited;
    return;
  }
  shown.blocked_seconds += waited;
  if (thread.gathered_seconds == 0) thread.gathered_at_ns = thread.since_ns;
  thread.gathered_seconds += waited;
  if (thread.gathered_seconds >= kBlockedGrainSeconds) put_gathered(thread);
}

void Assembler::put_gathered(ThreadState& thread) {
  if (thread.gathered_seconds <= 0) return;
  if (!thread.last_stack) {
    thread.last_stack =
        stacks_.intern({.locations = {}, .truncated = true, .why = "blocked before its first sample"});
  }
  samples_.push_back({.thread = thread.number,
                      .stack = *thread.last_stack,
                      .seconds = seconds(thread.gathered_at_ns),
                      .weight_seconds = thread.gathered_seconds,
                      .blocked = true,
                      .approximate = true,
                      .region = thread.last_region});
  thread.gathered_seconds = 0;
}

void Assembler::take_switch(const Record& record) {
  ++switches_;
  ThreadState& thread = thread_of(record.pid, record.tid, record.time_ns);
  const bool in = record.kind == Record::Kind::switch_in;
  if (in) {
    if (thread.on_cpu) return;  // two events told of it
    end_wait(thread, record.time_ns);
  } else {
    if (thread.off_cpu) return;
    if (thread.on_cpu && record.time_ns > thread.since_ns) {
      threads_[thread.number].cpu_seconds += static_cast<double>(record.time_ns - thread.since_ns) * 1e-9;
    }
    thread.preempted = record.preempted;
  }
  thread.on_cpu = in;
  thread.off_cpu = !in;
  thread.since_ns = record.time_ns;
}

void Assembler::finish(std::uint64_t end_ns) {
  for (auto& [tid, thread] : by_tid_) {
    CpuProfile::Thread& shown = threads_[thread.number];
    if (thread.on_cpu && end_ns > thread.since_ns) {
      shown.cpu_seconds += static_cast<double>(end_ns - thread.since_ns) * 1e-9;
    }
    end_wait(thread, end_ns);
    put_gathered(thread);
    shown.end_seconds = seconds(end_ns);
  }
  for (auto& [pid, process] : processes_) forget_code(process, pid);
  by_tid_.clear();
  live_threads_ = 0;
}

void Assembler::write(CpuProfile& profile) {
  struct LocationHash {
    std::size_t operator()(const Location& l) const { return l.address * 0x9e3779b97f4a7c15u + l.module; }
  };
  std::unordered_map<Location, std::vector<std::uint32_t>, LocationHash> numbers;
  for (const StackTable::Entry& entry : stacks_.entries()) {
    CpuProfile::Stack stack{.truncated = entry.truncated, .why = entry.why};
    for (const Location& location : entry.locations) {
      auto [known, is_new] = numbers.try_emplace(location);
      if (is_new) {
        for (Frame& frame : symbols_.frames_at(location)) {
          known->second.push_back(static_cast<std::uint32_t>(profile.frames.size()));
          profile.frames.push_back(std::move(frame));
        }
      }
      stack.frames.insert(stack.frames.end(), known->second.begin(), known->second.end());
    }
    profile.stacks.push_back(std::move(stack));
  }
  std::stable_sort(samples_.begin(), samples_.end(),
                   [](const auto& a, const auto& b) { return a.seconds < b.seconds; });
  profile.samples = samples_;
  profile.threads = threads_;
  profile.lost_samples = lost_;
}

}  // namespace fulcrum::record
