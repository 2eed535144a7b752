// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Bootstrap and the split of variance by level.
#include <fulcrum/stats.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <set>
#include <vector>

#include "stats/streams.h"

namespace fulcrum::stats {
namespace {

using testing::Stream;

Clusters random_clusters(Stream& stream, int processes, int blocks, int samples, double process_sd,
                         double block_sd, double sample_sd) {
  Clusters out;
  for (int p = 0; p < processes; ++p) {
    const double process = process_sd * stream.normal();
    Cluster cluster;
    for (int b = 0; b < blocks; ++b) {
      const double block = block_sd * stream.normal();
      Block values;
      for (int s = 0; s < samples; ++s)
        values.push_back(std::exp(process + block + sample_sd * stream.normal()));
      cluster.push_back(values);
    }
    out.push_back(cluster);
  }
  return out;
}

TEST(RandomStream, IsTheSameEverywhere) {
  Random random(1234567);
  EXPECT_EQ(random.next(), 6457827717110365317ull);  // published first outputs of splitmix64 for this seed
  EXPECT_EQ(random.next(), 3203168211198807973ull);
  std::set<std::size_t> seen;
  for (int i = 0; i < 1000; ++i) seen.insert(random.below(7));
  EXPECT_EQ(seen.size(), 7u);
  EXPECT_EQ(*seen.rbegin(), 6u);
}

TEST(Bootstrap, RepeatsFromItsSeed) {
  Stream stream(61);
  const Clusters data = random_clusters(stream, 4, 5, 3, 0.1, 0.1, 0.1);
  const Bootstrap a = bootstrap(data, mean, {.resamples = 500, .seed = 7});
  const Bootstrap b = bootstrap(data, mean, {.resamples = 500, .seed = 7});
  const Bootstrap c = bootstrap(data, mean, {.resamples = 500, .seed = 8});
  EXPECT_EQ(a.low, b.low);
  EXPECT_EQ(a.high, b.high);
  EXPECT_NE(a.low, c.low);
  EXPECT_EQ(a.seed, 7u);
  EXPECT_LT(a.low, a.estimate);
  EXPECT_GT(a.high, a.estimate);
}

TEST(Bootstrap, CoversTheMeanOfIndependentSamples) {
  Stream stream(62);
  int covered = 0;
  for (int run = 0; run < 300; ++run) {
    std::vector<double> values(80);
    for (double& v : values) v = stream.normal();
    const Bootstrap b = bootstrap(in_blocks(values, 1), mean, {.resamples = 400, .seed = 62});
    covered += b.low <= 0 && 0 <= b.high;
  }
  EXPECT_GE(covered, 0.95 * 300 - 3 * std::sqrt(300 * 0.95 * 0.05));
  EXPECT_LE(covered, 297);
}

TEST(Bootstrap, SeesTheSpreadBetweenProcesses) {
  Stream stream(63);
  const Clusters data = random_clusters(stream, 30, 5, 10, 0.2, 0, 0.02);
  Clusters flat{Cluster{}};
  for (const Cluster& cluster : data) flat[0].insert(flat[0].end(), cluster.begin(), cluster.end());
  const Bootstrap clustered = bootstrap(data, mean, {.resamples = 1000});
  const Bootstrap pooled = bootstrap(flat, mean, {.resamples = 1000});
  EXPECT_GT(clustered.high - clustered.low, 1.5 * (pooled.high - pooled.low));
}

TEST(Bootstrap, JointStatisticsMayBeInfiniteOrUndefined) {
  // Break-even reuse: transfer / (cpu - gpu); no gain means never.
  const auto breakeven = [](std::span<const std::vector<double>> s) {
    const double gain = mean(s[1]) - mean(s[2]);
    return gain > 0 ? mean(s[0]) / gain : std::numeric_limits<double>::infinity();
  };
  const std::vector<double> transfer{10, 10, 10, 10}, cpu{2, 2.1, 1.9, 2}, fast{1, 1.1, 0.9, 1},
      slow{2.1, 1.9, 2, 2};
  const Clusters wins[] = {in_blocks(transfer, 1), in_blocks(cpu, 1), in_blocks(fast, 1)};
  const Bootstrap finite = bootstrap_joint(wins, breakeven, {.resamples = 500});
  EXPECT_NEAR(finite.estimate, 10, 1e-9);
  EXPECT_LT(finite.low, 10);
  EXPECT_GT(finite.high, 10);
  EXPECT_LT(finite.high, 15);
  const Clusters ties[] = {in_blocks(transfer, 1), in_blocks(cpu, 1), in_blocks(slow, 1)};
  const Bootstrap never = bootstrap_joint(ties, breakeven, {.resamples = 500});
  EXPECT_TRUE(std::isinf(never.high));
  EXPECT_TRUE(std::isfinite(never.low));
  const Bootstrap none = bootstrap(in_blocks(cpu, 1), [](auto) { return kUndefined; }, {.resamples = 20});
  EXPECT_EQ(none.undefined, 20);
  EXPECT_TRUE(std::isnan(none.low));
}

TEST(Bootstrap, BlocksKeepEverySample) {
  std::vector<double> values(103);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<double>(i);
  for (const std::size_t length : {0u, 1u, 10u, 200u}) {
    const Clusters clusters = in_blocks(values, length);
    std::vector<double> joined;
    for (const Block& block : clusters.at(0)) joined.insert(joined.end(), block.begin(), block.end());
    EXPECT_EQ(joined, values) << length;
  }
  EXPECT_EQ(in_blocks(values, 0)[0].front().size(), 10u);
  EXPECT_TRUE(in_blocks({}, 3).empty());
}

TEST(VarianceSplit, FindsEachLevelOfASimulatedHierarchy) {
  Stream stream(64);
  double sample = 0, epoch = 0, process = 0;
  for (int run = 0; run < 40; ++run) {
    const VarianceSplit v = split_variance(random_clusters(stream, 20, 8, 10, 0.03, 0.02, 0.01));
    sample += v.sample / 40;
    epoch += *v.epoch / 40;
    process += *v.process / 40;
  }
  EXPECT_NEAR(sample, 1e-4, 0.05e-4);
  EXPECT_NEAR(epoch, 4e-4, 0.4e-4);
  EXPECT_NEAR(process, 9e-4, 1.5e-4);
}

TEST(VarianceSplit, OfUnequalGroupsIsUnbiased) {
  Stream stream(65);
  double epoch = 0, process = 0;
  for (int run = 0; run < 200; ++run) {
    Clusters data = random_clusters(stream, 10, 6, 8, 0.03, 0.02, 0.01);
    data[0].resize(1);
    data[1].resize(2);
    for (std::size_t i = 2; i < 10; ++i) data[i][0].resize(1 + i % 3);
    const VarianceSplit v = split_variance(data);
    epoch += *v.epoch / 200;
    process += *v.process / 200;
  }
  EXPECT_NEAR(epoch, 4e-4, 0.3e-4);
  EXPECT_NEAR(process, 9e-4, 1.2e-4);
}

TEST(VarianceSplit, SaysNotMeasuredForWhatOneProcessOrEpochCannotShow) {
  Stream stream(66);
  const VarianceSplit one_process = split_variance(random_clusters(stream, 1, 5, 5, 0.1, 0.1, 0.1));
  EXPECT_FALSE(one_process.process);
  EXPECT_TRUE(one_process.epoch);
  const VarianceSplit one_epoch = split_variance(random_clusters(stream, 1, 1, 50, 0.1, 0.1, 0.1));
  EXPECT_FALSE(one_epoch.epoch);
  EXPECT_NEAR(one_epoch.sample, 0.01, 0.006);
  EXPECT_TRUE(std::isnan(split_variance({}).sample));
}

}  // namespace
}  // namespace fulcrum::stats
