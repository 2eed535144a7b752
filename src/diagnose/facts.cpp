// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// What rules look at.
#include <fulcrum/diagnose.h>

namespace fulcrum::diagnose {

const GpuTrace::Device* Facts::device(int id) const {
  for (const GpuTrace::Device& device : trace.devices) {
    if (device.id == id) return &device;
  }
  return nullptr;
}

}  // namespace fulcrum::diagnose
