// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// A libcuda.so.1 that has no device: just enough of the driver's interface for the CUDA runtime to ask for one. Its
// version and its answer come from the environment.
#include <cstdlib>
#include <cstring>

namespace {

int number(const char* name, int otherwise) {
  const char* value = std::getenv(name);
  return value ? std::atoi(value) : otherwise;
}

constexpr int kNoDevice = 100;

int answer_nothing() { return kNoDevice; }

}  // namespace

extern "C" {

int cuInit(unsigned) { return number("FAKE_DRIVER_INIT", kNoDevice); }

int cuDriverGetVersion(int* version) {
  *version = number("FAKE_DRIVER_VERSION", 99000);
  return 0;
}

int cuGetExportTable(const void** table, const void*) {
  *table = nullptr;
  return kNoDevice;
}

int cuGetProcAddress_v2(const char* name, void** function, int, unsigned long long, int* status) {
  if (status) *status = 0;
  *function = reinterpret_cast<void*>(answer_nothing);
  if (std::strcmp(name, "cuInit") == 0) *function = reinterpret_cast<void*>(cuInit);
  if (std::strcmp(name, "cuDriverGetVersion") == 0) *function = reinterpret_cast<void*>(cuDriverGetVersion);
  if (std::strcmp(name, "cuGetExportTable") == 0) *function = reinterpret_cast<void*>(cuGetExportTable);
  if (std::strcmp(name, "cuGetProcAddress") == 0) *function = reinterpret_cast<void*>(cuGetProcAddress_v2);
  return 0;
}

int cuGetProcAddress(const char* name, void** function, int version, unsigned long long flags) {
  return cuGetProcAddress_v2(name, function, version, flags, nullptr);
}
}
