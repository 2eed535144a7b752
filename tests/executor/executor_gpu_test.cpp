// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// The executor with a real device: every op pinned to it gives what its definition says, on plain memory and in buffers,
// data moves only when it must, and a cap on memory is kept.
#include <fulcrum/executor.h>
#include <gtest/gtest.h>

#include <cstring>
#include <thread>

namespace fulcrum::executor {
namespace {

#define REQUIRE_DEVICE(exec) \
  if (!(exec).has_device()) GTEST_SKIP() << "SKIPPED: no GPU"

Executor make_executor(Policy policy = {}) {
  Options options;
  options.policy = std::move(policy);
  options.load_table = false;
  auto made = Executor::make(options);
  EXPECT_TRUE(made.ok()) << made.error().message;
  return made.value();
}
const Policy kPinned{.strict = true, .backend = "cuda"};

class EveryOpThere : public ::testing::TestWithParam<std::string> {};

TEST_P(EveryOpThere, GivesWhatItsDefinitionSays) {
  const Executor exec = make_executor(kPinned);
  REQUIRE_DEVICE(exec);
  const auto op = ops::find(GetParam());
  ASSERT_TRUE(op.ok());
  std::vector<std::string_view> shapes((*op)->edge_shapes.begin(), (*op)->edge_shapes.end());
  if (!(*op)->default_sizes.empty()) shapes.push_back((*op)->default_sizes.front());
  if (shapes.size() > 4) shapes.erase(shapes.begin(), shapes.end() - 4);
  for (const std::string_view text : shapes) {
    auto problem = ops::Problem::make(**op, parse_shape(text).value());
    ASSERT_TRUE(problem.ok()) << problem.error().message;
    for (int round = 0; round < 3; ++round) {  // plans and blocks of the call before are used again
      problem->reset();
      const Status status = exec.run(**op, problem->args(), {}, problem->shape().dtype);
      ASSERT_TRUE(status.ok()) << text << ": " << status.error().message;
      const Oracle oracle = problem->check();
      EXPECT_TRUE(oracle.passed) << text << ": " << oracle.detail;
    }
  }
}

std::vector<std::string> op_names() {
  std::vector<std::string> names;
  for (const ops::Op* op : ops::all()) {
    if (!op->is_probe()) names.emplace_back(op->name);
  }
  return names;
}
INSTANTIATE_TEST_SUITE_P(Ops, EveryOpThere, ::testing::ValuesIn(op_names()),
                         [](const auto& test) { return test.param; });

TEST(ExecutorThere, ResultsStayAndInputsMoveOnce) {
  const Executor exec = make_executor(kPinned);
  REQUIRE_DEVICE(exec);
  const std::vector<float> ones(100000, 1.0f);
  auto a = exec.buffer<float>(std::span<const float>(ones));
  auto b = exec.buffer<float>(100000);
  ASSERT_TRUE(a.ok());
  ASSERT_TRUE(b.ok());
  for (int i = 0; i < 10; ++i) ASSERT_TRUE(exec.vec_add(*a, *a, *b).ok());
  for (int i = 0; i < 10; ++i) ASSERT_TRUE(exec.vec_add(*b, *a, *b).ok());
  const Counters counters = exec.counters();
  EXPECT_EQ(counters.uploads, 1);
  EXPECT_EQ(counters.downloads, 0);
  EXPECT_EQ(counters.launches, 20);
  EXPECT_TRUE(b->on_device());
  EXPECT_FALSE(b->on_host());
  const auto got = b->read();
  ASSERT_TRUE(got.ok());
  for (const float value : *got) ASSERT_EQ(value, 12.0f);
  EXPECT_EQ(exec.counters().downloads, 1);
  EXPECT_TRUE(b->on_host());
}

TEST(ExecutorThere, CallsInPlaceOnPlainMemoryAreRight) {
  const Executor exec = make_executor(kPinned);
  REQUIRE_DEVICE(exec);
  std::vector<float> x(5000, 2.0f);
  const std::vector<float> y(5000, 3.0f);
  ASSERT_TRUE(exec.vec_add(x, y, x).ok());
  for (const float value : x) ASSERT_EQ(value, 5.0f);
}

TEST(ExecutorThere, ACallBeyondTheCapGoesInPieces) {
  Policy policy{.backend = "cuda", .device_bytes = 8 << 20};
  const Executor exec = make_executor(policy);
  REQUIRE_DEVICE(exec);
  auto problem = ops::Problem::make(*ops::find("gelu").value(), parse_shape("n=4000000").value());
  ASSERT_TRUE(problem.ok());
  ASSERT_TRUE(exec.run("gelu", problem->args()).ok());
  EXPECT_TRUE(problem->check().passed);
  EXPECT_EQ(exec.counters().splits, 1);
  EXPECT_EQ(exec.counters().on_device, 1);
}

TEST(ExecutorThere, ManyThreadsShareOneDevice) {
  const Executor exec = make_executor(kPinned);
  REQUIRE_DEVICE(exec);
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&exec, t] {
      const auto* op = ops::find(t % 2 ? "softmax" : "dot").value();
      auto problem = ops::Problem::make(*op, parse_shape(t % 2 ? "rows=64,n=333" : "n=70001").value());
      for (int i = 0; i < 50; ++i) {
        problem->reset();
        ASSERT_TRUE(exec.run(*op, problem->args(), {}).ok());
        ASSERT_TRUE(problem->check().passed);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(exec.counters().on_device, 400);
}

TEST(ExecutorThere, ACalibratedTableKeepsAStreamOnTheHostUnlessItsDataIsThere) {
  const Executor exec = make_executor();
  REQUIRE_DEVICE(exec);
  CalibrateConfig config;
  config.ops = {"vec_add"};
  config.budget_seconds = 3;
  ASSERT_TRUE(exec.calibrate(config).ok());
  const Shape shape = parse_shape("n=1000000").value();
  const Status here = exec.expect_place("vec_add", shape, Place::host, Place::host);
  EXPECT_TRUE(here.ok()) << here.error().hint;
  const Status there = exec.expect_place("vec_add", shape, Place::device, Place::device);
  EXPECT_TRUE(there.ok()) << there.error().hint;
}

TEST(ExecutorThere, AShadowedCallIsComputedTwiceAndAgrees) {
  Policy policy = kPinned;
  policy.shadow_share = 1;
  const Executor exec = make_executor(policy);
  REQUIRE_DEVICE(exec);
  auto problem = ops::Problem::make(*ops::find("gelu").value(), parse_shape("n=100000").value());
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(exec.run("gelu", problem->args()).ok());
  EXPECT_EQ(exec.counters().mismatches, 0);
}

}  // namespace
}  // namespace fulcrum::executor
