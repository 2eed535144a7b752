// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Small calls put together on a real device: the results are those of single calls, with a launch or two in place of a
// hundred.
#include <fulcrum/executor.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace fulcrum::executor {
namespace {

TEST(BatchingGpu, AHundredSmallCallsAreAFewLaunchesWithTheSameResults) {
  const auto made =
      Executor::make({.policy = {.strict = true, .backend = "cuda", .batch_latency_seconds = 5e-3}});
  ASSERT_TRUE(made.ok()) << made.error().message;
  if (!made->has_device()) GTEST_SKIP() << "SKIPPED: no GPU";
  const Executor single = made->with({.strict = true, .backend = "cuda"});
  std::vector<std::vector<float>> x, batched, alone;
  for (std::size_t i = 0; i < 100; ++i) {
    x.emplace_back(1000 + i % 7);
    for (std::size_t k = 0; k < x[i].size(); ++k) x[i][k] = ops::random_uniform(i, k, -4, 4);
    batched.emplace_back(x[i].size());
    alone.emplace_back(x[i].size());
  }
  for (std::size_t i = 0; i < x.size(); ++i) ASSERT_TRUE(single.gelu(x[i], alone[i]).ok());
  const std::int64_t before = made->counters().launches;
  const auto later = made->async();
  std::vector<Future> futures;
  for (std::size_t i = 0; i < x.size(); ++i) futures.push_back(later.gelu(x[i], batched[i]));
  later.flush();
  for (std::size_t i = 0; i < x.size(); ++i) {
    ASSERT_TRUE(futures[i].get().ok()) << futures[i].get().error().message;
    EXPECT_TRUE(std::equal(alone[i].begin(), alone[i].end(), batched[i].begin())) << i;
  }
  EXPECT_LE(made->counters().launches - before, 10);
  EXPECT_EQ(made->counters().batched, 100);
}

TEST(BatchingGpu, AsynchronousCallsOfManyThreadsAllComeBackRight) {
  const auto made = Executor::make({.policy = {.strict = true, .backend = "cuda"}});
  ASSERT_TRUE(made.ok()) << made.error().message;
  if (!made->has_device()) GTEST_SKIP() << "SKIPPED: no GPU";
  std::vector<std::vector<float>> x(64, std::vector<float>(5000)), y = x;
  std::vector<Future> futures;
  for (std::size_t i = 0; i < x.size(); ++i) {
    std::fill(x[i].begin(), x[i].end(), static_cast<float>(i) - 32);
    futures.push_back(made->async().relu(x[i], y[i]));
  }
  for (std::size_t i = 0; i < x.size(); ++i) {
    ASSERT_TRUE(futures[i].get().ok());
    EXPECT_EQ(y[i][4999], std::max(0.0F, static_cast<float>(i) - 32));
  }
}

}  // namespace
}  // namespace fulcrum::executor
