// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// What this machine and this user can trace, in words.
#include <fmt/format.h>
#include <fulcrum/trace.h>
#include <unistd.h>

#include "trace/run/locate.h"

namespace fulcrum::trace {

std::vector<Capability> capabilities() {
  std::vector<Capability> all;
  const std::string injector = find_injector(), cupti = find_cupti(), driver = driver_version();
  all.push_back({"injection library", !injector.empty(),
                 injector.empty() ? "libfulcrum_inject.so is not beside the program" : injector,
                 injector.empty() ? "trace needs it: build or install fulcrum where a CUDA toolkit is" : ""});
  all.push_back({"CUPTI", !cupti.empty(), cupti.empty() ? "not found" : cupti,
                 cupti.empty()
                     ? "install the CUDA toolkit's cuda-cupti, or set CUDA_HOME; PyTorch brings its own"
                     : ""});
  all.push_back({"driver", !driver.empty(), driver.empty() ? "no NVIDIA driver is loaded" : driver,
                 driver.empty() ? "traces of other machines can be read here" : ""});
  const std::optional<bool> root_only = counters_for_root_only();
  const bool allowed = root_only && (!*root_only || ::geteuid() == 0);
  all.push_back({"counters", allowed,
                 !root_only ? "the driver does not say" : (*root_only ? "for root only" : "for everybody"),
                 !root_only || allowed
                     ? ""
                     : "trace works without; for --counters run as root, or load the driver with "
                       "NVreg_RestrictProfilingToAdminUsers=0"});
  return all;
}

}  // namespace fulcrum::trace
