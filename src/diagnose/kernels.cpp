// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Kernels as rules look at them: grouped by name, with their shape, device, neighbours and counters.
#include <algorithm>

#include "diagnose/gain.h"

namespace fulcrum::diagnose {

const LaunchShape& shape_of(const Facts& facts, const Timeline::Kernel& kernel) {
  static const LaunchShape none;
  return kernel.shape < facts.trace.shapes.size() ? facts.trace.shapes[kernel.shape] : none;
}

const GpuTrace::Device* device_of(const Facts& facts, const Timeline::Kernel& kernel) {
  if (kernel.ops.empty() || kernel.ops.front() >= facts.trace.ops.size()) return nullptr;
  const std::uint32_t stream = facts.trace.ops[kernel.ops.front()].stream;
  if (stream < facts.trace.streams.size()) return facts.device(facts.trace.streams[stream].device);
  return facts.trace.devices.size() == 1 ? &facts.trace.devices.front() : nullptr;
}

std::vector<std::uint32_t> some(std::span<const std::uint32_t> ops) {
  return {ops.begin(), ops.begin() + std::ptrdiff_t(std::min<std::size_t>(8, ops.size()))};
}

std::vector<Group> grouped(const Facts& facts, std::span<const Timeline::Kernel* const> kernels) {
  std::map<std::string, Group> by_name;
  for (const Timeline::Kernel* kernel : kernels) {
    const std::string name = short_name(shape_of(facts, *kernel).name);
    Group& group = by_name[name];
    group.name = name;
    group.kernels.push_back(kernel);
    group.ops.insert(group.ops.end(), kernel->ops.begin(), kernel->ops.end());
    group.seconds += kernel->seconds;
    group.share += kernel->share;
  }
  std::vector<Group> out;
  for (auto& [name, group] : by_name) {
    std::stable_sort(group.kernels.begin(), group.kernels.end(),
                     [](const auto* a, const auto* b) { return a->seconds > b->seconds; });
    std::sort(group.ops.begin(), group.ops.end());
    out.push_back(std::move(group));
  }
  std::stable_sort(out.begin(), out.end(),
                   [](const Group& a, const Group& b) { return a.seconds > b.seconds; });
  return out;
}

double beside_others(const Facts& facts, const Timeline::Kernel& kernel) {
  const auto& ops = facts.trace.ops;
  const auto device = [&](const GpuTrace::Op& op) {
    return op.stream < facts.trace.streams.size() ? facts.trace.streams[op.stream].device : -1;
  };
  double overlap_ns = 0, total_ns = 0;
  for (const std::uint32_t number : kernel.ops) {
    if (number >= ops.size()) continue;
    const GpuTrace::Op& op = ops[number];
    total_ns += double(op.duration_ns());
    std::int64_t covered_ns = 0;
    // Ops are in order of their begin. Backwards the search stops after a while: what began long before and still
    // runs is rare, and missing it only makes a rule speak up.
    constexpr std::uint32_t kLookBack = 64;
    std::int64_t reach_ns = op.begin_ns;
    for (std::uint32_t i = number > kLookBack ? number - kLookBack : 0; i < ops.size(); ++i) {
      const GpuTrace::Op& other = ops[i];
      if (other.begin_ns >= op.end_ns) break;
      if (i == number || other.kind != GpuOpKind::kernel || other.end_ns <= reach_ns ||
          device(other) != device(op)) {
        continue;
      }
      const std::int64_t from_ns = std::max(reach_ns, other.begin_ns),
                         to_ns = std::min(op.end_ns, other.end_ns);
      if (to_ns > from_ns) covered_ns += to_ns - from_ns, reach_ns = to_ns;
    }
    overlap_ns += double(covered_ns);
  }
  return total_ns > 0 ? overlap_ns / total_ns : 0;
}

std::optional<double> metric(const Facts& facts, const Timeline::Kernel& kernel, std::string_view name) {
  for (const GpuTrace::KernelCounters& counters : facts.trace.kernel_counters) {
    if (counters.shape != kernel.shape) continue;
    const auto found = counters.metrics.find(std::string(name));
    if (found != counters.metrics.end()) return found->second;
  }
  return std::nullopt;
}

}  // namespace fulcrum::diagnose
