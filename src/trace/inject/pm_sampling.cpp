// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// The thread that sets PM sampling up, reads samples and writes them. To decode a sample of a busy H200 and turn its counts
// into values takes 100 to 200 us of a core, and samples that are not read in time end the sampling: hence the long
// interval, at which more than half of that core stays free.
#include "trace/inject/pm_sampling.h"

#if __has_include(<cupti_pmsampling.h>)

#include "trace/inject/metrics_thread.h"
#include "trace/inject/pm_clock.h"
#include "trace/inject/pm_session.h"

#include <algorithm>
#include <atomic>
#include <ctime>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <dlfcn.h>

namespace fulcrum::trace::inject {
namespace {

constexpr std::uint64_t kIntervalNs = 500'000;
constexpr double kPauseSeconds = 0.05;
constexpr int kMostPortions = 8;  // one after the other, before others have their turn
constexpr std::uint32_t kMostDevices = 16;

struct Sampled {
  std::unique_ptr<PmSession> session;
  PmClock clock;
  std::int64_t started_ns = 0;  // CLOCK_MONOTONIC
  std::int64_t samples = 0;
};

struct State {
  MetricsThread thread;
  std::atomic<Writer*> writer{nullptr};
  std::atomic<std::uint32_t> wanted{0};  // one bit a device
  PmCupti cupti;
  bool loaded = false;
};

State& state() {
  static State& state = *new State;  // never destroyed: the thread may outlive the program's destructors
  return state;
}

std::int64_t clock_ns(clockid_t clock) {
  timespec t{};
  clock_gettime(clock, &t);
  return std::int64_t{t.tv_sec} * 1'000'000'000 + t.tv_nsec;
}

PmInstant instant(const PmCupti& cupti) {
  PmInstant now;
  std::uint64_t stamp = 0;
  const std::int64_t before = clock_ns(CLOCK_MONOTONIC);
  cupti.timestamp(&stamp);
  now.realtime_ns = clock_ns(CLOCK_REALTIME);
  now.cupti_ns = static_cast<std::int64_t>(stamp);
  now.monotonic_ns = before + (clock_ns(CLOCK_MONOTONIC) - before) / 2;
  return now;
}

/// CUPTI as the program or our injection has it.
void* find_cupti() {
  for (const char* name : {"libcupti.so.13", "libcupti.so.12", "libcupti.so"})
    if (void* library = dlopen(name, RTLD_LAZY | RTLD_LOCAL | RTLD_NOLOAD)) return library;
  return nullptr;
}

void refuse(Writer& writer, const std::string& why) { writer.property("counters_refused", why); }

std::string open_device(Sampled& sampled, const PmCupti& cupti, std::uint32_t device, Writer& writer) {
  CUpti_Profiler_Initialize_Params initialize{};
  initialize.structSize = CUpti_Profiler_Initialize_Params_STRUCT_SIZE;
  if (const int result = cupti.initialize(&initialize)) return why_refused(result, "cuptiProfilerInitialize");
  CUpti_Device_GetChipName_Params chip{};
  chip.structSize = CUpti_Device_GetChipName_Params_STRUCT_SIZE;
  chip.deviceIndex = device;
  if (const int result = cupti.chip_name(&chip)) return why_refused(result, "cuptiDeviceGetChipName");
  writer.property("chip", chip.pChipName);
  const MetricSet* set = metrics_of(chip.pChipName);
  if (!set) return std::string("no set of counters is known for the chip ") + chip.pChipName;
  sampled.session = std::make_unique<PmSession>(cupti, device);
  std::string refused = sampled.session->open(*set, chip.pChipName);
  if (refused.empty()) {
    sampled.started_ns = clock_ns(CLOCK_MONOTONIC);
    refused = sampled.session->start(kIntervalNs);
  }
  if (!refused.empty()) {
    sampled.session->stop();
    [[maybe_unused]] const PmSession* const left = sampled.session.release();  // as in finish()
  }
  return refused;
}

void add_device(std::vector<Sampled>& all, const PmCupti& cupti, std::uint32_t device, Writer& writer) {
  Sampled sampled;
  const std::int64_t began_ns = clock_ns(CLOCK_MONOTONIC);
  const std::string refused = open_device(sampled, cupti, device, writer);
  if (!refused.empty()) return refuse(writer, refused);
  writer.property("counters_setup_seconds", static_cast<double>(clock_ns(CLOCK_MONOTONIC) - began_ns) * 1e-9);
  all.push_back(std::move(sampled));
}

bool is_idle(const file::Counter& counter) {
  constexpr float kNothing = 0.002F;
  return counter.sm_active <= 0 && counter.dram < kNothing && counter.pcie_read < 1 && counter.pcie_write < 1;
}

/// Samples of an idle device become one.
void join_idle(std::vector<file::Counter>& counters) {
  std::size_t kept = 0;
  for (const file::Counter& counter : counters) {
    if (kept > 0 && is_idle(counter) && is_idle(counters[kept - 1]))
      counters[kept - 1].end_ns = counter.end_ns;
    else
      counters[kept++] = counter;
  }
  counters.resize(kept);
}

/// A portion. False: nothing more will come from this device.
bool drain_portion(Sampled& sampled, const PmCupti& cupti, Writer& writer, const std::atomic<bool>* stop,
                   bool& full) {
  std::vector<file::Counter> counters;
  const PmSession::Drained drained = sampled.session->drain(counters, stop);
  full = drained.full && drained.samples > 0;
  if (drained.last_stamp > 0)
    sampled.clock.update(static_cast<std::int64_t>(drained.last_stamp), instant(cupti), sampled.started_ns);
  for (file::Counter& counter : counters) {
    counter.begin_ns = sampled.clock.convert(counter.begin_ns);
    counter.end_ns = sampled.clock.convert(counter.end_ns);
  }
  sampled.samples += static_cast<std::int64_t>(counters.size());
  join_idle(counters);
  if (!counters.empty())
    writer.append(file::Kind::counter, counters.data(), sizeof(file::Counter), counters.size());
  if (drained.stuck)
    writer.property("counters_ended",
                    "the room for samples was full: the reading thread was kept from its CPU");
  if (!drained.failure.empty()) writer.property("counters_ended", drained.failure);
  return !drained.stuck && drained.failure.empty();
}

bool drain(Sampled& sampled, const PmCupti& cupti, Writer& writer, const std::atomic<bool>* stop) {
  bool full = true;
  for (int i = 0; full && i < kMostPortions; ++i)
    if (!drain_portion(sampled, cupti, writer, stop, full)) return false;
  return true;
}

void finish(Sampled& sampled, const PmCupti& cupti, Writer& writer, bool more) {
  PmSession& session = *sampled.session;
  session.stop();
  if (more) drain(sampled, cupti, writer, nullptr);
  if (more && sampled.samples == 0)
    refuse(writer, "the program ended before the first sample: setting counters up takes half a second");
  const double samples = static_cast<double>(std::max<std::int64_t>(sampled.samples, 1));
  writer.property("counters_interval_ns", static_cast<double>(session.interval_ns()));
  writer.property("counters_samples", static_cast<double>(sampled.samples));
  writer.property("counters_clock", sampled.clock.name());
  writer.property("counters_decode_ns_a_sample", session.decode_seconds() * 1e9 / samples);
  writer.property("counters_evaluate_ns_a_sample", session.evaluate_seconds() * 1e9 / samples);
  // Left as it is until the process ends: on an H200 (CUDA 13.0) taking it down frees memory that is not CUPTI's, and the
  // program would end in abort().
  [[maybe_unused]] const PmSession* const left = sampled.session.release();
}

void run() {
  State& our = state();
  Writer& writer = *our.writer.load();
  std::vector<Sampled> all;
  std::uint32_t seen = 0;
  while (true) {
    const std::uint32_t wanted = our.wanted & ~seen;
    for (std::uint32_t device = 0; device < kMostDevices; ++device)
      if (wanted >> device & 1U) add_device(all, our.cupti, device, writer);
    seen |= wanted;
    if (!our.thread.wait(kPauseSeconds)) break;
    for (auto each = all.begin(); each != all.end();) {
      if (drain(*each, our.cupti, writer, &our.thread.asked_to_end())) {
        ++each;
        continue;
      }
      finish(*each, our.cupti, writer, false);
      each = all.erase(each);
    }
  }
  for (Sampled& each : all) finish(each, our.cupti, writer, true);
}

}  // namespace

void start_counters(Writer& writer, CUcontext context) noexcept {
  State& our = state();
  if (our.wanted == 0) {
    void* library = find_cupti();
    our.loaded = library && our.cupti.load(library);
    if (!our.loaded) {
      our.wanted = ~0U;  // once is enough
      refuse(writer,
             library ? "this CUPTI has no PM sampling: it came with CUDA 12.6" : "CUPTI is not loaded");
    }
  }
  if (!our.loaded) return;
  std::uint32_t device = 0;
  const int result = our.cupti.device_of_context(context, &device);
  if (result != CUPTI_SUCCESS) return refuse(writer, why_refused(result, "cuptiGetDeviceId"));
  if (device >= kMostDevices) return;
  const std::uint32_t before = our.wanted.fetch_or(1U << device);
  if (before != 0) return;
  our.writer = &writer;
  if (!our.thread.start("fulcrum-counter", run, 0)) refuse(writer, "no thread could be started");
}

void stop_counters() noexcept { state().thread.stop(2); }

}  // namespace fulcrum::trace::inject

#else

namespace fulcrum::trace::inject {

void start_counters(Writer& writer, CUcontext) noexcept {
  writer.property("counters_refused",
                  "this build has no PM sampling: it needs the headers of CUDA 12.6 or later");
}

void stop_counters() noexcept {}

}  // namespace fulcrum::trace::inject

#endif
