// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// What the program says when it is called with nothing.
#pragma once

#include "cli/command.h"
#include "cli/context.h"

namespace fulcrum::cli {

/// Three commands that fit this machine as it is now.
Result<Exit> welcome(Context& context);

/// NVIDIA hardware as the system shows it, without a driver library.
struct GpuPresence {
  bool on_bus = false;       // a PCI device of NVIDIA
  bool device_file = false;  // /dev/nvidia0: the driver is loaded and given to us
  std::string driver;        // version of the kernel module; empty: not loaded
};
GpuPresence look_for_gpu();

}  // namespace fulcrum::cli
