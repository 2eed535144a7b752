// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// A calibration of the virtual machine as a file, made from its costs: what an executor on it would have measured.
#pragma once

#include <fulcrum/executor.h>
#include <unistd.h>

#include <cmath>

#include "executor/candidates.h"
#include "executor/store.h"
#include "support/virtual_gpu.h"

namespace fulcrum::testing {

namespace detail {

inline executor::LinkCurve link(double copy_seconds, double rate) {
  executor::LinkCurve curve;
  for (const double bytes : {4096.0, 65536.0, 1048576.0, 16777216.0, 268435456.0})
    curve.knots.emplace_back(bytes, copy_seconds + bytes / rate);
  return curve;
}

inline std::vector<std::string> shapes_of(const ops::Op& op) {
  std::vector<std::string> shapes;
  const bool image = op.name.ends_with("segment"), search = op.name.ends_with("topk");
  for (int power = 4; (image || search) && power <= 11; ++power) {
    const std::string n = std::to_string(1 << power);
    shapes.push_back(image ? "h=" + n + ",w=" + n : "Q=" + n + ",N=" + n + ",D=" + n);
  }
  if (image || search) return shapes;
  const bool matrix = op.name.ends_with("matmul");
  for (int power = matrix ? 4 : 6; power <= (matrix ? 12 : 26); power += matrix ? 1 : 2) {
    const std::string n = std::to_string(1 << power);
    shapes.push_back(matrix ? "M=" + n + ",N=" + n + ",K=" + n : "n=" + n);
  }
  return shapes;
}

}  // namespace detail

/// Ops that the virtual GPU has, priced exactly; all CPU kernels of an op cost what the virtual CPU does, and a `second`
/// one twice that.
inline executor::Stored virtual_calibration(const VirtualMachine& machine, const backends::Backend* device) {
  const VirtualCosts& costs = machine.costs;
  const double launch_sync = costs.launch_seconds + costs.sync_seconds;
  executor::Stored stored;
  stored.measured_utc = "2026-01-31T00:00:00Z";
  stored.data.costs = executor::Costs{
      .pinned_in = detail::link(costs.launch_seconds + costs.copy_seconds, costs.pinned_rate),
      .pinned_out = detail::link(costs.launch_seconds + costs.copy_seconds, costs.pinned_rate),
      .pageable_in = detail::link(costs.launch_seconds + costs.copy_seconds, costs.pageable_rate),
      .pageable_out = detail::link(costs.launch_seconds + costs.copy_seconds, costs.pageable_rate),
      .launch_sync_seconds = launch_sync};
  for (const ops::Op* op : ops::all()) {
    const auto candidates = executor::candidates_of(*op, device);
    executor::OpPoints points;
    const bool known = std::any_of(candidates.begin(), candidates.end(), [](const executor::Candidate& one) {
      return one.place == executor::Place::device;
    });
    for (const std::string& text : known ? detail::shapes_of(*op) : std::vector<std::string>{}) {
      executor::Point point{
          .args = ops::resolve(*op, ops::complete(*op, parse_shape(text).value()).value()).value()};
      for (const executor::Candidate& candidate : candidates) {
        const double seconds =
            candidate.place == executor::Place::device
                ? launch_sync + machine.kernel_seconds(*op, point.args)
                : (candidate.kernel.variant() == "second" ? 2 : 1) * machine.cpu_seconds(*op, point.args);
        point.samples.push_back(executor::Sample{.seconds = seconds, .noise = 0.01});
      }
      points.points.push_back(std::move(point));
    }
    stored.data.ops.push_back(std::move(points));
    stored.known.push_back(known);
  }
  return stored;
}

/// Options of an executor on the virtual machine that knows its costs.
inline executor::Options virtual_options(const VirtualMachine& machine) {
  static std::atomic<int> number{0};
  executor::Options options;
  options.device = VirtualMachine::kGpu;
  options.clock = machine.clock();
  options.table_file =
      std::filesystem::temp_directory_path() /
      ("fulcrum_virtual_" + std::to_string(getpid()) + "_" + std::to_string(number++) + ".json");
  std::filesystem::remove(*options.table_file);
  const backends::Backend* device = backends::find(VirtualMachine::kGpu).value();
  const Status saved = executor::save_stored(device, options, virtual_calibration(machine, device));
  FULCRUM_ASSERT(saved.ok());
  return options;
}

/// The executor itself; the file is gone when this returns.
inline executor::Executor virtual_executor(const VirtualMachine& machine,
                                           const executor::Policy& policy = {}) {
  executor::Options options = virtual_options(machine);
  options.policy = policy;
  auto made = executor::Executor::make(options);
  std::filesystem::remove(*options.table_file);
  FULCRUM_ASSERT(made.ok());
  return std::move(made).value();
}

}  // namespace fulcrum::testing
