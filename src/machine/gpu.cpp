// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Probes of a device come from its backend and time themselves; here they take turns, and their windows become
// quantities as those of the CPU do: in the fastest windows nobody else was busy.
#include "machine/gpu.h"

#include <fmt/format.h>
#include <fulcrum/backends/device.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "machine/windows.h"

namespace fulcrum::machine {
namespace {

constexpr int kRounds = 4;
constexpr int kLeastWindows = 2;

/// A probe between its open and its close.
class OpenProbe {
 public:
  OpenProbe(const fulcrum_probe& probe, void* state) : probe_(&probe), state_(state) {}
  OpenProbe(const OpenProbe&) = delete;
  OpenProbe& operator=(const OpenProbe&) = delete;
  ~OpenProbe() {
    if (probe_->close) probe_->close(state_);
  }
  const fulcrum_probe& probe() const { return *probe_; }
  std::string what() const {
    return probe_->size > 0 ? fmt::format("{} {}", probe_->name, probe_->size) : probe_->name;
  }
  /// Takes a window; one that is no positive time is not kept.
  Status take() {
    double seconds = 0;
    FULCRUM_CHECK(to_status(probe_->window(state_, &seconds)));
    if (std::isfinite(seconds) && seconds > 0) windows_.push_back(seconds);
    return {};
  }
  const std::vector<double>& windows() const { return windows_; }

 private:
  const fulcrum_probe* probe_;
  void* state_;
  std::vector<double> windows_;
};
using OpenProbes = std::vector<std::unique_ptr<OpenProbe>>;

template <class T>
T field(const Json& json, const char* key, T otherwise) {
  const auto found = json.find(key);
  if (found == json.end()) return otherwise;
  if constexpr (std::is_same_v<T, std::string>) {
    return found->is_string() ? found->get<T>() : otherwise;
  } else {
    return found->is_number() ? found->get<T>() : otherwise;
  }
}

void leave_out(const std::string& device, const std::string& what, const std::string& why,
               std::vector<std::string>& notes) {
  notes.push_back(fmt::format("{}: {} is left out: {}", device, what, why));
  log(LogLevel::warning, notes.back());
}

Status check_interrupt(const ProbeConfig& config) {
  if (!config.interrupted || !config.interrupted()) return {};
  return Error{Code::interrupted, "the measurement of the GPU was interrupted",
               "nothing was saved; run it again"};
}

std::span<const fulcrum_probe> probes_of(const backends::Backend& backend) {
  if (!backend.table().probes) return {};
  std::int64_t count = 0;
  const fulcrum_probe* first = backend.table().probes(&count);
  return {first, static_cast<std::size_t>(std::max<std::int64_t>(0, count))};
}

/// Opens what can be opened.
Status open_probes(const backends::Backend& backend, const ProbeConfig& config, const std::string& device,
                   OpenProbes& open, std::vector<std::string>& notes) {
  for (const fulcrum_probe& probe : probes_of(backend)) {
    FULCRUM_CHECK(check_interrupt(config));
    if (config.progress) config.progress(fmt::format("{}: preparing {}", device, probe.name), 0, 1);
    void* state = nullptr;
    const Status status = to_status(probe.open(&probe, &state));
    if (status.ok()) {
      open.push_back(std::make_unique<OpenProbe>(probe, state));
      continue;
    }
    leave_out(device, probe.name, status.error().message, notes);
    if (status.error().code == Code::device_lost) break;  // no later call can succeed
  }
  return {};
}

/// Windows of one probe until `until`. A probe that fails is closed and forgotten.
Status take_turn(std::unique_ptr<OpenProbe>& open, const std::string& device, double until,
                 std::vector<std::string>& notes) {
  const measure::Clock& clock = measure::steady_clock();
  for (int taken = 0; taken < kLeastWindows || clock.now() < until; ++taken) {
    Status status = open->take();
    if (status.ok()) continue;
    leave_out(device, open->what(), status.error().message, notes);
    open.reset();
    return status;
  }
  return {};
}

Status run_rounds(OpenProbes& open, const ProbeConfig& config, double deadline, const std::string& device,
                  std::vector<std::string>& notes) {
  const measure::Clock& clock = measure::steady_clock();
  const int probes = static_cast<int>(open.size());
  const int total = kRounds * probes;
  for (int turn = 0; turn < total; ++turn) {
    FULCRUM_CHECK(check_interrupt(config));
    const double now = clock.now();
    if (now >= deadline && turn >= probes) break;  // a value needs one round at least
    std::unique_ptr<OpenProbe>& probe = open[static_cast<std::size_t>(turn % probes)];
    if (!probe) continue;
    if (config.progress) config.progress(fmt::format("{}: {}", device, probe->what()), turn, total);
    const Status status = take_turn(probe, device, now + (deadline - now) / (total - turn), notes);
    if (!status.ok() && status.error().code == Code::device_lost) break;
  }
  if (config.progress) config.progress("done", total, total);
  return {};
}

void add_point(std::vector<std::pair<std::int64_t, Quantity>>& points, std::int64_t key,
               const Quantity& value) {
  points.emplace_back(key, value);
  std::sort(points.begin(), points.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
}

/// Single numbers; of a table's many points some always look odd.
bool is_ceiling(const OpenProbe& open) {
  const std::string_view group = open.probe().group;
  return group == "rate" || group == "flops";
}

/// Where a group's values go: rates per second, times as they are.
Status store(const OpenProbe& open, GpuCeilings& gpu) {
  const fulcrum_probe& probe = open.probe();
  const std::string_view group = probe.group;
  std::vector<double> costs = open.windows();
  for (double& cost : costs) cost /= probe.work;
  if (group == "rate") {
    gpu.rates[probe.name] = best_rate(costs);
  } else if (group == "flops") {
    gpu.flops[probe.name] = best_rate(costs);
  } else if (group == "latency") {
    gpu.latencies[probe.name] = best_cost(costs);
  } else if (group == "link") {
    add_point(gpu.link[probe.name], probe.size, best_cost(open.windows()));
  } else if (group == "table") {
    add_point(gpu.tables[probe.name], probe.size, best_rate(costs));
  } else {
    return Error{Code::unsupported, fmt::format("nothing is known about the group '{}'", group),
                 "build the program and its modules from one source"};
  }
  return {};
}

}  // namespace

GpuCeilings gpu_facts(const backends::Backend& backend) {
  const Json facts = backend.describe();
  const Json state = backends::device_state(backend);
  GpuCeilings gpu;
  gpu.name = field<std::string>(facts, "name", std::string(backend.name()));
  gpu.compute_capability = field<std::string>(facts, "compute_capability", "");
  gpu.sms = field<std::int64_t>(facts, "sms", 0);
  gpu.l2_bytes = field<std::int64_t>(facts, "l2_bytes", 0);
  gpu.memory_bytes = field<std::int64_t>(facts, "memory_bytes", 0);
  gpu.max_sm_hz = field<double>(state, "max_sm_hz", 0);
  gpu.driver = field<std::string>(state, "driver", "");
  if (gpu.driver.empty()) {  // without NVML: at least what CUDA says
    const auto version = field<std::string>(facts, "driver_version", "");
    if (!version.empty()) gpu.driver = "CUDA " + version;
  }
  return gpu;
}

std::vector<GpuCeilings> discover_gpus() {
  std::vector<GpuCeilings> gpus;
  for (const backends::Backend* backend : backends::all()) {
    if (backend->kind() == "gpu" && backend->available()) gpus.push_back(gpu_facts(*backend));
  }
  return gpus;
}

Status measure_gpu(const backends::Backend& backend, const ProbeConfig& config, double seconds,
                   GpuCeilings& gpu, std::vector<std::string>& notes) {
  gpu = gpu_facts(backend);
  OpenProbes open;
  const double deadline = measure::steady_clock().now() + seconds;
  FULCRUM_CHECK(open_probes(backend, config, gpu.name, open, notes));
  FULCRUM_CHECK(run_rounds(open, config, deadline, gpu.name, notes));
  for (const auto& probe : open) {
    if (!probe) continue;
    if (probe->windows().empty()) {
      leave_out(gpu.name, probe->what(), "no window was a positive time", notes);
    } else if (const Status status = store(*probe, gpu); !status.ok()) {
      leave_out(gpu.name, probe->what(), status.error().message, notes);
    } else if (const auto groups = is_ceiling(*probe) ? two_groups(probe->windows()) : std::nullopt) {
      notes.push_back(note_of(fmt::format("{} {}", gpu.name, probe->what()), *groups));
    }
  }
  return {};
}

}  // namespace fulcrum::machine
