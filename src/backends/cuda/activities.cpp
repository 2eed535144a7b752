// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Activities of the device and of the host's calls that feed it, from CUPTI, on the clock of CLOCK_MONOTONIC. Graphs
// are reported node by node. Records wait in CUPTI's buffers, which are ours, until take() flushes them. CUPTI sees the
// driver's calls only when it is there before the context is: start() therefore begins with it.
#include "backends/cuda/activities.h"

#include <dlfcn.h>
#include <time.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "backends/cuda/activity_records.h"
#include "backends/cuda/api_kinds.h"
#include "backends/cuda/cupti.h"
#include "backends/cuda/parts.h"
#include "backends/cuda/runtime.h"

namespace fulcrum::backends::cuda {
namespace {

std::uint64_t CUPTIAPI monotonic_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000u + static_cast<std::uint64_t>(now.tv_nsec);
}

/// Buffers that CUPTI fills. Touched once when made: a page fault would land inside a traced call.
class Buffers {
 public:
  static constexpr std::size_t kBytes = std::size_t{1} << 20;  // about 6,000 records
  static constexpr std::size_t kReady = 8;

  void prepare() {
    for (std::size_t i = 0; i < kReady; ++i) give(make());
  }
  std::uint8_t* take() {
    const std::scoped_lock lock(mutex_);
    if (free_.empty()) return make();
    std::uint8_t* buffer = free_.back();
    free_.pop_back();
    return buffer;
  }
  void give(std::uint8_t* buffer) {
    if (!buffer) return;
    const std::scoped_lock lock(mutex_);
    free_.push_back(buffer);
  }

 private:
  static std::uint8_t* make() {
    auto* buffer = static_cast<std::uint8_t*>(std::aligned_alloc(4096, kBytes));
    if (buffer) std::memset(buffer, 0, kBytes);
    return buffer;
  }
  std::mutex mutex_;
  std::vector<std::uint8_t*> free_;
};

class Tracer {
 public:
  static Tracer& instance() {
    static Tracer& tracer = *new Tracer;  // CUPTI may call back while the process exits
    return tracer;
  }

  fulcrum_status start();
  fulcrum_status take(fulcrum_activity* into, std::int64_t capacity, std::int64_t* count);
  void stop();
  void watch_migrations();
  bool is_running() const { return running_; }
  void add_touch(std::uint64_t begin_ns, std::uint64_t end_ns);
  TracingState state() {
    const std::scoped_lock lock(mutex_);
    TracingState state = state_;
    state.clock_error_seconds = static_cast<double>(clock_error_ns_) * 1e-9;
    return state;
  }

 private:
  static void CUPTIAPI on_request(std::uint8_t** buffer, std::size_t* bytes, std::size_t* records) {
    *buffer = instance().buffers_.take();
    *bytes = *buffer ? Buffers::kBytes : 0;
    *records = 0;  // as many as fit
  }
  static void CUPTIAPI on_complete(CUcontext, std::uint32_t, std::uint8_t* buffer, std::size_t,
                                   std::size_t valid) {
    instance().read(buffer, valid);
    instance().buffers_.give(buffer);
  }

  fulcrum_status load();
  fulcrum_status enable();
  void disable();
  void enable_host_calls();
  fulcrum_status first_work();
  void read(std::uint8_t* buffer, std::size_t valid);
  void flush();
  fulcrum_status collect();
  Instant instant() const;
  fulcrum_status check(CUptiResult result, const char* what) const;

  Buffers buffers_;
  Cupti cupti_;
  bool loaded_ = false, running_ = false, own_clock_ = false, migrations_ = false;
  Instant first_;
  std::uint64_t window_begin_ns_ = 0;  // host's clock: what ended before it is ours or was handed out
  std::mutex mutex_;                   // of what follows: buffers may complete on CUPTI's thread
  std::vector<Seen> seen_;
  std::vector<fulcrum_activity> touched_;  // by the host, on its clock
  std::vector<fulcrum_activity> ready_;
  std::uint64_t clock_error_ns_ = 0;
  TracingState state_;
};

/// Adds the seconds of a scope to a sum.
class Spent {
 public:
  explicit Spent(double& seconds) : seconds_(seconds), begin_ns_(monotonic_ns()) {}
  Spent(const Spent&) = delete;
  Spent& operator=(const Spent&) = delete;
  ~Spent() { seconds_ += static_cast<double>(monotonic_ns() - begin_ns_) * 1e-9; }

 private:
  double& seconds_;
  std::uint64_t begin_ns_;
};

/// By name and without a call into the driver: CUPTI comes first. The handle stays, like the runtime's own.
bool driver_is_there() { return dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL) != nullptr; }

fulcrum_status Tracer::check(CUptiResult result, const char* what) const {
  if (result == CUPTI_SUCCESS) return done();
  const char* text = nullptr;
  cupti_.result_string(result, &text);
  const std::string message = std::string(what) + ": " + (text ? text : "unknown error") +
                              (result == CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED
                                   ? " (another profiler is attached to this process)"
                                   : "");
  return failed(FULCRUM_DEVICE_ERROR, message.c_str());
}

fulcrum_status Tracer::load() {
  if (loaded_) return done();
  const Library& library = cupti();
  if (!library) return failed(FULCRUM_UNSUPPORTED, ("no tracing of the device: " + library.why_not).c_str());
  cupti_ = Cupti::load(library);
  if (!cupti_.complete()) {
    return failed(FULCRUM_UNSUPPORTED, (library.path + " lacks a function that tracing needs").c_str());
  }
  buffers_.prepare();
  own_clock_ = cupti_.register_timestamp && cupti_.register_timestamp(monotonic_ns) == CUPTI_SUCCESS;
  FULCRUM_STATUS(check(cupti_.register_callbacks(on_request, on_complete), "cuptiActivityRegisterCallbacks"));
  loaded_ = true;
  return done();
}

void Tracer::watch_migrations() {
  if (!running_ || migrations_ || !cupti_.configure_unified) return;
  const Spent spent(state_.migrations_seconds);
  std::array<CUpti_ActivityUnifiedMemoryCounterConfig, 3> configs{};
  const CUpti_ActivityUnifiedMemoryCounterKind kinds[] = {
      CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_BYTES_TRANSFER_HTOD,
      CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_BYTES_TRANSFER_DTOH,
      CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_GPU_PAGE_FAULT};
  for (std::size_t i = 0; i < configs.size(); ++i) {
    configs[i].scope = CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_SCOPE_PROCESS_SINGLE_DEVICE;
    configs[i].kind = kinds[i];
    configs[i].deviceId = static_cast<std::uint32_t>(device().ordinal);
    configs[i].enable = 1;
  }
  // Not every driver or container allows it: without it migrations show as kernel time, and nothing else is lost.
  if (cupti_.configure_unified(configs.data(), static_cast<std::uint32_t>(configs.size())) != CUPTI_SUCCESS)
    return;
  migrations_ = cupti_.enable(CUPTI_ACTIVITY_KIND_UNIFIED_MEMORY_COUNTER) == CUPTI_SUCCESS;
}

void Tracer::add_touch(std::uint64_t begin_ns, std::uint64_t end_ns) {
  const std::scoped_lock lock(mutex_);
  touched_.push_back({FULCRUM_ACTIVITY_MIGRATE, 0, static_cast<double>(begin_ns) * 1e-9,
                      static_cast<double>(end_ns) * 1e-9});
}

/// The runtime's calls as a whole: a choice of some of them records nothing once there is a context. The driver's are
/// too many for that; of them only those that nobody makes through the runtime.
void Tracer::enable_host_calls() {
  if (cupti_.enable(CUPTI_ACTIVITY_KIND_RUNTIME) != CUPTI_SUCCESS) {
    (void)cupti_.enable(CUPTI_ACTIVITY_KIND_DRIVER);
  } else if (cupti_.enable_driver_api) {
    for (const ApiKind& api : kDirectDriverApis) (void)cupti_.enable_driver_api(api.id, 1);
  }
}

fulcrum_status Tracer::enable() {
  FULCRUM_STATUS(check(cupti_.enable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL), "tracing of kernels"));
  FULCRUM_STATUS(check(cupti_.enable(CUPTI_ACTIVITY_KIND_MEMCPY), "tracing of copies"));
  FULCRUM_STATUS(check(cupti_.enable(CUPTI_ACTIVITY_KIND_MEMSET), "tracing of fills"));
  enable_host_calls();
  return done();
}

void Tracer::disable() {
  for (const CUpti_ActivityKind kind :
       {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_MEMCPY, CUPTI_ACTIVITY_KIND_MEMSET,
        CUPTI_ACTIVITY_KIND_RUNTIME, CUPTI_ACTIVITY_KIND_DRIVER}) {
    (void)cupti_.disable(kind);
  }
  if (migrations_) (void)cupti_.disable(CUPTI_ACTIVITY_KIND_UNIFIED_MEMORY_COUNTER);
  migrations_ = false;
  if (cupti_.enable_driver_api) {
    for (const ApiKind& api : kDirectDriverApis) (void)cupti_.enable_driver_api(api.id, 0);
  }
}

/// The tightest of a few readings: one that was interrupted brackets the other clock badly.
Instant Tracer::instant() const {
  Instant best{.error_ns = ~std::uint64_t{0}};
  for (int i = 0; i < 20; ++i) {
    const std::uint64_t before = monotonic_ns();
    std::uint64_t cupti_ns = 0;
    if (cupti_.timestamp(&cupti_ns) != CUPTI_SUCCESS) continue;
    const std::uint64_t after = monotonic_ns();
    const std::uint64_t error_ns = (after - before) / 2;
    if (error_ns < best.error_ns) best = {before + error_ns, cupti_ns, error_ns};
  }
  return best;
}

// CUPTI makes its own device buffers at the first traced work: here, not inside a measured call.
fulcrum_status Tracer::first_work() {
  if (!available()) return failed(FULCRUM_UNSUPPORTED, why_not());
  FULCRUM_CUDA(cudaSetDevice(device().ordinal));
  Scratch scratch;
  FULCRUM_STATUS(scratch.take(256));
  FULCRUM_CUDA(cudaMemsetAsync(scratch.as<void>(), 0, 256, stream_of(nullptr)));
  FULCRUM_CUDA(cudaDeviceSynchronize());
  flush();
  return done();
}

fulcrum_status Tracer::start() {
  if (running_) return done();
  if (!driver_is_there()) return failed(FULCRUM_UNSUPPORTED, why_not());
  state_ = TracingState{};
  fulcrum_status status = done();
  {
    const Spent spent(state_.load_seconds);
    status = load();
  }
  if (status.code == FULCRUM_OK) {
    const Spent spent(state_.enable_seconds);
    status = enable();
  }
  if (status.code == FULCRUM_OK) {
    const Spent spent(state_.first_work_seconds);
    status = first_work();
  }
  if (status.code != FULCRUM_OK) {
    if (loaded_) disable();
    return available() ? status : failed(FULCRUM_UNSUPPORTED, why_not());
  }
  if (!own_clock_) first_ = instant();
  const std::scoped_lock lock(mutex_);
  seen_.clear();
  touched_.clear();
  ready_.clear();
  window_begin_ns_ = monotonic_ns();
  running_ = true;
  return done();
}

void Tracer::read(std::uint8_t* buffer, std::size_t valid) {
  if (!buffer || valid == 0) return;
  const std::scoped_lock lock(mutex_);
  CUpti_Activity* record = nullptr;
  while (cupti_.next_record(buffer, valid, &record) == CUPTI_SUCCESS) {
    if (Seen seen; read_record(*record, seen)) seen_.push_back(seen);
  }
}

void Tracer::flush() {
  const Spent spent(state_.flush_seconds);
  (void)cupti_.flush_all(0);
  // A buffer with one unfinished record is held back as a whole; after a wait for the device nothing in it is.
  (void)cupti_.flush_all(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
}

fulcrum_status Tracer::collect() {
  const std::uint64_t cut_ns = monotonic_ns();
  FULCRUM_CUDA(cudaDeviceSynchronize());
  flush();
  ClockMap clock{.first = first_, .same = own_clock_};
  if (!own_clock_) clock.last = instant();
  const std::scoped_lock lock(mutex_);
  std::vector<Seen> records = std::exchange(seen_, {});
  drop_nested(records);
  clock_error_ns_ = std::max({clock_error_ns_, lead_ns(records), clock.first.error_ns, clock.last.error_ns});
  const double begin_seconds = static_cast<double>(window_begin_ns_) * 1e-9;
  const double cut_seconds = static_cast<double>(cut_ns) * 1e-9;
  for (const Seen& seen : records) {
    const fulcrum_activity activity{seen.kind, seen.correlation, clock.seconds(seen.begin_ns),
                                    clock.seconds(seen.end_ns)};
    // Our own waits: the last take's, and this one's.
    if (is_host(seen) && (activity.end_seconds <= begin_seconds || activity.begin_seconds >= cut_seconds))
      continue;
    ready_.push_back(activity);
  }
  ready_.insert(ready_.end(), touched_.begin(), touched_.end());
  touched_.clear();
  std::stable_sort(ready_.begin(), ready_.end(), [](const fulcrum_activity& a, const fulcrum_activity& b) {
    return a.begin_seconds < b.begin_seconds;
  });
  window_begin_ns_ = monotonic_ns();
  return done();
}

fulcrum_status Tracer::take(fulcrum_activity* into, std::int64_t capacity, std::int64_t* count) {
  if (!running_) return failed(FULCRUM_INVALID_ARGUMENT, "tracing was not started");
  FULCRUM_STATUS(collect());
  const std::scoped_lock lock(mutex_);
  *count = static_cast<std::int64_t>(ready_.size());
  if (*count > capacity || !into) return done();
  std::copy(ready_.begin(), ready_.end(), into);
  ready_.clear();
  return done();
}

void Tracer::stop() {
  if (!running_) return;
  const Spent spent(state_.stop_seconds);
  (void)cudaDeviceSynchronize();
  disable();
  flush();
  running_ = false;
  const std::scoped_lock lock(mutex_);
  seen_.clear();
  touched_.clear();
  ready_.clear();
}

fulcrum_status start() { return Tracer::instance().start(); }
fulcrum_status take(fulcrum_activity* into, std::int64_t capacity, std::int64_t* count) {
  return Tracer::instance().take(into, capacity, count);
}
void stop() { Tracer::instance().stop(); }

}  // namespace

TracingState tracing_state() { return Tracer::instance().state(); }
void watch_migrations() { Tracer::instance().watch_migrations(); }

HostTouch::HostTouch() : begin_ns_(Tracer::instance().is_running() ? monotonic_ns() : 0) {}
HostTouch::~HostTouch() {
  if (begin_ns_ != 0) Tracer::instance().add_touch(begin_ns_, monotonic_ns());
}

void add_activities(fulcrum_backend& table) {
  table.activity_start = start;
  table.activity_take = take;
  table.activity_stop = stop;
}

}  // namespace fulcrum::backends::cuda
