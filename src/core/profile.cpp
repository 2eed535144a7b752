// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// What every reader of a CPU profile asks first: how much of it was sampled, and how much of that is whole.
#include <fulcrum/core/profile.h>

#include <algorithm>

namespace fulcrum {

double CpuProfile::sampled_seconds() const {
  double seconds = 0;
  for (const Sample& sample : samples) {
    if (!sample.blocked) seconds += sample.weight_seconds;
  }
  return seconds;
}

std::int64_t CpuProfile::on_cpu_samples() const {
  return std::count_if(samples.begin(), samples.end(), [](const Sample& sample) { return !sample.blocked; });
}

double CpuProfile::truncated_share() const {
  std::int64_t all = 0, cut = 0;
  for (const Sample& sample : samples) {
    if (sample.blocked) continue;
    ++all;
    cut += sample.stack < stacks.size() && stacks[sample.stack].truncated;
  }
  return all > 0 ? static_cast<double>(cut) / static_cast<double>(all) : 0;
}

}  // namespace fulcrum
