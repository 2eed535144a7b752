// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// A CUPTI that is none, for tests of the injected library on machines without a GPU: it takes the calls, keeps buffers
// and callbacks as the real one does, and does what the words in FAKE_CUPTI say: conflict, no_driver, refuse, clock,
// drops, zero, hang, late, stays (it cannot be detached), taken (another has it when it was), grids (only what is traced
// is numbered), version=N.
#include "support/cupti/fake_cupti.h"

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <map>
#include <mutex>
#include <string>
#include <string_view>

#include <cupti.h>
#include <unistd.h>

namespace {

bool asked(std::string_view word) {
  const char* words = getenv("FAKE_CUPTI");
  const std::string all = std::string(",") + (words != nullptr ? words : "") + ",";
  return all.find("," + std::string(word) + ",") != all.npos;
}

const pid_t home = getpid();
int foreign_calls = 0;
void count_call() {
  if (getpid() != home) ++foreign_calls;
}

// A thread that completes a buffer asks for the next one inside.
std::recursive_mutex& mutex_of_all() {
  static auto* const mutex = new std::recursive_mutex;
  return *mutex;
}
struct Lock {
  Lock() { mutex_of_all().lock(); }
  ~Lock() { mutex_of_all().unlock(); }
};

CUpti_CallbackFunc subscriber = nullptr;
void* subscriber_data = nullptr;
CUpti_BuffersCallbackRequestFunc request = nullptr;
CUpti_BuffersCallbackCompleteFunc complete = nullptr;
CUpti_TimestampCallbackFunc stamp = nullptr;
std::atomic<bool> kinds[128];
std::atomic<bool> callbacks[8][1024];
std::atomic<std::uint32_t> correlation{0};
std::atomic<std::uint32_t> context_number{1};
std::size_t dropped = 0;
std::uint64_t launches = 0;
std::atomic<std::uint64_t> launched{0};

std::uint8_t* buffer = nullptr;
std::size_t buffer_bytes = 0, used = 0;

std::size_t size_of(CUpti_ActivityKind kind) {
  switch (kind) {
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
      return sizeof(CUpti_ActivityKernel10);
    case CUPTI_ACTIVITY_KIND_MEMCPY:
      return sizeof(CUpti_ActivityMemcpy6);
    case CUPTI_ACTIVITY_KIND_DEVICE:
      return sizeof(CUpti_ActivityDevice5);
    case CUPTI_ACTIVITY_KIND_CONTEXT:
      return sizeof(CUpti_ActivityContext3);
    case CUPTI_ACTIVITY_KIND_STREAM:
      return sizeof(CUpti_ActivityStream);
    case CUPTI_ACTIVITY_KIND_OVERHEAD:
      return sizeof(CUpti_ActivityOverhead3);
    default:
      return 0;
  }
}

void hand_over() {
  if (buffer == nullptr) return;
  complete(nullptr, 0, buffer, buffer_bytes, used);
  buffer = nullptr;
  used = 0;
}

template <typename Record>
void put(const Record& record) {
  const Lock lock;
  if (!kinds[record.kind] || request == nullptr) return;
  if (buffer != nullptr && used + sizeof record > buffer_bytes) hand_over();
  if (buffer == nullptr) {
    std::size_t most = 0;
    request(&buffer, &buffer_bytes, &most);
    if (buffer == nullptr || buffer_bytes < sizeof record) abort();  // as CUPTI before 12.9
    for (std::size_t i = 0; i < buffer_bytes; ++i)
      if (buffer[i] != 0) abort();  // it promised zeroes
  }
  std::memcpy(buffer + used, &record, sizeof record);
  used += sizeof record;
}

std::uint64_t now() {
  if (stamp != nullptr) return stamp();
  timespec t{};
  clock_gettime(CLOCK_REALTIME, &t);
  return std::uint64_t(t.tv_sec) * 1'000'000'000u + std::uint64_t(t.tv_nsec);
}

struct Named {
  CUpti_CallbackDomain domain;
  std::uint32_t id;
  const char* name;
};
constexpr Named kNames[] = {
    {CUPTI_CB_DOMAIN_RUNTIME_API, 211, "cudaLaunchKernel_v7000"},
    {CUPTI_CB_DOMAIN_RUNTIME_API, 20, "cudaMalloc_v3020"},
    {CUPTI_CB_DOMAIN_RUNTIME_API, 41, "cudaMemcpyAsync_v3020"},
    {CUPTI_CB_DOMAIN_RUNTIME_API, 135, "cudaEventRecord_v3020"},
    {CUPTI_CB_DOMAIN_RUNTIME_API, 147, "cudaStreamWaitEvent_v3020"},
    {CUPTI_CB_DOMAIN_RUNTIME_API, 131, "cudaStreamSynchronize_v3020"},
    {CUPTI_CB_DOMAIN_RUNTIME_API, 10, "cudaGetLastError_v3020"},
    {CUPTI_CB_DOMAIN_DRIVER_API, 307, "cuLaunchKernel"},
    {CUPTI_CB_DOMAIN_DRIVER_API, 243, "cuMemAlloc_v2"},
    {CUPTI_CB_DOMAIN_DRIVER_API, 277, "cuMemcpyHtoDAsync_v2"},
    {CUPTI_CB_DOMAIN_DRIVER_API, 119, "cuEventRecord"},
    {CUPTI_CB_DOMAIN_DRIVER_API, 295, "cuStreamWaitEvent"},
    {CUPTI_CB_DOMAIN_DRIVER_API, 126, "cuStreamSynchronize"},
};

// One call of one layer.
template <typename Body>
void api(CUpti_CallbackDomain domain, std::uint32_t id, const void* parameters, std::uint32_t number,
         Body body) {
  std::uint64_t shared = 0xdeadbeef;  // what CUPTI leaves there is not said
  int result = 0;
  CUpti_CallbackData data{};
  data.functionParams = parameters;
  data.functionReturnValue = &result;
  data.contextUid = context_number;
  data.correlationData = &shared;
  data.correlationId = number;
  const bool is_on = subscriber != nullptr && callbacks[domain][id];
  data.callbackSite = CUPTI_API_ENTER;
  if (is_on) subscriber(subscriber_data, domain, id, &data);
  body();
  data.callbackSite = CUPTI_API_EXIT;
  if (is_on && subscriber != nullptr) subscriber(subscriber_data, domain, id, &data);
}

// One call as the program makes it: the runtime calls the driver.
template <typename Body>
void both(std::uint32_t runtime_id, const void* runtime_parameters, std::uint32_t driver_id,
          const void* parameters, std::uint32_t number, Body body) {
  api(CUPTI_CB_DOMAIN_RUNTIME_API, runtime_id, runtime_parameters, number,
      [&] { api(CUPTI_CB_DOMAIN_DRIVER_API, driver_id, parameters, number, body); });
}

// Detached, it forgets its names, and those of later are elsewhere.
const char* name_in_this_stay(const char* name) {
  static auto* const all = new std::map<std::pair<std::uint32_t, std::string>, std::string>;
  const Lock lock;
  return all->try_emplace({context_number, name}, name).first->second.c_str();
}

void describe_device() {
  CUpti_ActivityDevice5 device{};
  device.kind = CUPTI_ACTIVITY_KIND_DEVICE;
  device.name = "Fake GPU";
  for (int i = 0; i < 16; ++i) device.uuid.bytes[i] = char(0xa0 + i);
  device.numMultiprocessors = 58;
  device.numThreadsPerWarp = 32;
  device.maxWarpsPerMultiprocessor = 48;
  device.maxBlocksPerMultiprocessor = 24;
  device.maxSharedMemoryPerMultiprocessor = 102400;
  device.maxRegistersPerMultiprocessor = 65536;
  device.maxRegistersPerBlock = 65536;
  device.maxSharedMemoryPerBlock = 49152;
  device.maxThreadsPerBlock = 1024;
  device.computeCapabilityMajor = 8;
  device.computeCapabilityMinor = 9;
  device.globalMemorySize = std::uint64_t{24} << 30;
  device.globalMemoryBandwidth = 504'000'000;
  device.coreClockRate = 2'000'000;
  put(device);
  CUpti_ActivityContext3 context{};
  context.kind = CUPTI_ACTIVITY_KIND_CONTEXT;
  context.contextId = context_number;
  context.nullStreamId = 7;
  put(context);
  CUpti_ActivityStream stream{};
  stream.kind = CUPTI_ACTIVITY_KIND_STREAM;
  stream.contextId = context_number;
  stream.streamId = 13;
  stream.flag = CUPTI_ACTIVITY_STREAM_CREATE_FLAG_NON_BLOCKING;
  put(stream);
}

}  // namespace

extern "C" {
#pragma GCC visibility push(default)

CUptiResult cuptiGetVersion(std::uint32_t* version) {
  const char* words = getenv("FAKE_CUPTI");
  const char* asked_version = words != nullptr ? strstr(words, "version=") : nullptr;
  *version = asked_version != nullptr ? std::uint32_t(atoi(asked_version + 8)) : 130001;
  return CUPTI_SUCCESS;
}
CUptiResult cuptiSubscribe_v2(CUpti_SubscriberHandle* handle, CUpti_CallbackFunc callback, void* data,
                              CUpti_SubscriberParams* parameters) {
  if (asked("no_driver")) return CUPTI_ERROR_UNKNOWN;
  if (asked("conflict") || (asked("taken") && context_number > 1)) {
    strncpy(parameters->oldSubscriberName, "CUPTI for Other Tool", parameters->oldSubscriberSize);
    return CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
  }
  subscriber = callback;
  subscriber_data = data;
  *handle = reinterpret_cast<CUpti_SubscriberHandle>(&subscriber);
  return CUPTI_SUCCESS;
}
CUptiResult cuptiSubscribe(CUpti_SubscriberHandle*, CUpti_CallbackFunc, void*) { return CUPTI_ERROR_UNKNOWN; }
CUptiResult cuptiEnableCallback(std::uint32_t enable, CUpti_SubscriberHandle, CUpti_CallbackDomain domain,
                                CUpti_CallbackId id) {
  count_call();
  if (domain < 8 && id < 1024) callbacks[domain][id] = enable != 0;
  return CUPTI_SUCCESS;
}
CUptiResult cuptiGetCallbackName(CUpti_CallbackDomain domain, std::uint32_t id, const char** name) {
  for (const Named& named : kNames)
    if (named.domain == domain && named.id == id) {
      *name = named.name;
      return CUPTI_SUCCESS;
    }
  return CUPTI_ERROR_INVALID_PARAMETER;
}
CUptiResult cuptiSetThreadIdType(CUpti_ActivityThreadIdType) { return CUPTI_SUCCESS; }
CUptiResult cuptiGetStreamIdEx(CUcontext, CUstream stream, std::uint8_t, std::uint32_t* id) {
  count_call();
  *id = stream == nullptr ? 7 : std::uint32_t(reinterpret_cast<std::uintptr_t>(stream));
  return CUPTI_SUCCESS;
}
CUptiResult cuptiActivitySetAttribute(CUpti_ActivityAttribute, std::size_t*, void*) { return CUPTI_SUCCESS; }
CUptiResult cuptiActivityRegisterTimestampCallback(CUpti_TimestampCallbackFunc function) {
  if (asked("clock")) return CUPTI_ERROR_NOT_COMPATIBLE;
  for (const auto& on : kinds)
    if (on) return CUPTI_ERROR_UNKNOWN;  // too late
  stamp = function;
  return CUPTI_SUCCESS;
}
CUptiResult cuptiActivityRegisterCallbacks(CUpti_BuffersCallbackRequestFunc requested,
                                           CUpti_BuffersCallbackCompleteFunc completed) {
  request = requested;
  complete = completed;
  return CUPTI_SUCCESS;
}
CUptiResult cuptiActivityEnable(CUpti_ActivityKind kind) {
  count_call();
  if (asked("refuse") && kind == CUPTI_ACTIVITY_KIND_MEMCPY2) return CUPTI_ERROR_NOT_COMPATIBLE;
  kinds[kind] = true;
  if (kind == CUPTI_ACTIVITY_KIND_STREAM) describe_device();
  return CUPTI_SUCCESS;
}
CUptiResult cuptiActivityDisable(CUpti_ActivityKind kind) {
  count_call();
  kinds[kind] = false;
  return CUPTI_SUCCESS;
}
CUptiResult cuptiActivityFlushAll(std::uint32_t flags) {
  count_call();
  if (asked("hang") && flags != 0)
    for (;;) pause();
  if (asked("late") && flags == 0) return CUPTI_SUCCESS;  // gives everything back at the forced flush alone
  const Lock lock;
  hand_over();
  return CUPTI_SUCCESS;
}
CUptiResult cuptiFinalize() {
  count_call();
  if (asked("stays")) return CUPTI_ERROR_UNKNOWN;
  const Lock lock;
  hand_over();
  for (auto& kind : kinds) kind = false;
  for (auto& domain : callbacks)
    for (auto& id : domain) id = false;
  subscriber = nullptr;
  request = nullptr;
  complete = nullptr;
  stamp = nullptr;
  correlation = 0;
  ++context_number;
  return CUPTI_SUCCESS;
}
CUptiResult cuptiActivityGetNextRecord(std::uint8_t* bytes, std::size_t valid, CUpti_Activity** record) {
  std::uint8_t* const next =
      *record == nullptr ? bytes : reinterpret_cast<std::uint8_t*>(*record) + size_of((*record)->kind);
  if (next >= bytes + valid) return CUPTI_ERROR_MAX_LIMIT_REACHED;
  *record = reinterpret_cast<CUpti_Activity*>(next);
  return size_of((*record)->kind) == 0 ? CUPTI_ERROR_INVALID_KIND : CUPTI_SUCCESS;
}
CUptiResult cuptiActivityGetNumDroppedRecords(CUcontext, std::uint32_t, std::size_t* count) {
  *count = dropped;
  dropped = 0;
  return CUPTI_SUCCESS;
}

void fake_launch(const char* name, std::uint32_t grid, std::uint32_t block) {
  const std::uint32_t number = ++correlation;
  const std::uint64_t parameters[8] = {};
  both(211, parameters, 307, parameters, number, [&] {
    CUpti_ActivityKernel10 kernel{};
    kernel.kind = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
    const bool has_no_stamps = asked("zero") && ++launches % 10 == 0;
    kernel.start = has_no_stamps ? 0 : now();
    kernel.end = has_no_stamps ? 0 : kernel.start + 1000;
    kernel.contextId = context_number;
    kernel.streamId = 7;
    kernel.gridX = std::int32_t(grid);
    kernel.gridY = kernel.gridZ = 1;
    kernel.blockX = std::int32_t(block);
    kernel.blockY = kernel.blockZ = 1;
    kernel.registersPerThread = 64;
    kernel.correlationId = number;
    const bool is_numbered = !asked("grids") || kinds[CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL];
    kernel.gridId = std::int64_t(launched += is_numbered);
    kernel.name = name_in_this_stay(name);
    if (asked("drops") && number % 100 == 0) {
      const Lock lock;
      ++dropped;
    } else {
      put(kernel);
    }
  });
}

void fake_copy(void* to, const void* from, std::uint64_t bytes) {
  const std::uint32_t number = ++correlation;
  const auto to_word = reinterpret_cast<std::uintptr_t>(to),
             from_word = reinterpret_cast<std::uintptr_t>(from);
  const std::uint64_t runtime[8] = {to_word, from_word, bytes, 1, 13},
                      driver[8] = {to_word, from_word, bytes, 13};
  both(41, runtime, 277, driver, number, [&] {
    CUpti_ActivityMemcpy6 copy{};
    copy.kind = CUPTI_ACTIVITY_KIND_MEMCPY;
    copy.copyKind = CUPTI_ACTIVITY_MEMCPY_KIND_HTOD;
    copy.srcKind = CUPTI_ACTIVITY_MEMORY_KIND_PAGEABLE;
    copy.dstKind = CUPTI_ACTIVITY_MEMORY_KIND_DEVICE;
    copy.flags = CUPTI_ACTIVITY_FLAG_MEMCPY_ASYNC;
    copy.bytes = bytes;
    copy.start = now();
    copy.end = copy.start + bytes;
    copy.contextId = context_number;
    copy.streamId = 13;
    copy.correlationId = number;
    put(copy);
  });
}

void fake_alloc(std::uint64_t bytes, std::uint64_t address) {
  std::uint64_t made = 0;
  const std::uint64_t parameters[8] = {reinterpret_cast<std::uintptr_t>(&made), bytes};
  both(20, parameters, 243, parameters, ++correlation, [&] { made = address; });
}

void fake_event_record(std::uint64_t event, std::uint64_t stream) {
  const std::uint64_t parameters[8] = {event, stream};
  both(135, parameters, 119, parameters, ++correlation, [] {});
}

void fake_stream_wait(std::uint64_t event, std::uint64_t stream) {
  const std::uint64_t parameters[8] = {stream, event};
  both(147, parameters, 295, parameters, ++correlation, [] {});
}

void fake_stream_sync(std::uint64_t stream) {
  const std::uint64_t parameters[8] = {stream};
  both(131, parameters, 126, parameters, ++correlation, [] {});
}

int fake_foreign_calls() { return foreign_calls; }

#pragma GCC visibility pop
}
