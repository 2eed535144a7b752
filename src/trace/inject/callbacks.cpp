// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Calls of the CUDA API, as CUPTI announces them: when each began and ended, on which stream, and the numbers that
// findings need. This runs inside the program's launches, so the common way through is short.
#include "trace/inject/session.h"

#include <cstring>

#include "trace/inject/clock.h"
#include "trace/inject/contents.h"
#include "trace/inject/frame_sizes.h"
#include "trace/inject/pm_sampling.h"

namespace fulcrum::trace::inject {
namespace {

constexpr std::size_t kMostFunctions = 2048;  // numbers of a domain
Api runtime_apis[kMostFunctions], driver_apis[kMostFunctions];
std::atomic<std::uint32_t> stream_generation{1};
std::atomic<bool> are_announced{true};  // launches of kernels

/// The last record of each event: handles are used again, so a wait means the record before it.
class Events {
 public:
  std::uint64_t record(std::uint64_t handle) {
    const std::lock_guard lock(mutex_);
    if (places_ == nullptr) places_.reset(new Place[kPlaces]{});
    const std::uint64_t id = ++last_;
    Place& place = find(handle);
    place = {handle, id};
    return id;
  }
  std::uint64_t last_of(std::uint64_t handle) {
    const std::lock_guard lock(mutex_);
    if (places_ == nullptr) return 0;
    const Place& place = find(handle);
    return place.handle == handle && place.id > forgotten_ ? place.id : 0;
  }
  void forget() {
    const std::lock_guard lock(mutex_);
    forgotten_ = last_;
  }

 private:
  struct Place {
    std::uint64_t handle, id;
  };
  static constexpr std::size_t kPlaces = 16384;

  // The place of a handle, or the one to put it: the oldest of eight neighbours goes when there is none free.
  Place& find(std::uint64_t handle) {
    const std::size_t first = std::size_t(handle * 0x9e3779b97f4a7c15u >> 40);
    Place* oldest = nullptr;
    for (std::size_t i = 0; i < 8; ++i) {
      Place& place = places_[(first + i) % kPlaces];
      if (place.handle == handle) return place;
      if (oldest == nullptr || place.id < oldest->id) oldest = &place;
    }
    return *oldest;
  }

  std::mutex mutex_;
  std::unique_ptr<Place[]> places_;
  std::uint64_t last_ = 0, forgotten_ = 0;
};
Events& events() {
  static Events* const all = new Events;  // never destroyed: callbacks come until the very end
  return *all;
}

std::uint64_t word(const void* parameters, int index) {
  std::uint64_t value = 0;
  std::memcpy(&value, static_cast<const char*>(parameters) + index * 8, sizeof value);
  return value;
}

std::uint32_t stream_of(Session& s, ThreadCalls& thread, const CUpti_CallbackData& data, const Api& api) {
  const void* stream = reinterpret_cast<const void*>(word(data.functionParams, api.stream_word - 1));
  const std::uint32_t generation = stream_generation.load(std::memory_order_acquire);
  if (thread.known_generation == generation && thread.known_context == data.context &&
      thread.known_stream == stream && thread.known_per_thread == api.per_thread)
    return thread.known_id;
  std::uint32_t id = 0;
  const bool found =
      s.cupti.cuptiGetStreamIdEx(data.context, static_cast<CUstream>(const_cast<void*>(stream)),
                                 api.per_thread ? 1 : 0, &id) == CUPTI_SUCCESS;
  thread.known_generation = generation;
  thread.known_context = data.context;
  thread.known_stream = stream;
  thread.known_per_thread = api.per_thread;
  thread.known_id = found ? id + 1 : 0;
  return thread.known_id;
}

Contents& contents() {
  static Contents* const all = new Contents;  // as events()
  return *all;
}

bool comes_from_host(const CUpti_CallbackData& data, const Api& api, bool is_runtime) {
  constexpr std::uint32_t kHostToDevice = 1;  // cudaMemcpyKind
  return api.shape == Shape::copy_h2d || (is_runtime && api.shape == Shape::copy &&
                                          std::uint32_t(word(data.functionParams, 3)) == kHostToDevice);
}

bool has_failed(const CUpti_CallbackData& data) {
  return data.functionReturnValue != nullptr && *static_cast<int*>(data.functionReturnValue) != 0;
}

void describe(Session& s, ThreadCalls& thread, const CUpti_CallbackData& data, const Api& api,
              bool is_runtime, SeenCall& seen) {
  const void* p = data.functionParams;
  if (p == nullptr) return;
  if (api.stream_word != 0) seen.stream = stream_of(s, thread, data, api);
  switch (api.shape) {
    case Shape::event:
      seen.event = events().last_of(word(p, 0));
      break;
    case Shape::event_stream:
      seen.event = events().record(word(p, 0));
      break;
    case Shape::stream_event:
      seen.event = events().last_of(word(p, 1));
      break;
    case Shape::copy:
    case Shape::copy_h2d:
      seen.flags |= 2;
      seen.address = word(p, 0);
      seen.event = word(p, 1);
      seen.bytes = std::int64_t(word(p, 2));
      // What CUDA refused to read, nobody should.
      if (s.config.hash_copies && seen.bytes > 0 && seen.event != 0 && !has_failed(data) &&
          comes_from_host(data, api, is_runtime))
        seen.hash = contents().hash(reinterpret_cast<const void*>(seen.event), std::size_t(seen.bytes));
      break;
    case Shape::place_bytes: {
      const auto* place = reinterpret_cast<const std::uint64_t*>(word(p, 0));
      seen.bytes = std::int64_t(word(p, 1));
      if (!has_failed(data) && place != nullptr) seen.address = *place;
      break;
    }
    case Shape::pointer:
      seen.address = word(p, 0);
      break;
    case Shape::pointer_bytes:
      seen.address = word(p, 0);
      seen.bytes = std::int64_t(word(p, 1));
      break;
    case Shape::none:
    case Shape::stream:
      break;
  }
}

bool is_regular(Call call) {
  return call == Call::copy || call == Call::memset || call == Call::device_sync ||
         call == Call::stream_sync || call == Call::event_sync;
}

void end_of_call(Session& s, ThreadCalls& thread, bool is_runtime, const Api& api,
                 const CUpti_CallbackData& data) {
  if (!thread.has_open_call()) return;
  SeenCall seen{};
  seen.begin_ns = thread.end_call(data.correlationId);
  if (seen.begin_ns == 0) return;
  seen.end_ns = now_ns();
  seen.correlation = data.correlationId;
  seen.context = data.contextUid;
  seen.kind = std::uint8_t(api.call);
  seen.flags = api.per_thread ? 1 : 0;
  seen.stay = s.buffers.stay();
  if (api.shape != Shape::none) describe(s, thread, data, api, is_runtime, seen);
  if (thread.push(seen)) s.buffers.wake();
}

void on_api(Session& s, bool is_runtime, const Api& api, const CUpti_CallbackData& data) {
  ThreadCalls* const thread = s.rings.mine();
  if (thread == nullptr) return;
  // The runtime calls the driver: one call of the program is one record.
  if (!is_runtime && thread->in_runtime) return;
  if (data.callbackSite == CUPTI_API_ENTER) {
    if (is_runtime) thread->in_runtime = true;
    const bool is_traced = s.is_in_window(), is_graph = api.call == Call::graph_launch;
    thread->enter();
    if (api.call == Call::launch || is_graph)
      thread->count_launch(is_graph, is_traced);
    else if (is_regular(api.call))
      thread->count_other();
    if (api.managed) s.enable_managed();
    if (is_traced) thread->begin_call(data.correlationId, now_ns());
    return;
  }
  if (is_runtime) thread->in_runtime = false;
  thread->leave();
  end_of_call(s, *thread, is_runtime, api, data);
  s.between_calls(*thread);
}

void on_resource(Session& s, CUpti_CallbackId id, const CUpti_ResourceData& data) {
  if (id == CUPTI_CBID_RESOURCE_STREAM_CREATED || id == CUPTI_CBID_RESOURCE_STREAM_DESTROY_STARTING)
    stream_generation.fetch_add(1, std::memory_order_release);
  if (id == CUPTI_CBID_RESOURCE_CONTEXT_CREATED && s.config.counters) start_counters(s.writer, data.context);
  if (id == CUPTI_CBID_RESOURCE_MODULE_LOADED && data.resourceDescriptor != nullptr) {
    const auto& module = *static_cast<const CUpti_ModuleResourceData*>(data.resourceDescriptor);
    frame_sizes().add(module.pCubin, module.cubinSize);
  }
}

void learn_names(Session& s, CUpti_CallbackDomain domain, Api (&apis)[kMostFunctions]) {
  for (std::uint32_t id = 1; id < kMostFunctions; ++id) {
    const char* name = nullptr;
    if (s.cupti.cuptiGetCallbackName(domain, id, &name) == CUPTI_SUCCESS && name != nullptr)
      apis[id] = classify(name);
    else if (id > 1000)
      break;
  }
}

// Names are asked for once: callbacks of an earlier stay may still read them.
void enable_domain(Session& s, CUpti_CallbackDomain domain, Api (&apis)[kMostFunctions]) {
  static bool is_learnt = false;
  if (!is_learnt) learn_names(s, domain, apis);
  is_learnt = true;
  for (std::uint32_t id = 1; id < kMostFunctions; ++id)
    if (apis[id].wanted && (apis[id].call != Call::launch || are_announced))
      s.cupti.cuptiEnableCallback(1, s.subscriber, domain, id);
}

}  // namespace

void announce_launches(Session& s) noexcept {
  if (are_announced.exchange(true)) return;
  const auto enable_all = [&](CUpti_CallbackDomain domain, const Api(&apis)[kMostFunctions]) {
    for (std::uint32_t id = 1; id < kMostFunctions; ++id)
      if (apis[id].wanted && apis[id].call == Call::launch)
        s.cupti.cuptiEnableCallback(1, s.subscriber, domain, id);
  };
  enable_all(CUPTI_CB_DOMAIN_RUNTIME_API, runtime_apis);
  enable_all(CUPTI_CB_DOMAIN_DRIVER_API, driver_apis);
}

void forget_events() noexcept {
  events().forget();
  stream_generation.fetch_add(1, std::memory_order_release);
}

// While CUPTI is attached callbacks stay on, and outside windows only count launches: where it sees one end of a call
// alone, all later calls of that thread get its number.
void enable_callbacks(Session& s, bool with_launches) noexcept {
  are_announced = with_launches;
  events();
  contents();
  for (const CUpti_CallbackId id :
       {CUPTI_CBID_RESOURCE_CONTEXT_CREATED, CUPTI_CBID_RESOURCE_STREAM_CREATED,
        CUPTI_CBID_RESOURCE_STREAM_DESTROY_STARTING, CUPTI_CBID_RESOURCE_MODULE_LOADED})
    s.cupti.cuptiEnableCallback(1, s.subscriber, CUPTI_CB_DOMAIN_RESOURCE, id);
  if (s.config.has_part("no-calls")) return;
  // Every call of the runtime comes by the driver, and looking at both would cost twice.
  if (s.config.has_part("runtime-layer"))
    enable_domain(s, CUPTI_CB_DOMAIN_RUNTIME_API, runtime_apis);
  else
    enable_domain(s, CUPTI_CB_DOMAIN_DRIVER_API, driver_apis);
}

void CUPTIAPI on_callback(void* user, CUpti_CallbackDomain domain, CUpti_CallbackId id, const void* data) {
  auto& s = *static_cast<Session*>(user);
  if (!s.active() || data == nullptr) return;
  try {
    if (domain == CUPTI_CB_DOMAIN_RUNTIME_API || domain == CUPTI_CB_DOMAIN_DRIVER_API) {
      if (id >= kMostFunctions) return;
      const bool is_runtime = domain == CUPTI_CB_DOMAIN_RUNTIME_API;
      on_api(s, is_runtime, is_runtime ? runtime_apis[id] : driver_apis[id],
             *static_cast<const CUpti_CallbackData*>(data));
    } else if (domain == CUPTI_CB_DOMAIN_RESOURCE) {
      on_resource(s, id, *static_cast<const CUpti_ResourceData*>(data));
    }
  } catch (...) {
  }
}

}  // namespace fulcrum::trace::inject
