// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// One row out of several processes.
#include <fulcrum/measure.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace fulcrum::measure {
namespace {

// A process whose own offset is `centre`, with a little noise inside.
Measurement process(double centre, std::int64_t calls, std::uint64_t seed) {
  Measurement m;
  m.op = "relu";
  m.backend = "simd";
  m.variant = "default";
  m.shape.set("n", std::int64_t{1000});
  m.calls_per_sample = calls;
  m.oracle.passed = true;
  m.cache_verified = true;
  m.quality = Quality::stable;
  m.stop_reason = StopReason::precision;
  stats::Random random(seed);
  std::vector<double> seconds;
  m.raw.push_back({.seconds = 100 * centre, .phase = 0});
  for (int i = 0; i < 100; ++i) {
    seconds.push_back(centre * std::exp(0.001 * stats::normal_quantile(random.uniform())));
    m.raw.push_back({.seconds = static_cast<double>(calls) * seconds.back(), .phase = 2});
  }
  m.samples = 100;
  m.effective_samples = 100;
  m.seconds.median = stats::median(seconds);
  return m;
}

bool is_flagged(const Measurement& m, std::string_view flag) {
  return std::find(m.flags.begin(), m.flags.end(), flag) != m.flags.end();
}

TEST(Merge, TheProcessIsTheSamplingUnit) {
  std::vector<Measurement> processes;
  const double centres[] = {1.00e-6, 1.01e-6, 1.02e-6, 1.03e-6, 1.04e-6, 1.05e-6, 1.06e-6};
  for (std::uint64_t i = 0; i < 7; ++i) processes.push_back(process(centres[i], 1000, i));
  const auto row = merge(processes);
  ASSERT_TRUE(row.ok());
  EXPECT_EQ(row->processes, 7);
  EXPECT_EQ(row->samples, 700);
  EXPECT_EQ(row->raw.size(), 707u);
  EXPECT_NEAR(row->seconds.median, 1.03e-6, 1e-9);
  EXPECT_NEAR(row->seconds.ci_low, 1.00e-6, 1e-9)
      << "seven medians: [min, max], whatever the 700 samples say";
  EXPECT_NEAR(row->seconds.ci_high, 1.06e-6, 1e-9);
  EXPECT_EQ(row->seconds.level, 0.95);
  EXPECT_FALSE(is_flagged(*row, "few_processes"));
  const auto split = std::find_if(row->flags.begin(), row->flags.end(),
                                  [](const std::string& flag) { return flag.starts_with("variance:"); });
  ASSERT_NE(split, row->flags.end());
  EXPECT_NE(split->find("process 100 %"), std::string::npos) << *split;
}

TEST(Merge, FewProcessesArePooledAndFlagged) {
  const auto row = merge({process(1e-6, 1000, 1), process(1.05e-6, 1000, 2)});
  ASSERT_TRUE(row.ok());
  EXPECT_TRUE(is_flagged(*row, "few_processes"));
  EXPECT_GT(row->seconds.median, 0.99e-6);
  EXPECT_LT(row->seconds.median, 1.06e-6);
  EXPECT_LE(row->seconds.ci_low, 1.001e-6) << "two processes that differ make a wide interval";
  EXPECT_GE(row->seconds.ci_high, 1.049e-6);
}

TEST(Merge, BatchesOfOtherSizesAreToldInTheFirstOnesSize) {
  const auto row = merge({process(1e-6, 1000, 1), process(1e-6, 500, 2)});
  ASSERT_TRUE(row.ok());
  EXPECT_EQ(row->calls_per_sample, 1000);
  for (const Sample& sample : row->raw) {
    if (sample.phase == 2) {
      EXPECT_NEAR(sample.seconds, 1e-3, 1e-5);
    }
  }
}

TEST(Merge, TheWorstProcessSpeaksForTheRow) {
  Measurement good = process(1e-6, 1, 1), bad = process(1e-6, 1, 2);
  bad.stop_reason = StopReason::budget;
  bad.stop_detail = "case_time";
  bad.quality = Quality::noisy;
  bad.cache_verified = false;
  bad.flags = {"correlated"};
  bad.oracle.max_error_share = 0.7;
  const auto row = merge({good, bad, good});
  ASSERT_TRUE(row.ok());
  EXPECT_EQ(row->stop_reason, StopReason::budget);
  EXPECT_EQ(row->stop_detail, "case_time");
  EXPECT_EQ(row->quality, Quality::noisy);
  EXPECT_FALSE(row->cache_verified);
  EXPECT_TRUE(is_flagged(*row, "correlated"));
  EXPECT_EQ(row->oracle.max_error_share, 0.7);
}

TEST(Merge, WithoutRawSamplesTheMediansAreUsed) {
  Measurement a = process(1e-6, 1, 1), b = process(2e-6, 1, 2);
  a.raw.clear();
  b.raw.clear();
  const auto row = merge({a, b});
  ASSERT_TRUE(row.ok());
  EXPECT_NEAR(row->seconds.median, 1.5e-6, 1e-8);
  EXPECT_NEAR(row->seconds.level, 0.5, 1e-12);
}

TEST(Merge, DifferentRowsDoNotMix) {
  Measurement other = process(1e-6, 1, 1);
  other.backend = "scalar";
  EXPECT_EQ(merge({process(1e-6, 1, 1), other}).error().code, Code::usage);
  EXPECT_FALSE(merge({}).ok());
}

TEST(Merge, OneProcessIsItself) {
  const auto row = merge({process(1e-6, 10, 1)});
  ASSERT_TRUE(row.ok());
  EXPECT_EQ(row->processes, 1);
  EXPECT_EQ(row->samples, 100);
}

}  // namespace
}  // namespace fulcrum::measure
