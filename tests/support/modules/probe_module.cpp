// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// The scripted GPU as a module, for the program as a whole.
#include "support/scripted_gpu.h"

extern "C" __attribute__((visibility("default"))) const fulcrum_backend* fulcrum_backend_v1(
    const fulcrum_host*) {
  return scripted_gpu::backend();
}
