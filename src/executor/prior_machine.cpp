// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// See prior_machine.h.
#include "executor/prior_machine.h"

#include <fulcrum/machine.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "executor/prior.h"

namespace fulcrum::executor {
namespace {

constexpr std::string_view kShippedDevice = "h200";

// Bytes per second of one thread by level, flops of one thread by instruction set: between those of the servers in
// results/ (a Xeon of 16 cores, two EPYCs), which lie up to a factor of two off. A thread's share of a fork and join is the
// dearest of theirs: a fork that does not pay loses more than one left out.
constexpr double kAssumedRates[] = {370e9, 130e9, 70e9, 24e9}, kAssumedMemory = 100e9;
constexpr double kAssumedForkShare = 0.3e-6;
constexpr std::pair<std::string_view, double> kAssumedFlops[] = {
    {"avx3", 180e9}, {"avx2", 115e9}, {"sse4", 50e9}, {"neon", 50e9}, {"scalar", 12e9}};

Quantity assumed(double value) { return {value, value / 2, value * 2, Source::assumed}; }

double assumed_flops(const std::vector<std::string>& isas) {
  for (const auto& [isa, flops] : kAssumedFlops) {
    if (std::find(isas.begin(), isas.end(), isa) != isas.end()) return flops;
  }
  return kAssumedFlops[std::size(kAssumedFlops) - 1].second;
}

Machine assumed_host() {
  Machine host;
  host.id = "assumed";
  host.topology = machine::discover_cpu();
  host.cpu.levels = machine::discover_levels();
  host.cpu.threads = backends::usable_threads();
  const double threads = std::max(1, host.cpu.threads);
  for (std::size_t i = 0; i < host.cpu.levels.size(); ++i) {
    MemoryLevel& level = host.cpu.levels[i];
    const bool last = i + 1 == host.cpu.levels.size();
    const double one = kAssumedRates[last ? 3 : std::min<std::size_t>(i, 2)];
    const double all = last ? std::min(one * threads, kAssumedMemory) : one * threads;
    for (const char* name : {"read", "copy", "triad"}) {
      level.one_thread[name] = assumed(one);
      level.all_threads[name] = assumed(all);
    }
  }
  const double vectors = assumed_flops(backends::isas()), plain = assumed_flops({});
  host.cpu.flops_one_thread = {{"assumed", assumed(vectors)}, {"scalar", assumed(plain)}};
  host.cpu.flops_all_threads = {{"assumed", assumed(vectors * threads)},
                                {"scalar", assumed(plain * threads)}};
  host.cpu.fork_join_seconds = assumed(kAssumedForkShare * threads);
  return host;
}

// The profile whose first GPU has this name: this machine's own, then shipped ones, then the one with measured times.
std::optional<Machine> profile_of(const std::string& name, const std::optional<Machine>& own) {
  if (own && !own->gpus.empty() && own->gpus.front().name == name && !own->gpus.front().link.empty())
    return own;
  for (const machine::StoredProfile& stored : machine::list()) {
    if (!stored.shipped) continue;
    auto machine = machine::load(stored.name);
    if (machine.ok() && !machine->gpus.empty() && machine->gpus.front().name == name) return *machine;
  }
  if (auto machine = machine::load(kShippedDevice); machine.ok()) return *machine;
  return {};
}

/// The most that reading, copying or adding reached.
double memory_rate(const GpuCeilings& gpu) {
  double most = 0;
  for (const auto& [name, rate] : gpu.rates) {
    if (name.starts_with("hbm")) most = std::max({most, rate.value, rate.high});
  }
  return most;
}

bool same_cpu(const CpuTopology& a, const CpuTopology& b) {
  return a.model == b.model && a.cores == b.cores && a.threads == b.threads;
}

}  // namespace

GpuCeilings device_facts(const backends::Backend& device) {
  const std::string name = device.describe().value("name", std::string(device.name()));
  for (GpuCeilings& gpu : machine::discover_gpus()) {
    if (gpu.name == name) return std::move(gpu);
  }
  GpuCeilings unknown;
  unknown.name = name;
  return unknown;
}

Costs costs_of(const GpuCeilings& gpu) {
  const auto value = [&](const char* name, double otherwise) {
    const auto found = gpu.latencies.find(name);
    return found == gpu.latencies.end() ? otherwise : found->second.value;
  };
  const auto table = [&](const char* name) {
    const auto found = gpu.link.find(name);
    return found == gpu.link.end() ? std::vector<std::pair<std::int64_t, Quantity>>{} : found->second;
  };
  Costs costs;
  costs.launch_sync_seconds = value("launch_sync", 10e-6);
  const double wait = std::max(0.0, costs.launch_sync_seconds - value("launch", 4e-6));
  costs.pinned_in = link_curve(table("pinned_h2d"), wait);
  costs.pinned_out = link_curve(table("pinned_d2h"), wait);
  costs.pageable_in = link_curve(table("pageable_h2d"), wait);
  costs.pageable_out = link_curve(table("pageable_d2h"), wait);
  return costs;
}

PriorMachine prior_machine(const backends::Backend* device) {
  PriorMachine prior;
  const std::optional<Machine> own = machine::known();
  prior.host_known = own && !own->cpu.levels.empty() && !own->cpu.flops_one_thread.empty();
  prior.host = prior.host_known ? *own : assumed_host();
  prior.costs.fork_seconds = prior.host.cpu.fork_join_seconds.value;
  if (!device) return prior;
  prior.gpu = profile_of(device_facts(*device).name, own);
  if (!prior.gpu) return prior;
  prior.costs = costs_of(prior.gpu->gpus.front());
  prior.costs.fork_seconds = prior.host.cpu.fork_join_seconds.value;
  if (auto rows = machine::measurements(kShippedDevice); rows.ok()) {
    const auto measured_on = machine::load(kShippedDevice);
    if (!measured_on.ok()) return prior;
    prior.rows = std::move(*rows);
    prior.gpu_calibration = model::Calibration(*measured_on, prior.rows);
    if (same_cpu(measured_on->topology, prior.host.topology)) prior.host_calibration = prior.gpu_calibration;
  }
  return prior;
}

Caches caches_of(const backends::Backend* device) {
  Caches caches;
  std::vector<double> sizes;
  for (const MemoryLevel& level : machine::discover_levels()) {
    if (level.capacity_bytes > 0) sizes.push_back(static_cast<double>(level.capacity_bytes));
  }
  if (sizes.size() >= 2) caches.near_bytes = sizes[1];
  if (!sizes.empty()) caches.far_bytes = std::max(sizes.back(), 2 * caches.near_bytes);
  const std::optional<Machine> own = machine::known();
  if (own && !own->cpu.levels.empty()) {
    for (const auto& [name, rate] : own->cpu.levels.back().all_threads)
      caches.host_bytes_per_second = std::max({caches.host_bytes_per_second, rate.value, rate.high});
  }
  if (device) {
    const GpuCeilings facts = device_facts(*device);
    if (facts.l2_bytes > 0) caches.device_bytes = static_cast<double>(facts.l2_bytes);
    const std::optional<Machine> profile = profile_of(facts.name, own);
    if (profile && profile->gpus.front().name == facts.name)
      caches.device_bytes_per_second = memory_rate(profile->gpus.front());
  }
  return caches;
}

}  // namespace fulcrum::executor
