// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// A driver that is none, with the one function that the injected library calls without a device: CUPTI sees the call.
#include <dlfcn.h>

extern "C" __attribute__((visibility("default"))) int cuDriverGetVersion(int* version) {
  *version = 13000;
  if (const auto called = reinterpret_cast<void (*)()>(dlsym(RTLD_DEFAULT, "fake_driver_version"))) called();
  return 0;
}
