// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// NVML through prototypes of our own: the library is the driver's, its header is not always installed, and of its
// interface these few functions have kept their form for years.
#include "backends/cuda/nvml.h"

#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "backends/cuda/libraries.h"
#include "backends/cuda/runtime.h"

namespace fulcrum::backends::cuda {
namespace {

using Handle = void*;
enum Clock : unsigned { kClockSm = 1, kClockMemory = 2 };
constexpr unsigned kGpuSensor = 0;
constexpr int kOk = 0, kTooSmall = 7;

struct Process {  // nvmlProcessInfo_t of the functions with the suffix _v3
  unsigned pid;
  unsigned long long used_bytes;
  unsigned gpu_instance, compute_instance;
};

struct Functions {
  int (*init)();
  int (*by_bus_id)(const char*, Handle*);
  int (*clock)(Handle, unsigned, unsigned*);
  int (*max_clock)(Handle, unsigned, unsigned*);
  int (*temperature)(Handle, unsigned, unsigned*);
  int (*power)(Handle, unsigned*);
  int (*power_limit)(Handle, unsigned*);
  int (*throttle_reasons)(Handle, unsigned long long*);
  int (*processes)(Handle, unsigned*, Process*);
  int (*driver_version)(char*, unsigned);
};

template <class Function>
void bind(Function& function, const char* name, const char* older = nullptr) {
  void* address = nvml().symbol(name);
  if (!address && older) address = nvml().symbol(older);
  function = reinterpret_cast<Function>(address);
}

struct Session {
  Functions call{};
  Handle device = nullptr;

  Session() {
    if (!nvml()) return;
    bind(call.init, "nvmlInit_v2");
    bind(call.by_bus_id, "nvmlDeviceGetHandleByPciBusId_v2");
    bind(call.clock, "nvmlDeviceGetClockInfo");
    bind(call.max_clock, "nvmlDeviceGetMaxClockInfo");
    bind(call.temperature, "nvmlDeviceGetTemperature");
    bind(call.power, "nvmlDeviceGetPowerUsage");
    bind(call.power_limit, "nvmlDeviceGetEnforcedPowerLimit");
    bind(call.throttle_reasons, "nvmlDeviceGetCurrentClocksEventReasons",
         "nvmlDeviceGetCurrentClocksThrottleReasons");
    bind(call.processes, "nvmlDeviceGetComputeRunningProcesses_v3");
    bind(call.driver_version, "nvmlSystemGetDriverVersion");
    char bus_id[32] = {};
    if (!call.init || !call.by_bus_id || call.init() != kOk) return;
    if (cudaDeviceGetPCIBusId(bus_id, sizeof(bus_id), cuda::device().ordinal) != cudaSuccess) {
      cudaGetLastError();
      return;
    }
    if (call.by_bus_id(bus_id, &device) != kOk) device = nullptr;
  }
};

const Session& session() {
  static const Session& session =
      *new Session;  // never shut down: a reading may be the last thing a program does
  return session;
}

template <class Function, class... Arguments>
std::optional<double> reading(Function function, double unit, Arguments... arguments) {
  unsigned value = 0;
  if (!function || function(arguments..., &value) != kOk) return std::nullopt;
  return static_cast<double>(value) * unit;
}

/// Whether this process has a context on the device: it is then one of those NVML counts, even where its number is
/// that of another namespace (a container).
bool we_have_a_context() {
  void* driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL | RTLD_NOLOAD);
  if (!driver) return false;
  const auto state =
      reinterpret_cast<int (*)(int, unsigned*, int*)>(dlsym(driver, "cuDevicePrimaryCtxGetState"));
  unsigned flags = 0;
  int active = 0;
  const bool known = state && state(cuda::device().ordinal, &flags, &active) == 0;
  dlclose(driver);
  return known && active != 0;
}

/// Whether the process that started us is this same program and uses the device too: a run and its worker processes take
/// turns on it. Only CUDA opens the file that is looked for.
bool parent_is_ours_and_there() {
  namespace fs = std::filesystem;
  std::error_code error;
  const fs::path parent = fs::path("/proc") / std::to_string(getppid());
  const fs::path program = fs::read_symlink(parent / "exe", error);
  if (error || program != fs::read_symlink("/proc/self/exe", error) || error) return false;
  fs::directory_iterator file(parent / "fd", error);
  for (; !error && file != fs::directory_iterator(); file.increment(error)) {
    std::error_code unread;
    if (fs::read_symlink(file->path(), unread) == "/dev/nvidia-uvm") return true;
  }
  return false;
}

std::optional<std::int64_t> count_others(const Session& open) {
  if (!open.call.processes) return std::nullopt;
  std::vector<Process> list(64);
  unsigned count = static_cast<unsigned>(list.size());
  int status = open.call.processes(open.device, &count, list.data());
  if (status == kTooSmall) {
    list.resize(count + 64);  // some may have come since
    count = static_cast<unsigned>(list.size());
    status = open.call.processes(open.device, &count, list.data());
  }
  if (status != kOk) return std::nullopt;
  list.resize(count);
  const auto listed = [&list](pid_t pid) {
    return std::any_of(list.begin(), list.end(),
                       [pid](const Process& process) { return process.pid == static_cast<unsigned>(pid); });
  };
  // In a container the numbers are those of another namespace: ours is then not among them, and neither is our parent's.
  const bool same_names = listed(getpid());
  std::int64_t others = count;
  if (same_names || we_have_a_context()) --others;
  if (others > 0 && parent_is_ours_and_there() && (!same_names || listed(getppid()))) --others;
  return std::max<std::int64_t>(others, 0);
}

}  // namespace

DeviceReading read_device() {
  constexpr double kMega = 1e6, kMilli = 1e-3;
  const Session& open = session();
  DeviceReading result;
  char version[96] = {};
  if (open.call.driver_version && open.call.driver_version(version, sizeof(version) - 1) == kOk)
    result.driver = version;
  if (!open.device) return result;
  const Functions& call = open.call;
  result.sm_hz = reading(call.clock, kMega, open.device, unsigned{kClockSm});
  result.max_sm_hz = reading(call.max_clock, kMega, open.device, unsigned{kClockSm});
  result.memory_hz = reading(call.clock, kMega, open.device, unsigned{kClockMemory});
  result.temperature_c = reading(call.temperature, 1, open.device, kGpuSensor);
  result.power_w = reading(call.power, kMilli, open.device);
  result.power_limit_w = reading(call.power_limit, kMilli, open.device);
  unsigned long long bits = 0;
  if (call.throttle_reasons && call.throttle_reasons(open.device, &bits) == kOk)
    result.throttle_reasons = bits;
  result.other_processes = count_others(open);
  return result;
}

}  // namespace fulcrum::backends::cuda
