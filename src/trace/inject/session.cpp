// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Starting: file, CUPTI, kinds one by one, threads. Whatever refuses is written down and done without.
#include "trace/inject/session.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <string>

#include <pthread.h>
#include <unistd.h>

#include "trace/inject/clock.h"

namespace fulcrum::trace::inject {
namespace {

std::atomic<Session*> the_session{nullptr};

// Few records each, and without them the others cannot be read: on all the time.
constexpr CUpti_ActivityKind kAlways[] = {CUPTI_ACTIVITY_KIND_DEVICE, CUPTI_ACTIVITY_KIND_CONTEXT,
                                          CUPTI_ACTIVITY_KIND_STREAM, CUPTI_ACTIVITY_KIND_OVERHEAD,
                                          CUPTI_ACTIVITY_KIND_JIT};
constexpr CUpti_ActivityKind kInWindows[] = {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL,
                                             CUPTI_ACTIVITY_KIND_MEMCPY, CUPTI_ACTIVITY_KIND_MEMCPY2,
                                             CUPTI_ACTIVITY_KIND_MEMSET};

std::uint64_t CUPTIAPI monotonic() { return std::uint64_t(now_ns()); }

void CUPTIAPI buffer_requested(std::uint8_t** buffer, std::size_t* bytes, std::size_t* most_records) {
  *buffer = session()->buffers.request();
  *bytes = *buffer != nullptr ? Buffers::kBufferBytes : 0;
  *most_records = 0;
}

void CUPTIAPI buffer_completed(CUcontext, std::uint32_t, std::uint8_t* buffer, std::size_t,
                               std::size_t valid_bytes) {
  session()->buffers.completed(buffer, valid_bytes);
}

bool start_thread(void* (*body)(void*), void* argument) {
  // Signals are the program's: none is to be handled on our threads.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  pthread_attr_setstacksize(&attributes, std::size_t{1} << 20);
  pthread_t thread;
  const bool started = pthread_create(&thread, &attributes, body, argument) == 0;
  pthread_attr_destroy(&attributes);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return started;
}

}  // namespace

Session* session() noexcept { return the_session.load(std::memory_order_acquire); }
void set_session(Session* s) noexcept { the_session.store(s, std::memory_order_release); }

Session::Session(Config asked)
    : config(std::move(asked)), owner_(getpid()), costs_(config.record_ns, config.call_ns) {
  sem_init(&control_, 0, 0);
  sem_init(&drained_, 0, 0);
  sem_init(&done_, 0, 0);
}

bool Session::open_file() noexcept {
  // A process that execs keeps its number: the file of what it was before stays.
  for (int again = 0; again < 10; ++again) {
    char path[4096];
    const char* folder = config.folder.c_str();
    if (again == 0)
      std::snprintf(path, sizeof path, "%s/%d.ftrace", folder, int(owner_));
    else
      std::snprintf(path, sizeof path, "%s/%d-%d.ftrace", folder, int(owner_), again);
    if (writer.open(path, config.limit_bytes)) return true;
    if (writer.failure() != EEXIST) return false;
  }
  return false;
}

bool Session::subscribe(bool is_first) noexcept {
  char holder[256] = "";
  CUptiResult result;
  if (cupti.cuptiSubscribe_v2 != nullptr) {
    CUpti_SubscriberParams parameters{};
    parameters.structSize = CUpti_SubscriberParams_STRUCT_SIZE;
    parameters.subscriberName = "Fulcrum";
    parameters.oldSubscriberName = holder;
    parameters.oldSubscriberSize = sizeof holder - 1;
    result = cupti.cuptiSubscribe_v2(&subscriber, on_callback, this, &parameters);
  } else {
    result = cupti.cuptiSubscribe(&subscriber, on_callback, this);
  }
  if (result == CUPTI_SUCCESS) return true;
  if (result == CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED) {
    if (holder[0] == '\0') std::snprintf(holder, sizeof holder, "another profiler");
    if (!is_first) {
      char note[320];
      std::snprintf(note, sizeof note, "%s took CUPTI between two windows: nothing is traced from there on",
                    holder);
      writer.property("note", note);
      return false;
    }
    writer.property("profiler", holder);
    std::fprintf(stderr, "fulcrum: %s holds CUPTI, so this program (%d) runs unprofiled\n", holder,
                 int(owner_));
    return false;
  }
  char note[128];
  std::snprintf(note, sizeof note, "CUPTI does not start here (error %d)", int(result));
  writer.property("note", note);
  return false;
}

bool Session::enable(CUpti_ActivityKind kind) noexcept {
  const CUptiResult result = cupti.cuptiActivityEnable(kind);
  if (result == CUPTI_SUCCESS) {
    if (!enabled_[kind]) writer.property("kind", name_of(kind));
    return enabled_[kind] = true;
  }
  char what[64];
  std::snprintf(what, sizeof what, "%s (%d)", name_of(kind), int(result));
  writer.property("refused", what);
  return false;
}

void Session::start() noexcept {
  if (!open_file()) {
    std::fprintf(stderr, "fulcrum: no trace of this program (%d): %s: %s\n", int(owner_),
                 config.folder.c_str(), std::strerror(writer.failure()));
    return;
  }
  write_command(writer);
  std::string why;
  try {
    why = load_cupti(cupti);
  } catch (...) {
    why = "out of memory";
  }
  if (!why.empty()) {
    writer.property("note", why);
    return;
  }
  writer.property("cupti_version", double(cupti.version));
  writer.property("driver_version", double(driver_version()));

  try {
    recorder_ = std::make_unique<Recorder>(writer, cupti);
    Governor::Limits limits;
    limits.budget_share = config.budget_share;
    limits.full = config.full;
    limits.limit_bytes = config.limit_bytes;
    governor_ = std::make_unique<Governor>(limits, now_ns(), std::uint64_t(now_ns()));
  } catch (...) {
    return;
  }
  buffers.stock(2);  // the others by the writer's thread
  if (!attach(true)) return;
  active_ = true;
  in_window_ = true;
  first_begin_ns_ = span_begin_ns_ = now_ns();
  enable_callbacks(*this);
  install_endings();
  if (!start_thread(enter_writer, this) || !start_thread(enter_control, this)) {
    active_ = false;
    writer.property("note", "no threads to trace with");
  }
}

/// Everything but callbacks. Again: without records.
bool Session::attach(bool is_first) noexcept {
  if (!subscribe(is_first)) return false;
  cupti.cuptiSetThreadIdType(CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM);
  std::uint8_t yes = 1;
  std::size_t size = sizeof yes;
  cupti.cuptiActivitySetAttribute(CUPTI_ACTIVITY_ATTR_ZEROED_OUT_ACTIVITY_BUFFER, &size, &yes);
  if (config.has_part("pinned"))
    cupti.cuptiActivitySetAttribute(CUPTI_ACTIVITY_ATTR_MEM_ALLOCATION_TYPE_HOST_PINNED, &size, &yes);
  // Before any kind is on, or their stamps are of another clock.
  if (const CUptiResult result = cupti.cuptiActivityRegisterTimestampCallback(monotonic);
      result != CUPTI_SUCCESS) {
    char note[128];
    std::snprintf(note, sizeof note, "CUPTI refused our clock (%d): nothing is traced", int(result));
    writer.property("note", note);
    return false;
  }
  if (const CUptiResult result = cupti.cuptiActivityRegisterCallbacks(buffer_requested, buffer_completed);
      result != CUPTI_SUCCESS) {
    char note[128];
    std::snprintf(note, sizeof note, "CUPTI took no buffers (%d): nothing is traced", int(result));
    writer.property("note", note);
    return false;
  }
  has_records_ = is_first;
  if (!is_first) {
    // For a window of some ten thousand kernels: what CUPTI takes by itself costs the program milliseconds.
    std::size_t few = 1, bytes = std::size_t{1} << 20;
    size = sizeof bytes;
    cupti.cuptiActivitySetAttribute(CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_SIZE, &size, &bytes);
    size = sizeof few;
    cupti.cuptiActivitySetAttribute(CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_PRE_ALLOCATE_VALUE, &size, &few);
    return attached_ = true;
  }
  for (const CUpti_ActivityKind kind : kAlways) enable(kind);
  for (const CUpti_ActivityKind kind : kInWindows) {
    if (kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL && config.has_part("no-kernels")) continue;
    enable(kind);
  }
  return attached_ = true;
}

void Session::set_window(bool on) noexcept {
  const std::int64_t begin_ns = now_ns();
  if (!on) in_window_ = false;
  if (on && !has_records_) {
    has_records_ = true;
    for (const CUpti_ActivityKind kind : kAlways)
      if (enabled_[kind]) cupti.cuptiActivityEnable(kind);
  }
  for (const CUpti_ActivityKind kind : kInWindows)
    if (enabled_[kind]) on ? cupti.cuptiActivityEnable(kind) : cupti.cuptiActivityDisable(kind);
  if (on) announce_launches(*this);
  if (on) forget_events();
  edge_ns_ = now_ns();
  edge_launches_ = rings.launches();
  if (on) in_window_ = true;
  ++toggles_;
  toggle_ns_ += now_ns() - begin_ns;
}

void Session::enable_managed() noexcept {
  if (!config.managed || managed_wanted_.exchange(true) ||
      cupti.cuptiActivityConfigureUnifiedMemoryCounter == nullptr)
    return;
  constexpr CUpti_ActivityUnifiedMemoryCounterKind kCounters[] = {
      CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_BYTES_TRANSFER_HTOD,
      CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_BYTES_TRANSFER_DTOH,
      CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_GPU_PAGE_FAULT};
  constexpr int kMostDevices = 32;
  CUpti_ActivityUnifiedMemoryCounterConfig configs[3 * kMostDevices] = {};
  const int devices = std::min(device_count(), kMostDevices);
  for (int i = 0; i < 3 * devices; ++i) {
    configs[i].scope = CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_SCOPE_PROCESS_SINGLE_DEVICE;
    configs[i].kind = kCounters[i % 3];
    configs[i].deviceId = std::uint32_t(i / 3);
    configs[i].enable = 1;
  }
  const CUptiResult result =
      cupti.cuptiActivityConfigureUnifiedMemoryCounter(configs, std::uint32_t(3 * devices));
  if (result != CUPTI_SUCCESS) {
    char what[64];
    std::snprintf(what, sizeof what, "UNIFIED_MEMORY_COUNTER (%d)", int(result));
    writer.property("refused", what);
    return;
  }
  enable(CUPTI_ACTIVITY_KIND_UNIFIED_MEMORY_COUNTER);
}

void Session::abandon_after_fork() noexcept {
  active_ = false;
  in_window_ = false;
  writer.abandon_after_fork();
}

}  // namespace fulcrum::trace::inject
