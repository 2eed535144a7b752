// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Memory and streams after the first calls: nothing new is made, everything taken is given back.
#include <thread>

#include "support/virtual_calls.h"

namespace fulcrum::executor {
namespace {

using testing::VirtualCall;

class Pool : public testing::VirtualTest {};

TEST_F(Pool, AHundredThousandCallsAfterTheFirstOnesAllocateNothingNew) {
  const Executor exec = testing::virtual_executor(machine_, on_gpu());
  VirtualCall add("virtual_add", "n=64"), gelu("virtual_gelu", "n=200");
  const auto call_all = [&](int times) {
    for (int i = 0; i < times; ++i) {
      ASSERT_TRUE(exec.run(add.op(), add.args(), {}).ok());
      ASSERT_TRUE(exec.run(gelu.op(), gelu.args(), {}).ok());
    }
  };
  call_all(10);
  const std::int64_t device = machine_.counts.fresh_allocations, pinned = machine_.counts.fresh_pinned,
                     streams = machine_.counts.streams;
  call_all(50'000);
  EXPECT_EQ(machine_.counts.fresh_allocations, device);
  EXPECT_EQ(machine_.counts.fresh_pinned, pinned);
  EXPECT_EQ(machine_.counts.streams, streams);
  EXPECT_EQ(machine_.live_blocks(), 0);
  EXPECT_EQ(exec.engine().device()->in_use_bytes, 0);
  EXPECT_EQ(machine_.counts.violations, 0);
  EXPECT_TRUE(add.is_right());
  EXPECT_TRUE(gelu.is_right());
}

TEST_F(Pool, ThreadsShareStreams) {
  const Executor exec = testing::virtual_executor(machine_, on_gpu());
  for (int round = 0; round < 20; ++round) {
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&exec] {
        VirtualCall call("virtual_gelu", "n=100");
        for (int i = 0; i < 10; ++i) EXPECT_TRUE(call.run(exec).ok());
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
  EXPECT_LE(machine_.counts.streams, 4);
}

TEST_F(Pool, BuffersGiveTheirDeviceMemoryBack) {
  const Executor exec = testing::virtual_executor(machine_, on_gpu());
  VirtualCall call("virtual_gelu", "n=1000");
  for (int i = 0; i < 50; ++i) {
    auto x = exec.buffer<float>(call.values(0));
    auto y = exec.buffer<float>(1000);
    ASSERT_TRUE(x.ok() && y.ok());
    const std::vector<Operand> operands = {*x, *y};
    ASSERT_TRUE(exec.run(call.op(), call.args(), operands).ok());
  }
  EXPECT_EQ(machine_.live_blocks(), 0);
  EXPECT_EQ(exec.engine().device()->in_use_bytes, 0);
}

TEST_F(Pool, TheCapOfAPolicyIsKept) {
  Policy policy = on_gpu();
  policy.device_bytes = 1 << 20;
  const Executor exec = testing::virtual_executor(machine_, policy);
  VirtualCall small("virtual_gelu", "n=10000"), large("virtual_gelu", "n=1000000");
  EXPECT_TRUE(runs_on_device(exec, small));
  EXPECT_TRUE(large.run(exec).ok());
  EXPECT_GE(exec.counters().fallbacks, 1);
}

TEST_F(Pool, NoCallIsAnsweredBeforeItsWorkIsDone) {
  // Work on a stream happens at the wait: a result that was read before would be the poison of before.
  const Executor exec = testing::virtual_executor(machine_, on_gpu());
  VirtualCall call("virtual_gelu", "n=500");
  auto x = exec.buffer<float>(call.values(0));
  auto y = exec.buffer<float>(500), z = exec.buffer<float>(500);
  const std::vector<Operand> first = {*x, *y}, second = {*x, *z};
  for (int i = 0; i < 5; ++i) {
    ASSERT_TRUE(exec.run(call.op(), call.args(), first).ok());
    ASSERT_TRUE(exec.run(call.op(), call.args(), second).ok());
    const auto got = y->read();
    ASSERT_TRUE(got.ok());
    ASSERT_TRUE(std::equal(got->begin(), got->end(), call.expected().begin()));
  }
}

}  // namespace
}  // namespace fulcrum::executor
