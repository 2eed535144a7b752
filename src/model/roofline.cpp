// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Hierarchical rooflines: every level of memory of the CPU and the GPU, every peak, and where measurements stand.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "model/calibration.h"

namespace fulcrum::model {
namespace {

double best_rate(const std::map<std::string, Quantity>& rates, Source& source) {
  double best = 0;
  for (const auto& [name, rate] : rates) {
    if (rate.value <= best) continue;
    best = rate.value;
    source = rate.source;
  }
  return best;
}

void add_memory(std::vector<Roof>& roofs, std::string name, std::string where,
                const std::map<std::string, Quantity>& rates) {
  Source source = Source::measured;
  const double rate = best_rate(rates, source);
  if (rate > 0) roofs.push_back({std::move(name), std::move(where), rate, 0, source});
}

std::map<std::string, Quantity> with_prefix(const std::map<std::string, Quantity>& rates,
                                            std::string_view prefix) {
  std::map<std::string, Quantity> out;
  for (const auto& [name, rate] : rates) {
    if (name.starts_with(prefix)) out[name] = rate;
  }
  return out;
}

void add_cpu(const Machine& machine, std::vector<Roof>& roofs) {
  const std::string all = fmt::format("{} threads", machine.cpu.threads);
  for (const MemoryLevel& level : machine.cpu.levels) {
    add_memory(roofs, level.name + ", 1 thread", "cpu", level.one_thread);
    if (machine.cpu.threads > 1)
      add_memory(roofs, fmt::format("{}, {}", level.name, all), "cpu", level.all_threads);
  }
  for (const auto& [isa, peak] : machine.cpu.flops_one_thread) {
    if (peak.value > 0) roofs.push_back({isa + ", 1 thread", "cpu", 0, peak.value, peak.source});
  }
  for (const auto& [isa, peak] : machine.cpu.flops_all_threads) {
    if (peak.value > 0 && machine.cpu.threads > 1) {
      roofs.push_back({fmt::format("{}, {}", isa, all), "cpu", 0, peak.value, peak.source});
    }
  }
}

void add_gpu(const GpuCeilings& gpu, std::vector<Roof>& roofs) {
  add_memory(roofs, "L2", "gpu", with_prefix(gpu.rates, "l2_"));
  add_memory(roofs, "HBM", "gpu", with_prefix(gpu.rates, "hbm_"));
  for (const auto& [precision, peak] : gpu.flops) {
    if (peak.value > 0) roofs.push_back({precision, "gpu", 0, peak.value, peak.source});
  }
}

}  // namespace

std::vector<Roof> roofs_of(const Machine& machine) {
  std::vector<Roof> roofs;
  add_cpu(machine, roofs);
  for (const GpuCeilings& gpu : machine.gpus) add_gpu(gpu, roofs);
  return roofs;
}

RooflinePoint roofline_point(const Measurement& measurement, const Machine& machine, double in_cache) {
  const Call call = call_of(measurement);
  RooflinePoint point;
  point.name = measurement.name();
  point.backend = measurement.backend;
  point.shape = measurement.shape;
  point.regime = measurement.regime;
  point.where = measurement.regime == Regime::host ? "cpu" : "gpu";
  if (call.work.bytes() > 0) point.intensity = call.work.flops / call.work.bytes();
  // Of a resident call the device's own time stands under the device's roofs; the launch is no property of them.
  const double seconds = measurement.device_seconds && measurement.device_seconds->median > 0
                             ? measurement.device_seconds->median
                             : measurement.seconds.median;
  if (!(seconds > 0)) return point;
  point.flops = call.work.flops / seconds;
  Formula formula;
  if (point.where == "cpu") {
    formula = cpu_formula(call, machine.cpu, measurement.threads, in_cache, measurement.backend == "scalar");
  } else if (!machine.gpus.empty()) {
    formula = kernel_formula(call, machine.gpus.front());
  } else {
    formula = missing_formula("no GPU");
  }
  if (!formula.missing.empty() || !(formula.roof_seconds > 0)) return point;
  point.roof_flops = call.work.flops / formula.roof_seconds;
  point.bound = formula.bound == "latency" ? "memory" : formula.bound;
  point.level = formula.level;
  point.fraction = formula.roof_seconds / seconds;
  return point;
}

Roofline roofline(const Machine& host, const Machine* gpu, std::span<const Measurement> measurements) {
  Roofline out;
  out.machine = host.id;
  add_cpu(host, out.roofs);
  const Machine& device = gpu ? *gpu : host;
  for (const GpuCeilings& ceilings : device.gpus) add_gpu(ceilings, out.roofs);
  const std::vector<Cell> cells = cells_of(measurements);
  for (const Measurement& m : measurements) {
    if (m.op.starts_with("probe_") || m.quality == Quality::invalid || !(m.seconds.median > 0)) continue;
    const bool on_cpu = m.regime == Regime::host;
    if (!on_cpu && m.regime != Regime::resident)
      continue;  // other regimes stand under the link, not under these roofs
    const double rate = on_cpu && m.backend != "scalar" ? in_cache_slots(cells, host, m.op, m.threads) : 0;
    out.points.push_back(roofline_point(m, on_cpu ? host : device, rate));
  }
  return out;
}

}  // namespace fulcrum::model
