// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// The loop of a recording: drain, adapt the rate and the size of the stack dumps, look whether it is time to end.
#include "record/session.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "record/cost.h"
#include "record/counters.h"
#include "record/disassemble.h"
#include "record/loops.h"
#include "record/mix.h"
#include "record/preload.h"
#include "record/regions.h"
#include "record/touched.h"

namespace fulcrum::record {
namespace {

// Rings wake us when they fill and the program when it ends; this is for the rest.
constexpr int kDrainMs = 100;
constexpr double kProgressSeconds = 0.25;
// So many stacks that the dump cut off, and larger dumps are asked for.
constexpr std::int64_t kSmallDumps = 3;
// After Ctrl-C the terminal has told the program too; it gets this long before we ask it ourselves, and again.
constexpr double kPatienceSeconds[] = {0.3, 2.3, 4.3};

class Session {
 public:
  Session(const Options& options, const EventAccess& access) : options_(options), access_(access) {}
  Result<CpuProfile> run();

 private:
  Status begin();
  Status begin_started();
  Status begin_attached();
  void loop();
  void see_it_out();
  void adapt();
  void report(std::string_view activity, bool always = false);
  bool time_to_end();
  bool asked_to_stop();
  CpuProfile finish();
  void weigh_cycles(CpuProfile&) const;
  void add_notes(CpuProfile&) const;
  double now_seconds() const { return static_cast<double>(monotonic_ns() - begin_ns_) * 1e-9; }
  EventOptions event_options() const;

  const Options& options_;
  EventAccess access_;
  std::optional<Target> target_;
  std::optional<Events> events_;
  std::unique_ptr<Assembler> assembler_;
  Regions regions_;
  std::optional<Preload> preload_;
  std::optional<TouchedBytes> touched_;
  Counters counters_;
  std::uint64_t begin_ns_ = 0;
  double collector_before_ = 0, steal_before_ = 0, last_report_ = -1, stop_seen_ = -1;
  std::size_t asked_ = 0;
  bool limit_reached_ = false, time_over_ = false, stopped_ = false;
};

EventOptions Session::event_options() const {
  EventOptions events;
  events.rate_hz = options_.rate_hz;
  events.burst_rate_hz =
      options_.adaptive && options_.burst_rate_hz > options_.rate_hz ? options_.burst_rate_hz : 0;
  events.children = options_.children;
  events.switches = options_.off_cpu;
  return events;
}

Status Session::begin_started() {
  std::vector<std::pair<std::string, std::string>> environment;
  if (options_.python) environment.emplace_back("PYTHONPERFSUPPORT", "1");
  if (const std::string regions = regions_.path(); !regions.empty())
    environment.emplace_back("FULCRUM_REGIONS", regions);
  if (options_.preload) {
    preload_.emplace(0);
    for (auto& variable : preload_->environment()) environment.push_back(std::move(variable));
  }
  environment.insert(environment.end(), options_.environment.begin(), options_.environment.end());
  FULCRUM_TRY(target_, Target::start(options_.command, environment, options_));
  const pid_t pid = target_->pid();
  FULCRUM_TRY(events_, Events::open(std::span(&pid, 1), allowed_cpus(), event_options(), access_));
  if (access_.hardware) counters_ = Counters::open(pid, true, access_.kernel);
  begin_ns_ = monotonic_ns();
  assembler_ = std::make_unique<Assembler>(begin_ns_);
  assembler_->add_thread(pid, pid, options_.command[0], true);
  assembler_->region_of = [this](pid_t, pid_t, const SampleView& sample) { return regions_.find(sample); };
  return target_->go();
}

Status Session::begin_attached() {
  FULCRUM_TRY(target_, Target::attach(static_cast<pid_t>(options_.pid)));
  std::vector<pid_t> processes{target_->pid()};
  if (options_.children) {
    const std::vector<pid_t> more = descendants_of(target_->pid());
    processes.insert(processes.end(), more.begin(), more.end());
  }
  std::vector<pid_t> threads;
  for (const pid_t process : processes) {
    const std::vector<pid_t> own = threads_of(process);
    threads.insert(threads.end(), own.begin(), own.end());
  }
  EventOptions events = event_options();
  events.enable_on_exec = false;
  FULCRUM_TRY(events_, Events::open(threads, online_cpus(), events, access_));
  begin_ns_ = monotonic_ns();
  assembler_ = std::make_unique<Assembler>(begin_ns_);
  events_->enable(events_->level());
  // After the events are on: what is mapped meanwhile is seen twice, never missed.
  for (const pid_t process : processes) {
    assembler_->add_mappings(process);
    for (const pid_t thread : threads_of(process)) {
      assembler_->add_thread(process, thread, thread_name(process, thread), false);
    }
  }
  return {};
}

Status Session::begin() {
  collector_before_ = thread_cpu_seconds();
  steal_before_ = steal_seconds();
  return options_.command.empty() ? begin_attached() : begin_started();
}

void Session::adapt() {
  const bool fast = assembler_->on_cpu_samples() < options_.enough_samples && events_->has(Level::burst);
  const bool deep = assembler_->small_dumps() >= kSmallDumps && events_->has(Level::deep);
  const Level wanted = deep ? (fast ? Level::deep_burst : Level::deep) : fast ? Level::burst : Level::normal;
  if (wanted != events_->level()) events_->enable(wanted);
  if (!fast && events_->has(Level::burst)) events_->drop_burst();
}

void Session::report(std::string_view activity, bool always) {
  if (!options_.progress) return;
  const double now = now_seconds();
  if (!always && now - last_report_ < kProgressSeconds) return;
  last_report_ = now;
  options_.progress(Progress{.seconds = now,
                             .samples = assembler_->on_cpu_samples(),
                             .lost = assembler_->lost(),
                             .threads = assembler_->live_threads(),
                             .bytes = assembler_->bytes(),
                             .collector_cpu = thread_cpu_seconds() - collector_before_,
                             .activity = activity});
}

/// The stop flag is up. A program of ours is asked to end, each time less politely.
bool Session::asked_to_stop() {
  if (!options_.stop || !options_.stop->load(std::memory_order_relaxed)) return false;
  stopped_ = true;
  if (!target_->started()) return true;
  const double now = now_seconds();
  if (stop_seen_ < 0) stop_seen_ = now;
  static_assert(std::size(kPatienceSeconds) == 3);
  if (asked_ < 3 && now - stop_seen_ > kPatienceSeconds[asked_]) {
    target_->ask_to_end();
    ++asked_;
  }
  return true;
}

bool Session::time_to_end() {
  if (!target_->running()) return true;
  if (asked_to_stop()) return !target_->started();
  time_over_ = options_.duration_seconds > 0 && now_seconds() >= options_.duration_seconds;
  limit_reached_ = assembler_->bytes() >= options_.size_limit_bytes;
  return time_over_ || limit_reached_;
}

void Session::loop() {
  while (!time_to_end()) {
    events_->wait(kDrainMs, target_->pidfd());
    events_->drain(false, [&](const Record& record) { assembler_->take(record); });
    adapt();
    if (touched_) touched_->tick(now_seconds());
    report("sampling");
  }
}

/// A program of ours that outlives a full profile is waited for: nobody else would take its exit code or its Ctrl-C.
void Session::see_it_out() {
  if (!limit_reached_ || time_over_ || !target_->started()) return;
  while (target_->running()) {
    asked_to_stop();
    const timespec pause{0, kDrainMs * 1'000'000L};
    ::nanosleep(&pause, nullptr);
    report("the profile is full, waiting for the program");
  }
}

void Session::add_notes(CpuProfile& profile) const {
  auto& notes = profile.notes;
  if (!access_.kernel && !limit_reached_ && target_->system_seconds() > 0.01 * profile.cpu_seconds) {
    notes.push_back(
        fmt::format("{:.0f} % of the CPU time was inside the kernel, where an ordinary user sees no samples",
                    100 * target_->system_seconds() / profile.cpu_seconds));
  }
  if (!access_.hardware) notes.emplace_back("no hardware counters here: samples follow the CPU clock");
  if (const double part = counters_.least_counted(); part < 0.99) {
    notes.push_back(fmt::format(
        "hardware counters took turns: some were on for {:.0f} % of the time, and are scaled", 100 * part));
  }
  if (profile.lost_samples > 0) {
    notes.push_back(fmt::format("{} records were lost because the ring was full", profile.lost_samples));
  }
  if (assembler_->throttled() > 0) notes.emplace_back("the kernel throttled the sampling");
  if (time_over_)
    notes.push_back(fmt::format("ended after the {} s that were asked for; the program runs on",
                                options_.duration_seconds));
  if (limit_reached_) notes.push_back(size_limit_note(profile.wall_seconds));
  if (stopped_) notes.emplace_back("interrupted: the profile ends there");
  if (options_.instruction_mix && !can_disassemble()) {
    notes.push_back(disassembler_text() +
                    ": what the hot code does was not looked into (install libcapstone4)");
  }
  if (!libdw()) {
    notes.push_back(fmt::format(
        "{}: stacks are the sampled address alone, names come from nowhere (install libdw1)", libdw_text()));
  }
}

/// Cycles come at a rate that changes; what they add up to is the CPU time, of which an ordinary user sees the part
/// outside the kernel.
void Session::weigh_cycles(CpuProfile& profile) const {
  const double seen_seconds = profile.cpu_seconds - (access_.kernel ? 0 : target_->system_seconds());
  const double sampled = assembler_->sampled_seconds();
  if (!(seen_seconds > 0 && sampled > 0)) return;
  for (CpuProfile::Sample& sample : profile.samples) {
    if (!sample.blocked) sample.weight_seconds *= seen_seconds / sampled;
  }
}

CpuProfile Session::finish() {
  CpuProfile profile;
  const std::uint64_t end_ns = monotonic_ns();
  events_->disable();
  events_->drain(true, [&](const Record& record) { assembler_->take(record); });
  profile.wall_seconds = static_cast<double>(end_ns - begin_ns_) * 1e-9;
  profile.counters = counters_.read();
  profile.cpu_seconds = target_->cpu_seconds();
  profile.steal_seconds = steal_seconds() - steal_before_;
  assembler_->finish(end_ns);
  profile.overhead_collector_seconds = thread_cpu_seconds() - collector_before_;
  if (touched_) profile.touched_bytes = touched_->bytes();
  report("reading symbols", true);
  assembler_->write(profile);
  if (access_.hardware) weigh_cycles(profile);
  profile.regions = regions_.read();
  if (preload_) {
    profile.calls = preload_->calls();
    add_loops(preload_->loops(), *assembler_, profile);
  }
  if (options_.instruction_mix && can_disassemble()) {
    report("decoding instructions", true);
    add_mixes(*assembler_, profile);
  }
  see_it_out();
  profile.exit_code = target_->exit_code();
  profile.overhead_target_seconds =
      static_cast<double>(assembler_->on_cpu_samples()) * seconds_per_sample(access_) +
      static_cast<double>(assembler_->switches()) * kSecondsPerSwitch;
  profile.created_utc = utc_now();
  profile.event = access_.hardware ? "cycles" : "cpu-clock";
  profile.rate_hz = options_.rate_hz;
  add_notes(profile);
  return profile;
}

Result<CpuProfile> Session::run() {
  FULCRUM_CHECK(begin());
  if (options_.touched_bytes) touched_.emplace(target_->pid());
  loop();
  return finish();
}

}  // namespace

std::string size_limit_note(double seconds) {
  return fmt::format("the profile reached its size limit after {:.1f} s: what came after is not in it",
                     seconds);
}

double thread_cpu_seconds() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

double steal_seconds() {
  const auto text = read_file("/proc/stat");
  unsigned long long ticks[8] = {};
  if (!text.ok() ||
      std::sscanf(text->c_str(), "cpu %llu %llu %llu %llu %llu %llu %llu %llu", &ticks[0], &ticks[1],
                  &ticks[2], &ticks[3], &ticks[4], &ticks[5], &ticks[6], &ticks[7]) != 8) {
    return 0;
  }
  return static_cast<double>(ticks[7]) / static_cast<double>(::sysconf(_SC_CLK_TCK));
}

Result<CpuProfile> record_perf(const Options& options, const EventAccess& access) {
  return Session(options, access).run();
}

}  // namespace fulcrum::record
