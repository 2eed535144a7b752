// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// What guards against failures on a real device does not fail by itself: shadows agree, memory comes back, a slow start
// is forgotten.
#include <fulcrum/executor.h>
#include <gtest/gtest.h>

#include "executor/engine.h"

namespace fulcrum::executor {
namespace {

std::optional<Executor> on_device(Policy policy) {
  policy.backend = "cuda";
  Options options;
  options.policy = std::move(policy);
  options.load_table = false;
  auto made = Executor::make(options);
  EXPECT_TRUE(made.ok()) << made.error().message;
  if (!made.ok() || !made->has_device()) return {};
  return std::move(made).value();
}

class EveryOpShadowed : public ::testing::TestWithParam<std::string> {};

TEST_P(EveryOpShadowed, AgreesWithTheCpu) {
  const auto exec = on_device({.precisions = {"fp32", "tf32", "fp16", "bf16"}, .shadow_share = 1});
  if (!exec) GTEST_SKIP() << "SKIPPED: no GPU";
  const ops::Op& op = *ops::find(GetParam()).value();
  if (op.default_sizes.empty()) return;
  auto problem = ops::Problem::make(op, parse_shape(op.default_sizes.front()).value());
  ASSERT_TRUE(problem.ok()) << problem.error().message;
  std::vector<std::string> lines;
  set_log_sink([&lines](LogLevel, std::string_view line) { lines.emplace_back(line); });
  for (int round = 0; round < 4; ++round) {
    problem->reset();
    const Status status = exec->run(op, problem->args(), {}, problem->shape().dtype);
    EXPECT_TRUE(status.ok()) << status.error().message;
  }
  set_log_sink({});
  EXPECT_EQ(exec->counters().mismatches, 0) << (lines.empty() ? "" : lines.front());
  EXPECT_EQ(exec->counters().fallbacks, 0) << (lines.empty() ? "" : lines.front());
}

std::vector<std::string> shadowed_op_names() {
  std::vector<std::string> names;
  for (const ops::Op* op : ops::all()) {
    if (!op->is_probe()) names.emplace_back(op->name);
  }
  return names;
}
INSTANTIATE_TEST_SUITE_P(Ops, EveryOpShadowed, ::testing::ValuesIn(shadowed_op_names()),
                         [](const auto& test) { return test.param; });

TEST(FaultsThere, MemoryComesBackAndNothingNewIsMade) {
  const auto exec = on_device({});
  if (!exec) GTEST_SKIP() << "SKIPPED: no GPU";
  auto problem = ops::Problem::make(*ops::find("vec_add").value(), parse_shape("n=1000").value());
  ASSERT_TRUE(problem.ok());
  for (int i = 0; i < 2000; ++i) ASSERT_TRUE(exec->run("vec_add", problem->args()).ok());
  EXPECT_EQ(exec->counters().on_device, 2000);
  EXPECT_EQ(exec->engine().device()->in_use_bytes, 0);
  EXPECT_TRUE(problem->check().passed);
}

TEST(FaultsThere, ABufferThatDoesNotFitLeavesTheCallToTheCpu) {
  const auto exec = on_device({.device_bytes = 1 << 20});
  if (!exec) GTEST_SKIP() << "SKIPPED: no GPU";
  auto x = exec->buffer<float>(1 << 20), y = exec->buffer<float>(1 << 20);
  ASSERT_TRUE(x.ok() && y.ok());
  auto values = x->overwrite();
  ASSERT_TRUE(values.ok());
  std::fill(values->begin(), values->end(), -3.0F);
  ASSERT_TRUE(exec->relu(*x, *y).ok());
  EXPECT_EQ(exec->counters().on_cpu, 1);
  EXPECT_EQ(exec->counters().fallbacks, 1);
  EXPECT_EQ(exec->counters().breaker, "closed");
  const auto got = y->read();
  ASSERT_TRUE(got.ok());
  EXPECT_EQ(*std::max_element(got->begin(), got->end()), 0.0F);
}

}  // namespace
}  // namespace fulcrum::executor
