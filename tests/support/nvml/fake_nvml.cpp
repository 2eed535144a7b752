// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// The driver's management library as far as the tracer calls it, for two devices that it counts the other way round.
// Readings follow from the device; one of them may be refused, and processes are what a test says.
#include <cstring>
#include <string>

#include <unistd.h>

namespace {

struct Process {
  unsigned pid;
  unsigned long long used_bytes;
  unsigned gpu_instance, compute_instance;
};
struct Utilisation {
  unsigned gpu, memory;
};

constexpr int kNotSupported = 3, kNotFound = 6, kTooSmall = 7;
std::string refused;          // the name of a function
unsigned other_processes[8];  // beside ours
unsigned other_count = 0;
bool lists_us = true;

bool refuses(const char* name) { return refused == name; }
long number(void* handle) { return reinterpret_cast<long>(handle); }  // 1 and 2

}  // namespace

#define FULCRUM_FAKE extern "C" __attribute__((visibility("default")))

FULCRUM_FAKE void fake_nvml_refuse(const char* name) { refused = name; }
FULCRUM_FAKE void fake_nvml_other(unsigned pid) { other_processes[other_count++] = pid; }
FULCRUM_FAKE void fake_nvml_does_not_list_us() { lists_us = false; }

FULCRUM_FAKE int nvmlInit_v2() { return refuses("nvmlInit_v2") ? 9 : 0; }

FULCRUM_FAKE int nvmlDeviceGetHandleByPciBusId_v2(const char* bus_id, void** handle) {
  if (std::strcmp(bus_id, "0000:65:00.0") == 0)
    *handle = reinterpret_cast<void*>(2);
  else if (std::strcmp(bus_id, "0000:17:00.0") == 0)
    *handle = reinterpret_cast<void*>(1);
  else
    return kNotFound;
  return 0;
}

FULCRUM_FAKE int nvmlDeviceGetClockInfo(void* handle, unsigned kind, unsigned* mhz) {
  *mhz = kind == 1 ? 1000U * static_cast<unsigned>(number(handle)) : 2619;
  return 0;
}
FULCRUM_FAKE int nvmlDeviceGetMaxClockInfo(void*, unsigned, unsigned* mhz) {
  *mhz = 1980;
  return 0;
}
FULCRUM_FAKE int nvmlDeviceGetPowerUsage(void* handle, unsigned* milliwatts) {
  if (refuses("nvmlDeviceGetPowerUsage")) return kNotSupported;
  *milliwatts = 123'500U * static_cast<unsigned>(number(handle));
  return 0;
}
FULCRUM_FAKE int nvmlDeviceGetEnforcedPowerLimit(void*, unsigned* milliwatts) {
  *milliwatts = 700'000;
  return 0;
}
FULCRUM_FAKE int nvmlDeviceGetTemperature(void*, unsigned, unsigned* celsius) {
  *celsius = 61;
  return 0;
}
FULCRUM_FAKE int nvmlDeviceGetCurrentClocksEventReasons(void*, unsigned long long* bits) {
  *bits = 0x24;
  return 0;
}
FULCRUM_FAKE int nvmlDeviceGetUtilizationRates(void*, Utilisation* rates) {
  *rates = {97, 40};
  return 0;
}
FULCRUM_FAKE int nvmlDeviceGetComputeRunningProcesses_v3(void*, unsigned* count, Process* list) {
  const unsigned all = other_count + 1;
  if (*count < all) return kTooSmall;
  for (unsigned i = 0; i < other_count; ++i) list[i] = {other_processes[i], 0, 0, 0};
  list[other_count] = {lists_us ? static_cast<unsigned>(getpid()) : 4'000'001U, 0, 0, 0};
  *count = all;
  return 0;
}
