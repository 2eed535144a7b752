// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Cluster bootstrap: resample processes, then blocks, never single samples, because samples of one block and
// blocks of one process resemble each other.
// Why percentile: only for quantities without an exact interval (k*, n*, fits, ratio of p99), which may be
// infinite; bias-corrected or studentised variants need a finite variance.
#include <fulcrum/stats.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

#include "stats/sorted.h"

namespace fulcrum::stats {
namespace {

void append(const Block& block, std::vector<double>& pooled) {
  pooled.insert(pooled.end(), block.begin(), block.end());
}

void pool(const Clusters& clusters, std::vector<double>& pooled) {
  pooled.clear();
  for (const Cluster& cluster : clusters) {
    for (const Block& block : cluster) append(block, pooled);
  }
}

void resample(const Clusters& clusters, Random& random, std::vector<double>& pooled) {
  pooled.clear();
  for (std::size_t i = 0; i < clusters.size(); ++i) {
    const Cluster& cluster = clusters[random.below(clusters.size())];
    for (std::size_t j = 0; j < cluster.size(); ++j) append(cluster[random.below(cluster.size())], pooled);
  }
}

}  // namespace

std::uint64_t Random::next() {
  std::uint64_t z = state_ += 0x9e3779b97f4a7c15;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

double Random::uniform() { return (static_cast<double>(next() >> 11) + 0.5) * 0x1p-53; }

std::size_t Random::below(std::size_t exclusive) {
  return static_cast<std::size_t>(((next() >> 32) * static_cast<std::uint64_t>(exclusive)) >> 32);
}

Clusters in_blocks(std::span<const double> values, std::size_t block_length) {
  if (values.empty()) return {};
  if (block_length == 0) {
    const double root = std::sqrt(static_cast<double>(values.size()));
    block_length = std::max<std::size_t>(1, static_cast<std::size_t>(root));
  }
  Cluster cluster;
  for (std::size_t i = 0; i < values.size(); i += block_length) {
    const auto block = values.subspan(i, std::min(block_length, values.size() - i));
    cluster.emplace_back(block.begin(), block.end());
  }
  return {std::move(cluster)};
}

Bootstrap bootstrap_joint(std::span<const Clusters> samples, const JointStatistic& statistic,
                          const BootstrapOptions& options) {
  Bootstrap out{.resamples = options.resamples, .seed = options.seed};
  std::vector<std::vector<double>> pooled(samples.size());
  for (std::size_t s = 0; s < samples.size(); ++s) pool(samples[s], pooled[s]);
  out.estimate = statistic(pooled);

  Random random(options.seed);
  std::vector<double> estimates;
  estimates.reserve(static_cast<std::size_t>(std::max<std::int64_t>(options.resamples, 0)));
  for (std::int64_t i = 0; i < options.resamples; ++i) {
    for (std::size_t s = 0; s < samples.size(); ++s) resample(samples[s], random, pooled[s]);
    const double value = statistic(pooled);
    if (std::isnan(value)) {
      ++out.undefined;
    } else {
      estimates.push_back(value);
    }
  }
  std::sort(estimates.begin(), estimates.end());
  out.low = sorted_quantile(estimates, options.alpha / 2);
  out.high = sorted_quantile(estimates, 1 - options.alpha / 2);
  return out;
}

Bootstrap bootstrap(const Clusters& clusters, const Statistic& statistic, const BootstrapOptions& options) {
  const auto first = [&](std::span<const std::vector<double>> pooled) { return statistic(pooled.front()); };
  return bootstrap_joint(std::span(&clusters, 1), first, options);
}

}  // namespace fulcrum::stats
