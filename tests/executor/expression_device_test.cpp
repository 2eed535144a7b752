// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Expressions on a device that is not there: one decision for all of it, each leaf over the link once, the result once,
// and the host's result when the device fails.
#include <fulcrum/executor/expression.h>

#include <cmath>
#include <thread>

#include "support/virtual_calls.h"

namespace fulcrum::executor {
namespace {

class ExpressionOnDevice : public testing::VirtualTest {
 protected:
  static Buffer<float> drawn(const Executor& exec, int tensor, std::int64_t n) {
    std::vector<float> values(static_cast<std::size_t>(n));
    for (std::size_t i = 0; i < values.size(); ++i)
      values[i] = ops::random_uniform(ops::tensor_key(tensor), i, -3, 3);
    return exec.buffer<float>(std::span<const float>(values)).value();
  }
  static void expect_product(const Buffer<float>& got, const Buffer<float>& a, const Buffer<float>& b,
                             const Buffer<float>& c) {
    const auto values = got.read().value(), x = a.read().value(), y = b.read().value(), z = c.read().value();
    for (std::size_t i = 0; i < values.size(); ++i) ASSERT_EQ(values[i], (x[i] + y[i]) * z[i]) << i;
  }
};

TEST_F(ExpressionOnDevice, OneLaunchAndOneTransferEachWay) {
  const Executor exec = testing::virtual_executor(machine_, on_gpu());
  const auto a = drawn(exec, 0, 5000), b = drawn(exec, 1, 5000), c = drawn(exec, 2, 5000);
  const auto result = ((a + b) * c).eval(exec);
  ASSERT_TRUE(result.ok()) << result.error().message;
  EXPECT_EQ(exec.counters().downloads, 0) << "nobody has looked yet";
  expect_product(*result, a, b, c);
  const Counters counters = exec.counters();
  EXPECT_EQ(counters.calls, 1);
  EXPECT_EQ(counters.launches, 1);
  EXPECT_EQ(counters.uploads, 3);
  EXPECT_EQ(counters.downloads, 1);
  EXPECT_EQ(counters.uploaded_bytes, 3 * 5000 * 4.0);
  EXPECT_EQ(counters.downloaded_bytes, 5000 * 4.0);
  EXPECT_EQ(machine_.counts.launches, 1);
  EXPECT_EQ(machine_.counts.violations, 0);
}

TEST_F(ExpressionOnDevice, ALeafThatIsReadTwiceTravelsOnce) {
  const Executor exec = testing::virtual_executor(machine_, on_gpu());
  const auto a = drawn(exec, 0, 1000);
  ASSERT_TRUE((a * sigmoid(a) - max(a, 0.5)).eval(exec).ok());
  EXPECT_EQ(exec.counters().uploads, 1);
  EXPECT_EQ(exec.counters().launches, 1);
}

TEST_F(ExpressionOnDevice, PassesHandTheirResultsOnWithoutTheHost) {
  const Executor exec = testing::virtual_executor(machine_, on_gpu());
  Expression sum = drawn(exec, 0, 1000);
  for (int k = 1; k < 10; ++k) sum = sum + drawn(exec, k, 1000);
  ASSERT_EQ(sum.passes().value(), 2);
  const auto result = sum.eval(exec);
  ASSERT_TRUE(result.ok() && result->read().ok());
  EXPECT_EQ(exec.counters().launches, 2);
  EXPECT_EQ(exec.counters().uploads, 10);
  EXPECT_EQ(exec.counters().downloads, 1);
}

TEST_F(ExpressionOnDevice, TheDecisionFollowsTheLeaves) {
  const Executor exec = testing::virtual_executor(machine_);
  const std::int64_t n = 4'000'000;
  const auto a = drawn(exec, 0, n), b = drawn(exec, 1, n);
  const Expression e = clip(a + 0.5 * b, -1, 1);
  EXPECT_EQ(e.explain(exec)->ways.front().place, Place::host) << "the link is slower than the CPU's memory";
  const Executor there = exec.with(on_gpu());
  auto x = (a + 1).eval(there).value(), y = (b + 1).eval(there).value();
  auto result = exec.buffer<float>(n).value();
  result.stay_on_device();
  const auto launches = exec.counters().launches;
  ASSERT_TRUE(clip(x + 0.5 * y, -1, 1).eval_into(exec, result).ok());
  EXPECT_EQ(exec.counters().launches - launches, 1) << "its leaves are there";
}

TEST_F(ExpressionOnDevice, AFailureOfTheDeviceIsTheHostsResult) {
  machine_.script = [](std::int64_t, std::string_view) {
    return testing::VirtualFault{.launch_code = FULCRUM_DEVICE_ERROR};
  };
  const Executor exec = testing::virtual_executor(machine_, on_gpu());
  const auto a = drawn(exec, 0, 3000), b = drawn(exec, 1, 3000), c = drawn(exec, 2, 3000);
  const auto result = ((a + b) * c).eval(exec);
  ASSERT_TRUE(result.ok()) << result.error().message;
  expect_product(*result, a, b, c);
  EXPECT_EQ(exec.counters().on_device, 0);
  EXPECT_GE(exec.counters().fallbacks, 1);
}

TEST_F(ExpressionOnDevice, ManyThreadsMayEvaluateOneExpression) {
  const Executor exec = testing::virtual_executor(machine_, on_gpu());
  const auto a = drawn(exec, 0, 2000), b = drawn(exec, 1, 2000), c = drawn(exec, 2, 2000);
  const Expression e = (a + b) * c;
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&] {
      for (int k = 0; k < 20; ++k) {
        const auto result = e.eval(exec);
        ASSERT_TRUE(result.ok()) << result.error().message;
        expect_product(*result, a, b, c);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(exec.counters().calls, 160);
  EXPECT_EQ(machine_.counts.violations, 0);
}

}  // namespace
}  // namespace fulcrum::executor
