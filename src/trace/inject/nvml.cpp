// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// NVML through prototypes of our own: the library is the driver's, its header is not always installed, and of its
// interface these few functions have kept their form for years. Devices are those of the CUDA driver that have a
// context, found by their address on the bus: the two libraries count them differently.
#include "trace/inject/nvml.h"

#include "trace/inject/metrics_thread.h"

#include <algorithm>
#include <array>
#include <ctime>
#include <string>
#include <utility>
#include <vector>

#include <dlfcn.h>
#include <unistd.h>

namespace fulcrum::trace::inject {
namespace {

constexpr double kPeriodSeconds = 0.1;
constexpr int kTicksASecond = 10;
constexpr int kTicksWithoutContext =
    20;  // then every device is read: the program may make contexts of its own
constexpr int kMostClocked = 16;
constexpr unsigned kMostProcesses = 256;
constexpr unsigned kClockSm = 1, kClockMemory = 2, kGpuSensor = 0;
constexpr int kOk = 0;

using Handle = void*;
struct Process {  // nvmlProcessInfo_t of the functions with the suffix _v3
  unsigned pid;
  unsigned long long used_bytes;
  unsigned gpu_instance, compute_instance;
};
struct Utilisation {
  unsigned gpu, memory;
};

struct Nvml {
  int (*init)() = nullptr;
  int (*by_bus_id)(const char*, Handle*) = nullptr;
  int (*clock)(Handle, unsigned, unsigned*) = nullptr;
  int (*max_clock)(Handle, unsigned, unsigned*) = nullptr;
  int (*power)(Handle, unsigned*) = nullptr;
  int (*power_limit)(Handle, unsigned*) = nullptr;
  int (*temperature)(Handle, unsigned, unsigned*) = nullptr;
  int (*reasons)(Handle, unsigned long long*) = nullptr;
  int (*utilisation)(Handle, Utilisation*) = nullptr;
  int (*processes)(Handle, unsigned*, Process*) = nullptr;
};

struct Driver {
  int (*count)(int*) = nullptr;
  int (*bus_id)(char*, int, int) = nullptr;
  int (*context_state)(int, unsigned*, int*) = nullptr;
};

struct Watched {
  int device = 0;
  Handle handle = nullptr;
  unsigned others = 0, other_pid = 0;
};

struct ClocksState {
  Writer* writer = nullptr;
  MetricsThread thread;
};

ClocksState& clocks_state() {
  static ClocksState& state =
      *new ClocksState;  // never destroyed: the thread may outlive the program's destructors
  return state;
}

template <class Function>
void bind(void* library, Function& function, const char* name, const char* older = nullptr) {
  void* address = dlsym(library, name);
  if (!address && older) address = dlsym(library, older);
  function = reinterpret_cast<Function>(address);
}

std::string load(Nvml& nvml) {
  void* library = dlopen("libnvidia-ml.so.1", RTLD_LAZY | RTLD_LOCAL);
  if (!library) return "libnvidia-ml.so.1 is not there: it comes with the driver's utilities";
  bind(library, nvml.init, "nvmlInit_v2");
  bind(library, nvml.by_bus_id, "nvmlDeviceGetHandleByPciBusId_v2");
  bind(library, nvml.clock, "nvmlDeviceGetClockInfo");
  bind(library, nvml.max_clock, "nvmlDeviceGetMaxClockInfo");
  bind(library, nvml.power, "nvmlDeviceGetPowerUsage");
  bind(library, nvml.power_limit, "nvmlDeviceGetEnforcedPowerLimit");
  bind(library, nvml.temperature, "nvmlDeviceGetTemperature");
  bind(library, nvml.reasons, "nvmlDeviceGetCurrentClocksEventReasons",
       "nvmlDeviceGetCurrentClocksThrottleReasons");
  bind(library, nvml.utilisation, "nvmlDeviceGetUtilizationRates");
  bind(library, nvml.processes, "nvmlDeviceGetComputeRunningProcesses_v3");
  if (!nvml.init || !nvml.by_bus_id) return "libnvidia-ml.so.1 is too old";
  const int status = nvml.init();
  return status == kOk ? "" : "nvmlInit_v2 failed with " + std::to_string(status);
}

/// Empty functions until the program itself has loaded the driver.
Driver find_driver() {
  Driver driver;
  if (void* library = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL | RTLD_NOLOAD)) {
    bind(library, driver.count, "cuDeviceGetCount");
    bind(library, driver.bus_id, "cuDeviceGetPCIBusId");
    bind(library, driver.context_state, "cuDevicePrimaryCtxGetState");
  }
  return driver;
}

bool has_context(const Driver& driver, int device) {
  unsigned flags = 0;
  int active = 0;
  return driver.context_state && driver.context_state(device, &flags, &active) == kOk && active != 0;
}

/// The devices to read; none before the driver is initialised, which its first function then says.
std::vector<Watched> find_devices(const Nvml& nvml, bool waited) {
  std::vector<Watched> found;
  const Driver driver = find_driver();
  int count = 0;
  if (!driver.count || !driver.bus_id || driver.count(&count) != kOk) return found;
  bool any = false;
  for (int device = 0; device < count && !any; ++device) any = has_context(driver, device);
  for (int device = 0; device < count && device < kMostClocked; ++device) {
    if (any ? !has_context(driver, device) : count > 1 && !waited) continue;
    std::array<char, 32> bus_id{};
    Handle handle = nullptr;
    if (driver.bus_id(bus_id.data(), static_cast<int>(bus_id.size()), device) == kOk &&
        nvml.by_bus_id(bus_id.data(), &handle) == kOk)
      found.push_back({device, handle});
  }
  return found;
}

/// Everybody who computes on the device but us. In a container the numbers are those of another namespace: ours is not
/// among them, one of them is us all the same, and nobody can say which.
void count_others(const Nvml& nvml, Watched& watched) {
  static Process list[kMostProcesses];
  unsigned count = kMostProcesses;
  if (!nvml.processes || nvml.processes(watched.handle, &count, list) != kOk || count > kMostProcesses)
    return;
  const auto us = static_cast<unsigned>(getpid());
  bool listed = false;
  unsigned other = 0;
  for (unsigned i = 0; i < count; ++i) {
    if (list[i].pid == us)
      listed = true;
    else
      other = list[i].pid;
  }
  watched.others = count > 0 ? count - 1 : 0;
  watched.other_pid = listed && watched.others > 0 ? other : 0;
}

template <class Function, class... Arguments>
float reading(Function function, float unit, Arguments... arguments) {
  unsigned value = 0;
  if (!function || function(arguments..., &value) != kOk) return -1;
  return static_cast<float>(value) * unit;
}

file::Clock read_clock(const Nvml& nvml, const Watched& watched) {
  file::Clock clock{};
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  clock.at_ns = std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
  clock.device = static_cast<std::uint32_t>(watched.device);
  clock.sm_mhz = reading(nvml.clock, 1, watched.handle, unsigned{kClockSm});
  clock.memory_mhz = reading(nvml.clock, 1, watched.handle, unsigned{kClockMemory});
  clock.watts = reading(nvml.power, 1e-3F, watched.handle);
  clock.celsius = reading(nvml.temperature, 1, watched.handle, unsigned{kGpuSensor});
  Utilisation utilisation{};
  clock.utilisation = nvml.utilisation && nvml.utilisation(watched.handle, &utilisation) == kOk
                          ? static_cast<float>(utilisation.gpu) * 0.01F
                          : -1;
  unsigned long long reasons = 0;
  if (nvml.reasons && nvml.reasons(watched.handle, &reasons) == kOk) clock.reasons = reasons;
  clock.others = watched.others;
  clock.other_pid = watched.other_pid;
  return clock;
}

/// Once a device: what does not change, and what is missing from its records.
void describe(const Nvml& nvml, const Watched& watched, const file::Clock& clock, Writer& writer) {
  const std::string device = " of device " + std::to_string(watched.device);
  const float max_mhz = reading(nvml.max_clock, 1, watched.handle, unsigned{kClockSm});
  const float limit = reading(nvml.power_limit, 1e-3F, watched.handle);
  if (max_mhz > 0) writer.property("max SM MHz" + device, static_cast<double>(max_mhz));
  if (limit > 0) writer.property("power limit in watts" + device, static_cast<double>(limit));
  std::string missing;
  const auto look = [&missing](bool there, const char* name) {
    if (!there) missing += missing.empty() ? name : std::string(", ") + name;
  };
  unsigned long long reasons = 0;
  look(clock.sm_mhz >= 0, "SM clock");
  look(clock.memory_mhz >= 0, "memory clock");
  look(clock.watts >= 0, "power");
  look(clock.celsius >= 0, "temperature");
  look(clock.utilisation >= 0, "utilisation");
  look(nvml.reasons && nvml.reasons(watched.handle, &reasons) == kOk, "reasons for low clocks");
  look(nvml.processes != nullptr, "other processes");
  if (!missing.empty()) writer.property("clocks_missing", "NVML does not give" + device + ": " + missing);
}

void run_clocks() {
  ClocksState& our = clocks_state();
  Writer& writer = *our.writer;
  Nvml nvml;
  const std::string refused = load(nvml);
  if (!refused.empty()) {
    writer.property("clocks_refused", refused);
    return;
  }
  std::vector<Watched> watched;
  for (int tick = 0;; ++tick) {
    if (watched.empty() || tick % kTicksASecond == 0) {
      const std::vector<Watched> before =
          std::exchange(watched, find_devices(nvml, tick >= kTicksWithoutContext));
      for (Watched& each : watched) {
        count_others(nvml, each);
        const bool is_new = std::none_of(before.begin(), before.end(),
                                         [&each](const Watched& old) { return old.device == each.device; });
        if (is_new) describe(nvml, each, read_clock(nvml, each), writer);
      }
    }
    for (const Watched& each : watched) writer.append(file::Kind::clock, read_clock(nvml, each));
    if (!our.thread.wait(kPeriodSeconds)) return;
  }
}

}  // namespace

void start_clocks(Writer& writer) noexcept {
  constexpr int kNiceness = 10;
  ClocksState& our = clocks_state();
  our.writer = &writer;
  if (!our.thread.start("fulcrum-clocks", run_clocks, kNiceness))
    writer.property("clocks_refused", "no thread could be started");
}

void stop_clocks() noexcept { clocks_state().thread.stop(0.25); }

}  // namespace fulcrum::trace::inject
