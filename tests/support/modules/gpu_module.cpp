// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// A GPU that is none: host memory as device memory, and a timeline with one copy and compute queue whose delays tests
// set through FakeGpuControl. Kernels run when they are enqueued; the timeline says when they would have.
#include <fulcrum/abi.h>
#include <time.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "support/fake_gpu.h"

namespace {

constexpr const char* kState =
    R"({"sm_hz": 1.98e9, "temperature_c": 41, "power_w": 120, "throttle_reasons": 0, "other_processes": 0})";

fulcrum_status done() { return fulcrum_status{FULCRUM_OK, nullptr}; }

FakeGpuControl make_control() {
  FakeGpuControl control{};
  control.seconds[FULCRUM_ACTIVITY_LAUNCH] = 1e-6;
  control.seconds[FULCRUM_ACTIVITY_H2D] = 2e-6;
  control.seconds[FULCRUM_ACTIVITY_D2H] = 2e-6;
  control.seconds[FULCRUM_ACTIVITY_KERNEL] = 6e-6;
  control.seconds[FULCRUM_ACTIVITY_MIGRATE] = 3e-6;
  control.queue_seconds = 1e-6;
  control.wake_seconds = 2e-6;
  control.state = kState;
  control.available = std::getenv("FAKEGPU_UNAVAILABLE") == nullptr;
  return control;
}
FakeGpuControl& control() {
  static FakeGpuControl instance = make_control();
  return instance;
}

// The timeline.

double device_free = 0;  // when everything enqueued so far has ended
double engine_free[9];   // overlapped trips: when the engine of each kind has ended what it was given
bool tracing = false;
std::uint32_t next_correlation = 1;
std::vector<fulcrum_activity> seen;

double now() {
  if (control().now) return *control().now;
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

void wait_until(double instant) {
  if (control().now) {
    *control().now = std::max(*control().now, instant);
    return;
  }
  while (now() < instant) {
  }
}

void record(std::int32_t kind, std::uint32_t correlation, double begin, double end) {
  if (tracing) seen.push_back({kind, correlation, begin, end});
}

void host_work(std::int32_t kind) {
  const double seconds = control().seconds[kind];
  if (seconds <= 0) return;
  const double begin = now();
  wait_until(begin + seconds);
  record(kind, 0, begin, now());
}

/// One call that enqueues: `work` is done at once, the device's part is put on the timeline `count` times.
template <class Work>
void enqueue(std::int32_t kind, std::int64_t count, Work work) {
  const double begin = now();
  work();
  wait_until(begin + control().seconds[FULCRUM_ACTIVITY_LAUNCH] + (tracing ? control().traced_seconds : 0));
  const double end = now();
  const std::uint32_t correlation = next_correlation++;
  record(FULCRUM_ACTIVITY_LAUNCH, correlation, begin, end);
  for (std::int64_t i = 0; i < count; ++i) {
    const double start = std::max(device_free, end + control().queue_seconds);
    device_free = start + control().seconds[kind];
    record(kind, correlation, start, device_free);
  }
}

/// The same on the engine of this kind, beside the others, once `ready`; returns when it ends.
template <class Work>
double enqueue_beside(std::int32_t kind, double ready, Work work) {
  const double begin = now();
  work();
  wait_until(begin + control().seconds[FULCRUM_ACTIVITY_LAUNCH] + (tracing ? control().traced_seconds : 0));
  const std::uint32_t correlation = next_correlation++;
  record(FULCRUM_ACTIVITY_LAUNCH, correlation, begin, now());
  const double start = std::max({engine_free[kind], ready, now() + control().queue_seconds});
  engine_free[kind] = start + control().seconds[kind];
  record(kind, correlation, start, engine_free[kind]);
  device_free = std::max(device_free, engine_free[kind]);
  return engine_free[kind];
}

fulcrum_status stream_wait(void*) {
  const double begin = now();
  wait_until(std::max(begin, device_free) + control().wake_seconds);
  record(FULCRUM_ACTIVITY_SYNC, 0, begin, now());
  return done();
}

// Kernels.

void relu(const fulcrum_args& a) {
  for (std::int64_t i = 0; i < a.dim[0]; ++i) {
    const float x = a.in<float>(0)[i];
    a.out<float>(1)[i] = x <= 0 ? 0 : x;
  }
}
void vec_add(const fulcrum_args& a) {
  for (std::int64_t i = 0; i < a.dim[0] * a.dim[1]; ++i)
    a.out<float>(3)[i] = a.in<float>(0)[i] + a.in<float>(1)[i];
}
void relu_wrong(const fulcrum_args& a) {
  relu(a);
  a.out<float>(1)[a.dim[0] / 2] += 1;
}

using Function = void (*)(const fulcrum_args&);
template <Function kFunction>
fulcrum_status run(const fulcrum_args* a, void*, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) enqueue(FULCRUM_ACTIVITY_KERNEL, 1, [a] { kFunction(*a); });
  return done();
}
int plain_arrays(const fulcrum_args* a) { return a->scalar[0].i == 0; }

const fulcrum_kernel* kernels(std::int64_t* count) {
  static fulcrum_kernel list[3];
  list[0] = {.op = "relu", .variant = "default", .level = 2, .isa = [] { return "fake"; }, .run = run<relu>};
  list[1] = {.op = "vec_add",
             .variant = "default",
             .level = 2,
             .isa = [] { return "fake"; },
             .supports = plain_arrays,
             .run = run<vec_add>};
  list[2] = {.op = "relu", .variant = "wrong", .isa = [] { return "fake"; }, .run = run<relu_wrong>};
  *count = 3;
  return list;
}
Function function_of(const fulcrum_kernel* kernel) {
  if (std::strcmp(kernel->op, "vec_add") == 0) return vec_add;
  return std::strcmp(kernel->variant, "wrong") == 0 ? relu_wrong : relu;
}

// Memory, streams, marks.

fulcrum_status allocate(std::int32_t, std::size_t bytes, void** pointer) {
  *pointer = std::malloc(bytes > 0 ? bytes : 1);
  return *pointer ? done() : fulcrum_status{FULCRUM_OUT_OF_MEMORY, "the fake device is full"};
}
void release(std::int32_t, void* pointer) { std::free(pointer); }
fulcrum_status copy(void* to, const void* from, std::size_t bytes, void*) {
  std::memcpy(to, from, bytes);
  return done();
}
fulcrum_status fill(void* pointer, std::int32_t byte, std::size_t bytes, void*) {
  std::memset(pointer, byte, bytes);
  return done();
}
fulcrum_status stream_open(void** stream) {
  static int only;
  *stream = &only;
  return done();
}
void stream_close(void*) {}

fulcrum_status mark_open(void** mark) {
  *mark = new double(0);
  return done();
}
void mark_close(void* mark) { delete static_cast<double*>(mark); }
fulcrum_status mark_record(void* mark, void*) {
  *static_cast<double*>(mark) = std::max(now(), device_free);
  return done();
}
fulcrum_status mark_seconds(void* begin, void* end, double* seconds) {
  *seconds = *static_cast<double*>(end) - *static_cast<double*>(begin);
  return done();
}

// Recorded batches.

struct Graph {
  Function function;
  std::vector<fulcrum_args> sets;
  std::int32_t calls;
};
fulcrum_status graph_open(const fulcrum_kernel* kernel, const fulcrum_args* sets, std::int32_t set_count,
                          std::int32_t calls, void** graph) {
  *graph = new Graph{function_of(kernel), {sets, sets + set_count}, calls};
  return done();
}
fulcrum_status graph_run(void* graph, void*) {
  const auto& batch = *static_cast<const Graph*>(graph);
  static std::int64_t runs = 0;
  if (++runs % 3 == 0) device_free = std::max(device_free, now()) + control().held_seconds;
  enqueue(FULCRUM_ACTIVITY_KERNEL, batch.calls, [&batch] {
    for (const fulcrum_args& args : batch.sets) batch.function(args);
  });
  return done();
}
void graph_close(void* graph) { delete static_cast<Graph*>(graph); }

// Trips.

constexpr const char* kPaths[] = {"auto", "copy", "latency", "managed", "managed_prefetch", "overlapped"};
const char* const* trip_paths(std::int64_t* count) {
  *count = std::size(kPaths);
  return kPaths;
}

struct Trip {
  fulcrum_call call;
  std::vector<fulcrum_operand> operands;
  std::vector<std::vector<char>> buffers;
  fulcrum_args device{};
  std::string path, detail;
  std::vector<std::unique_ptr<Trip>> others;  // of a batch

  void move(bool in) {
    for (std::size_t i = 0; i < operands.size(); ++i) {
      const auto& operand = operands[i];
      void* host = call.args.ptr[operand.slot];
      if (in && operand.role != FULCRUM_OUT) std::memcpy(buffers[i].data(), host, buffers[i].size());
      if (!in && operand.role != FULCRUM_IN) std::memcpy(host, buffers[i].data(), buffers[i].size());
    }
  }
  void go() {
    host_work(FULCRUM_ACTIVITY_ALLOC);
    host_work(FULCRUM_ACTIVITY_PIN);
    wait_until(now() + control().gap_seconds);
    const bool copies = path != "latency";
    const bool managed = path.starts_with("managed");
    if (copies) enqueue(managed ? FULCRUM_ACTIVITY_MIGRATE : FULCRUM_ACTIVITY_H2D, 1, [this] { move(true); });
    if (!copies) move(true);
    enqueue(FULCRUM_ACTIVITY_KERNEL, std::max(1, call.calls), [this] { function_of(call.kernel)(device); });
    if (copies)
      enqueue(managed ? FULCRUM_ACTIVITY_MIGRATE : FULCRUM_ACTIVITY_D2H, 1, [this] { move(false); });
    stream_wait(nullptr);
    if (!copies) move(false);
    host_work(FULCRUM_ACTIVITY_FREE);
  }
  /// One call of many under way; the caller waits for all of them.
  void go_beside() {
    const double in = enqueue_beside(FULCRUM_ACTIVITY_H2D, 0, [this] { move(true); });
    const double worked =
        enqueue_beside(FULCRUM_ACTIVITY_KERNEL, in, [this] { function_of(call.kernel)(device); });
    enqueue_beside(FULCRUM_ACTIVITY_D2H, worked, [this] { move(false); });
  }
};

fulcrum_status trip_open(const fulcrum_call* call, const char* path, void** trip) {
  auto* made = new Trip{.call = *call, .operands = {call->operands, call->operands + call->operand_count}};
  made->path = path;
  made->detail = made->path == "auto" ? "copy" : made->path;
  made->device = call->args;
  for (const fulcrum_operand& operand : made->operands) {
    auto& buffer = made->buffers.emplace_back(static_cast<std::size_t>(operand.bytes));
    made->device.ptr[operand.slot] = buffer.data();
  }
  *trip = made;
  return done();
}
fulcrum_status trip_open_batch(const fulcrum_call* calls, std::int64_t count, const char* path, void** trip) {
  trip_open(&calls[0], path, trip);
  auto& made = *static_cast<Trip*>(*trip);
  for (std::int64_t i = 1; i < count; ++i) {
    void* more = nullptr;
    trip_open(&calls[i], path, &more);
    made.others.emplace_back(static_cast<Trip*>(more));
  }
  made.detail += ", " + std::to_string(count) + " calls";
  return done();
}
fulcrum_status trip_run(void* trip, std::int64_t count) {
  auto& opened = *static_cast<Trip*>(trip);
  if (opened.path != "overlapped") {
    for (std::int64_t i = 0; i < count; ++i) opened.go();
    return done();
  }
  for (std::int64_t i = 0; i < count; ++i) {
    opened.go_beside();
    for (const auto& other : opened.others) other->go_beside();
  }
  return stream_wait(nullptr);
}
const char* trip_detail(void* trip) { return static_cast<Trip*>(trip)->detail.c_str(); }
void trip_close(void* trip) { delete static_cast<Trip*>(trip); }

// Activities.

fulcrum_status activity_start() {
  ++control().activity_starts;
  tracing = true;
  seen.clear();
  return done();
}
fulcrum_status activity_take(fulcrum_activity* into, std::int64_t capacity, std::int64_t* count) {
  *count = static_cast<std::int64_t>(seen.size());
  if (capacity < *count) return done();
  std::stable_sort(seen.begin(), seen.end(), [](const fulcrum_activity& a, const fulcrum_activity& b) {
    return a.begin_seconds < b.begin_seconds;
  });
  std::copy(seen.begin(), seen.end(), into);
  seen.clear();
  return done();
}
void activity_stop() { tracing = false; }

}  // namespace

extern "C" __attribute__((visibility("default"))) FakeGpuControl* fulcrum_fake_gpu_control() {
  return &control();
}

extern "C" __attribute__((visibility("default"))) const fulcrum_backend* fulcrum_backend_v1(
    const fulcrum_host*) {
  static fulcrum_backend table;
  table = fulcrum_backend{
      .abi_version = FULCRUM_ABI_VERSION,
      .struct_bytes = sizeof(fulcrum_backend),
      .name = "fakegpu",
      .kind = "gpu",
      .available = [] { return control().available; },
      .why_not = [] { return "the fake device is switched off"; },
      .describe =
          [] { return R"({"device": {"name": "Fake GPU", "l2_bytes": 65536, "memory_bytes": 1073741824}})"; },
      .kernels = kernels,
      .allocate = allocate,
      .release = release,
      .copy = copy,
      .stream_open = stream_open,
      .stream_close = stream_close,
      .stream_wait = stream_wait,
      .mark_open = mark_open,
      .mark_close = mark_close,
      .mark_record = mark_record,
      .mark_seconds = mark_seconds,
      .kernel_bytes = sizeof(fulcrum_kernel),
      .fill = fill,
      .trip_paths = trip_paths,
      .trip_open = trip_open,
      .trip_run = trip_run,
      .trip_detail = trip_detail,
      .trip_close = trip_close,
      .graph_open = graph_open,
      .graph_run = graph_run,
      .graph_close = graph_close,
      .activity_start = activity_start,
      .activity_take = activity_take,
      .activity_stop = activity_stop,
      .state = [] { return control().state; },
      .trip_open_batch = trip_open_batch,
  };
  return &table;
}
