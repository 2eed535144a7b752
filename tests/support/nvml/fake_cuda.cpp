// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// A CUDA driver with two devices, of which the second has a context: what the tracer asks it to find devices by.
#include <cstdio>

#define FULCRUM_FAKE extern "C" __attribute__((visibility("default")))

namespace {
bool initialised = true;
int with_context = 1;
}  // namespace

FULCRUM_FAKE void fake_cuda_context_on(int device) { with_context = device; }
FULCRUM_FAKE void fake_cuda_not_initialised() { initialised = false; }

FULCRUM_FAKE int cuDeviceGetCount(int* count) {
  *count = 2;
  return initialised ? 0 : 3;
}
FULCRUM_FAKE int cuDeviceGetPCIBusId(char* text, int bytes, int device) {
  std::snprintf(text, static_cast<unsigned long>(bytes), "%s", device == 0 ? "0000:65:00.0" : "0000:17:00.0");
  return 0;
}
FULCRUM_FAKE int cuDevicePrimaryCtxGetState(int device, unsigned* flags, int* active) {
  *flags = 0;
  *active = device == with_context;
  return 0;
}
