// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Where the variance of ln t comes from: inside an epoch, between epochs, between processes.
// Why nested analysis of variance with unequal group sizes (Henderson's first method): closed form, and
// epochs cut short by a budget are not thrown away. Rejected: maximum likelihood, iterative for the same
// three numbers.
#include <fulcrum/stats.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

#include "stats/sorted.h"

namespace fulcrum::stats {
namespace {

struct Group {
  double count = 0;
  double centre = 0;
};

double squared(double v) { return v * v; }

struct Sums {  // over the nesting sample in epoch in process
  double samples = 0, epochs = 0, processes = 0;
  double within_epochs = 0, between_epochs = 0, between_processes = 0;  // sums of squares
  double epoch_sizes_in_process = 0;                                    // sum n_ij^2 / n_i
  double epoch_sizes = 0, process_sizes = 0;                            // sum n_ij^2, sum n_i^2
};

Group add_process(const Cluster& cluster, Sums& sums) {
  std::vector<Group> epochs;
  Group process;
  for (const Block& block : cluster) {
    const std::vector<double> values = logs(block);
    if (values.empty()) continue;
    const Group epoch{static_cast<double>(values.size()), mean(values)};
    for (const double v : values) sums.within_epochs += squared(v - epoch.centre);
    process.count += epoch.count;
    process.centre += epoch.count * epoch.centre;
    epochs.push_back(epoch);
  }
  if (epochs.empty()) return process;
  process.centre /= process.count;
  for (const Group& epoch : epochs) {
    sums.between_epochs += epoch.count * squared(epoch.centre - process.centre);
    sums.epoch_sizes_in_process += squared(epoch.count) / process.count;
    sums.epoch_sizes += squared(epoch.count);
  }
  sums.process_sizes += squared(process.count);
  sums.epochs += static_cast<double>(epochs.size());
  sums.processes += 1;
  sums.samples += process.count;
  return process;
}

Sums collect(const Clusters& clusters) {
  Sums sums;
  std::vector<Group> processes;
  double total = 0;
  for (const Cluster& cluster : clusters) {
    const Group process = add_process(cluster, sums);
    total += process.count * process.centre;
    processes.push_back(process);
  }
  for (const Group& process : processes) {
    sums.between_processes += process.count * squared(process.centre - total / sums.samples);
  }
  return sums;
}

}  // namespace

VarianceSplit split_variance(const Clusters& clusters) {
  const Sums s = collect(clusters);
  VarianceSplit out;
  if (s.samples > s.epochs) out.sample = s.within_epochs / (s.samples - s.epochs);
  const double noise = std::isnan(out.sample) ? 0 : out.sample;
  if (s.epochs > s.processes) {
    const double weight = (s.samples - s.epoch_sizes_in_process) / (s.epochs - s.processes);
    out.epoch = std::max(0.0, (s.between_epochs / (s.epochs - s.processes) - noise) / weight);
  }
  if (s.processes > 1) {
    const double freedom = s.processes - 1;
    const double epoch_weight = (s.epoch_sizes_in_process - s.epoch_sizes / s.samples) / freedom;
    const double weight = (s.samples - s.process_sizes / s.samples) / freedom;
    const double below = noise + epoch_weight * out.epoch.value_or(0);
    out.process = std::max(0.0, (s.between_processes / freedom - below) / weight);
  }
  return out;
}

}  // namespace fulcrum::stats
