// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Recording where perf events are forbidden. A preloaded library samples from inside; we unwind and name as ever. The
// kernel tells of no mapping, thread or switch here, so mappings are read again when an address is not known.
#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <map>

#include "record/disassemble.h"
#include "record/loops.h"
#include "record/mix.h"
#include "record/preload.h"
#include "record/regions.h"
#include "record/session.h"

namespace fulcrum::record {
namespace {

constexpr std::uint64_t kDrainNs = 10'000'000;
constexpr std::uint64_t kMapsEveryNs = 50'000'000;

class TimerSession {
 public:
  explicit TimerSession(const Options& options)
      : options_(options), preload_(static_cast<std::uint64_t>(1e9 / options.rate_hz)) {}
  Result<CpuProfile> run();

 private:
  void take(const inject::SampleSlot&);
  bool time_to_end();
  CpuProfile finish();

  const Options& options_;
  Preload preload_;
  Regions regions_;
  std::optional<Target> target_;
  std::optional<Assembler> assembler_;
  std::map<pid_t, std::uint64_t> looked_ns_;
  std::uint64_t begin_ns_ = 0, full_ns_ = 0;  // full: when the profile reached its size limit, 0: it did not
  double collector_before_ = 0, steal_before_ = 0, stop_seen_ = -1, cpu_when_full_ = 0;
  std::size_t asked_ = 0;
};

void TimerSession::take(const inject::SampleSlot& slot) {
  if (full_ns_ != 0) return;
  if (assembler_->bytes() >= options_.size_limit_bytes) {
    full_ns_ = monotonic_ns();
    cpu_when_full_ = target_->cpu_seconds();
    return;
  }
  Record record;
  record.time_ns = slot.time_ns;
  record.pid = slot.pid;
  record.tid = slot.tid;
  SampleView& sample = record.sample;
  std::copy_n(slot.registers, kDwarfRegisters, sample.registers.begin());
  sample.ip = sample.registers[kDwarfPc];
  sample.period = slot.weight_ns;
  sample.has_registers = true;
  sample.stack = {reinterpret_cast<const std::byte*>(slot.stack),
                  std::min(slot.stack_bytes, inject::kStackBytes)};
  sample.stack_asked = inject::kStackBytes;
  std::uint64_t& looked = looked_ns_[slot.pid];
  if (!assembler_->knows(slot.pid, sample.ip) && monotonic_ns() - looked > kMapsEveryNs) {
    looked = monotonic_ns();
    assembler_->refresh_mappings(slot.pid);
  }
  if (!assembler_->knows_thread(slot.tid)) {
    assembler_->add_thread(slot.pid, slot.tid, thread_name(slot.pid, slot.tid), false);
  }
  assembler_->take(record);
}

bool TimerSession::time_to_end() {
  if (!target_->running()) return true;
  const double now = static_cast<double>(monotonic_ns() - begin_ns_) * 1e-9;
  if (options_.stop && options_.stop->load(std::memory_order_relaxed)) {
    if (stop_seen_ < 0) stop_seen_ = now;
    if (asked_ < 3 && now - stop_seen_ > 0.3 + 2.0 * static_cast<double>(asked_)) {
      target_->ask_to_end();
      ++asked_;
    }
    return false;
  }
  // A full profile takes no more, but the program is waited for: its exit code and its Ctrl-C are ours.
  return options_.duration_seconds > 0 && now >= options_.duration_seconds;
}

CpuProfile TimerSession::finish() {
  CpuProfile profile;
  preload_.drain([&](const inject::SampleSlot& slot) { take(slot); });
  const std::uint64_t end_ns = full_ns_ != 0 ? full_ns_ : monotonic_ns();
  profile.wall_seconds = static_cast<double>(end_ns - begin_ns_) * 1e-9;
  profile.cpu_seconds = full_ns_ != 0 ? cpu_when_full_ : target_->cpu_seconds();
  profile.exit_code = target_->exit_code();
  profile.steal_seconds = steal_seconds() - steal_before_;
  assembler_->finish(end_ns);
  profile.overhead_collector_seconds = thread_cpu_seconds() - collector_before_;
  assembler_->write(profile);
  for (CpuProfile::Sample& sample : profile.samples)
    profile.threads[sample.thread].cpu_seconds += sample.weight_seconds;
  profile.regions = regions_.read();
  profile.calls = preload_.calls();
  add_loops(preload_.loops(), *assembler_, profile);
  profile.lost_samples = preload_.lost_samples();
  if (options_.instruction_mix && can_disassemble()) add_mixes(*assembler_, profile);
  profile.created_utc = utc_now();
  profile.event = "timer";
  profile.rate_hz = options_.rate_hz;
  auto& notes = profile.notes;
  notes.emplace_back(
      "sampled by timers inside the program: at most about 250 samples a second and thread, none in the "
      "kernel, and time off the CPU is not seen");
  if (preload_.threads() == 0) {
    notes.emplace_back(
        "the program did not load our library (it is static, or runs with other rights): no samples");
  }
  if (full_ns_ != 0) notes.push_back(size_limit_note(profile.wall_seconds));
  if (profile.lost_samples > 0) notes.push_back(fmt::format("{} samples were lost", profile.lost_samples));
  return profile;
}

Result<CpuProfile> TimerSession::run() {
  if (!preload_.there()) {
    return Error{Code::environment,
                 "libfulcrum_preload.so, which samples by timers, is not beside the program",
                 "build or install fulcrum whole, or name its folder in FULCRUM_MODULE_PATH"};
  }
  auto environment = preload_.environment();
  if (options_.python) environment.emplace_back("PYTHONPERFSUPPORT", "1");
  if (const std::string path = regions_.path(); !path.empty())
    environment.emplace_back("FULCRUM_REGIONS", path);
  environment.insert(environment.end(), options_.environment.begin(), options_.environment.end());
  collector_before_ = thread_cpu_seconds();
  steal_before_ = steal_seconds();
  FULCRUM_TRY(target_, Target::start(options_.command, environment, options_));
  begin_ns_ = monotonic_ns();
  assembler_.emplace(begin_ns_);
  assembler_->region_of = [this](pid_t, pid_t, const SampleView& sample) { return regions_.find(sample); };
  FULCRUM_CHECK(target_->go());
  double reported = 0;
  while (!time_to_end()) {
    const timespec pause{0, static_cast<long>(kDrainNs)};
    ::nanosleep(&pause, nullptr);
    preload_.drain([&](const inject::SampleSlot& slot) { take(slot); });
    const double now = static_cast<double>(monotonic_ns() - begin_ns_) * 1e-9;
    if (options_.progress && now - reported > 0.25) {
      reported = now;
      options_.progress(Progress{.seconds = now,
                                 .samples = assembler_->on_cpu_samples(),
                                 .lost = preload_.lost_samples(),
                                 .threads = assembler_->live_threads(),
                                 .bytes = assembler_->bytes(),
                                 .collector_cpu = thread_cpu_seconds() - collector_before_,
                                 .activity = "sampling"});
    }
  }
  return finish();
}

}  // namespace

Result<CpuProfile> record_timer(const Options& options, const EventAccess& access) {
  if (!options.command.empty()) return TimerSession(options).run();
  return Error{
      Code::environment,
      fmt::format(
          "a process that runs already can only be seen with perf events, and they are not allowed here "
          "(kernel.perf_event_paranoid is {})",
          access.paranoid_level),
      "start the program with record instead"};
}

}  // namespace fulcrum::record
