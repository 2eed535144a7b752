// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// The machine that closed forms are priced on before anything was calibrated: profiles where there are any.
#pragma once

#include <fulcrum/model.h>

#include "executor/points.h"

namespace fulcrum::executor {

struct PriorMachine {
  Machine host;
  bool host_known = false;  // measured on this machine; else assumed from what it is
  model::Calibration host_calibration;
  std::optional<Machine> gpu;
  model::Calibration gpu_calibration;
  std::vector<Measurement> rows;  // that come with the gpu's profile
  Costs costs;
};
PriorMachine prior_machine(const backends::Backend* device);

/// Name, sizes and driver of a device.
GpuCeilings device_facts(const backends::Backend& device);

/// What moving data costs by the tables of a profile.
Costs costs_of(const GpuCeilings& gpu);

}  // namespace fulcrum::executor
