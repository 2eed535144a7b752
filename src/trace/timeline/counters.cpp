// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Counter samples to kernels, by time: a sample belongs to a kernel's shape when that shape alone had the GPU for
// nearly all of it. Short kernels gather their samples over many launches.
#include <algorithm>
#include <map>

#include "trace/timeline/parts.h"

namespace fulcrum::trace {
namespace {

constexpr double kOwned = 0.8;     // of a sample's time
constexpr int kEnoughSamples = 3;  // fewer say nothing

struct Mean {
  double sum = 0, weight = 0;
  void add(double value, double w) {
    if (value >= 0) sum += value * w, weight += w;
  }
  double value() const { return weight > 0 ? sum / weight : -1; }
};

struct Means {
  Mean dram, sm, tensor, warps;
  int samples = 0;
};

/// How near the SMs are to what they can do. That they are active says little: one warp that waits makes one so. Chips
/// that cannot sample it tell how many of their four issue slots were used, and how busy the tensor cores were.
double busiest_pipe(const GpuTrace::CounterSample& sample) {
  constexpr double kIssueSlots = 4;
  if (sample.sm_throughput >= 0) return sample.sm_throughput;
  return std::max(sample.instructions >= 0 ? sample.instructions / kIssueSlots : -1, sample.tensor_active);
}

/// Occupancy is of the cycles in which an SM has anything to do at all.
double warps_while_active(const GpuTrace::CounterSample& sample) {
  constexpr double kHardlyActive = 0.01;
  if (sample.warps_active < 0 || sample.sm_active < kHardlyActive) return sample.warps_active;
  return std::min(1.0, sample.warps_active / sample.sm_active);
}

/// The kernel group that owns a sample's time; -1: none does.
class Owners {
 public:
  Owners(const Joined& joined, const Timeline& timeline) : joined_(joined) {
    group_.assign(joined.trace.ops.size(), -1);
    for (std::size_t k = 0; k < timeline.kernels.size(); ++k) {
      for (const auto i : timeline.kernels[k].ops) group_[i] = std::int32_t(k);
    }
    for (const auto i : joined.ops) {
      devices_[joined.device_of[i]].ops.push_back(i);
    }
  }
  std::int32_t owner(const GpuTrace::CounterSample& sample) {
    const auto found = devices_.find(sample.device);
    if (found == devices_.end()) return -1;
    Device& device = found->second;
    for (; device.next < device.ops.size() && joined_.begin_ns[device.ops[device.next]] < sample.end_ns;
         ++device.next) {
      device.running.push_back(device.ops[device.next]);
    }
    std::erase_if(device.running, [&](std::uint32_t i) { return joined_.end_ns[i] <= sample.begin_ns; });
    std::map<std::int32_t, std::int64_t> ns;
    for (const auto i : device.running) {
      const auto overlap =
          std::min(joined_.end_ns[i], sample.end_ns) - std::max(joined_.begin_ns[i], sample.begin_ns);
      if (overlap > 0) ns[group_[i]] += overlap;
    }
    const auto length = double(sample.end_ns - sample.begin_ns);
    std::int32_t best = -1;
    for (const auto& [group, overlap] : ns) {
      if (double(overlap) >= kOwned * length) {
        best = group;
      } else if (double(overlap) > (1 - kOwned) * length) {
        return -1;  // somebody else was there too
      }
    }
    return best;
  }

 private:
  const Joined& joined_;
  std::vector<std::int32_t> group_;
  struct Device {
    std::vector<std::uint32_t> ops,
        running;  // samples come in order, so running ones are those begun and not ended
    std::size_t next = 0;
  };
  std::map<int, Device> devices_;
};

}  // namespace

void join_counters(const Joined& joined, Timeline& result) {
  if (joined.trace.counter_samples.empty()) return;
  std::vector<const GpuTrace::CounterSample*> samples;
  for (const auto& sample : joined.trace.counter_samples) {
    if (sample.end_ns > sample.begin_ns) samples.push_back(&sample);
  }
  std::stable_sort(samples.begin(), samples.end(),
                   [](auto* a, auto* b) { return a->begin_ns < b->begin_ns; });
  Owners owners(joined, result);
  std::vector<Means> means(result.kernels.size());
  for (const auto* sample : samples) {
    const auto owner = owners.owner(*sample);
    if (owner < 0) continue;
    Means& m = means[std::size_t(owner)];
    const double ns = double(sample->end_ns - sample->begin_ns);
    m.dram.add(sample->dram, ns);
    m.sm.add(busiest_pipe(*sample), ns);
    m.tensor.add(sample->tensor_active, ns);
    m.warps.add(warps_while_active(*sample), ns);
    ++m.samples;
  }
  for (std::size_t k = 0; k < means.size(); ++k) {
    Timeline::Kernel& kernel = result.kernels[k];
    kernel.counter_samples = means[k].samples;
    if (means[k].samples < kEnoughSamples) continue;
    kernel.dram_share = means[k].dram.value();
    kernel.sm_share = means[k].sm.value();
    kernel.tensor_share = means[k].tensor.value();
    kernel.warps_share = means[k].warps.value();
  }
}

}  // namespace fulcrum::trace
