// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Faults at random under many threads: every call is answered, rightly, and the counters add up.
#include <thread>

#include "support/virtual_calls.h"

namespace fulcrum::executor {
namespace {

using testing::VirtualCall;
using testing::VirtualFault;
using testing::VirtualMachine;

class FaultsAtOnce : public testing::VirtualTest {};

struct Injected {
  std::atomic<std::int64_t> capacity{0}, refused{0}, busy{0}, failed_late{0};
};

/// Faults by a hash of the launch's number: the same in every run as far as threads allow.
VirtualFault draw(std::int64_t launch, std::string_view op, Injected& injected) {
  const std::uint64_t bits = ops::random_bits(7, static_cast<std::uint64_t>(launch)) % 1000;
  if (bits < 30) return ++injected.capacity, VirtualFault{.launch_code = FULCRUM_OUT_OF_MEMORY};
  if (bits < 32) return ++injected.busy, VirtualFault{.launch_code = FULCRUM_DEVICE_BUSY};
  if (bits < 35 && op == "virtual_gelu")
    return ++injected.refused, VirtualFault{.launch_code = FULCRUM_INVALID_ARGUMENT};
  if (bits < 60) return ++injected.failed_late, VirtualFault{.wait_code = FULCRUM_OUT_OF_MEMORY};
  if (bits < 80) return VirtualFault{.factor = 100};
  if (bits < 81) return VirtualFault{.extra_seconds = 30};
  return {};
}

void call_from_eight_threads(VirtualMachine& machine, const Executor& exec, int calls_each) {
  std::vector<std::thread> threads;
  threads.reserve(8);
  std::atomic<int> answered{0};
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&machine, &exec, &answered, calls_each, t] {
      VirtualCall calls[] = {{"virtual_add", "n=700"},
                             {"virtual_gelu", "n=300"},
                             {"virtual_matmul", "M=9,N=13,K=11"},
                             {"virtual_add", "n=3000"}};
      for (int i = 0; i < calls_each; ++i) {
        const Status status = calls[(i + t) % 4].run(exec);  // checks the result
        EXPECT_TRUE(status.ok()) << status.error().message;
        answered += status.ok() ? 1 : 0;
        machine.advance(0.05);  // the program does something else
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(answered, 8 * calls_each);
}

TEST_F(FaultsAtOnce, TenThousandCallsOfEightThreadsAreAllAnsweredRightly) {
  Injected injected;
  machine_.script = [&injected](std::int64_t launch, std::string_view op) {
    return draw(launch, op, injected);
  };
  const Executor exec = testing::virtual_executor(machine_, on_gpu());
  call_from_eight_threads(machine_, exec, 1250);
  const Counters counters = exec.counters();
  EXPECT_EQ(counters.calls, 10000);
  EXPECT_EQ(counters.on_cpu + counters.on_device, counters.calls);
  EXPECT_GT(counters.on_device, 1000);
  EXPECT_GT(counters.on_cpu, 100);
  const Breaker& breaker = breaker_of(exec);
  EXPECT_EQ(breaker.failures(Failure::capacity), injected.capacity + injected.failed_late);
  EXPECT_EQ(breaker.failures(Failure::configuration), injected.refused);
  EXPECT_EQ(breaker.failures(Failure::busy), injected.busy);
  EXPECT_GT(injected.busy, 0);
  EXPECT_EQ(counters.fallbacks, injected.capacity + injected.failed_late + injected.refused + injected.busy);
  EXPECT_FALSE(breaker.open_for_good());
  EXPECT_EQ(machine_.counts.violations, 0);
  EXPECT_EQ(machine_.live_blocks(), 0);
}

TEST_F(FaultsAtOnce, CallsThatNobodyWaitsForAreAnsweredRightlyToo) {
  Injected injected;
  machine_.script = [&injected](std::int64_t launch, std::string_view op) {
    return draw(launch, op, injected);
  };
  const Executor exec = testing::virtual_executor(machine_, on_gpu());
  for (int round = 0; round < 20; ++round) {
    std::vector<VirtualCall> calls;
    std::vector<Future> futures;
    calls.reserve(25);
    futures.reserve(25);
    for (int i = 0; i < 25; ++i) calls.emplace_back(i % 2 == 0 ? "virtual_add" : "virtual_gelu", "n=400");
    for (VirtualCall& call : calls) futures.push_back(exec.run_async(call.op(), call.args(), {}));
    for (std::size_t i = 0; i < calls.size(); ++i) {
      const Status status = futures[i].get();
      EXPECT_TRUE(status.ok()) << status.error().message;
      EXPECT_TRUE(calls[i].is_right());
    }
    machine_.advance_all(2);
  }
  EXPECT_EQ(exec.counters().calls, 500);
  EXPECT_EQ(machine_.counts.violations, 0);
}

TEST_F(FaultsAtOnce, EightThreadsLoseTheDeviceAndNoResult) {
  machine_.script = [](std::int64_t launch, std::string_view) {
    return VirtualFault{.wait_code = launch == 2000 ? FULCRUM_DEVICE_LOST : FULCRUM_OK};
  };
  const Executor exec = testing::virtual_executor(machine_, on_gpu());
  call_from_eight_threads(machine_, exec, 500);
  EXPECT_TRUE(machine_.lost());
  EXPECT_TRUE(breaker_of(exec).open_for_good());
  EXPECT_EQ(exec.counters().calls, 4000);
  // Those that were inside the driver when it happened cannot be called back: at most one call each.
  EXPECT_LE(machine_.counts.called_after_loss, 8);
  EXPECT_LE(exec.counters().fallbacks, 8);
}

TEST_F(FaultsAtOnce, RandomShortageOfMemoryInsideCallsChangesNoResult) {
  machine_.allocation_script = [](std::int64_t allocation, std::size_t) {
    return ops::random_bits(9, static_cast<std::uint64_t>(allocation)) % 20 == 0 ? FULCRUM_OUT_OF_MEMORY
                                                                                 : FULCRUM_OK;
  };
  const Executor exec = testing::virtual_executor(machine_, on_gpu());
  call_from_eight_threads(machine_, exec, 200);
  EXPECT_EQ(machine_.live_blocks(), 0);
  EXPECT_EQ(machine_.counts.violations, 0);
  EXPECT_EQ(exec.counters().fallbacks, breaker_of(exec).failures(Failure::capacity));
}

TEST_F(FaultsAtOnce, MemoryThatWasWrappedIsWholeWhenItsBufferEndsWhileOthersMakeRoom) {
  constexpr std::int64_t kCount = 4096;
  machine_.memory_bytes = 10 * 4 * kCount;  // less than what eight calls take at once
  const Executor exec = testing::virtual_executor(machine_, on_gpu());
  // All of it is taken by data that nobody uses.
  VirtualCall before("virtual_gelu", "n=4096");
  std::vector<Buffer<float>> idle;
  for (int pair = 0; pair < 5; ++pair) {
    idle.push_back(exec.buffer<float>(before.values(0)).value());
    idle.push_back(exec.buffer<float>(kCount).value());
    const std::vector<Operand> operands = {idle.end()[-2], idle.end()[-1]};
    ASSERT_TRUE(exec.run(before.op(), before.args(), operands).ok());
  }
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&] {
      VirtualCall call("virtual_gelu", "n=4096");
      for (int i = 0; i < 200; ++i) {
        std::vector<float> values(call.values(0).begin(), call.values(0).end()), result(kCount, -1.0F);
        {
          const auto x = exec.wrap(std::span(values));
          auto y = exec.wrap(std::span(result));
          y.stay_on_device();
          const std::vector<Operand> operands = {x, y};
          if (!exec.run(call.op(), call.args(), operands).ok()) ++wrong;
        }
        wrong += std::equal(result.begin(), result.end(), call.expected().begin()) ? 0 : 1;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_GT(exec.counters().evictions, 0);
  for (std::size_t pair = 0; pair < idle.size(); pair += 2) {
    const auto result = idle[pair + 1].read();
    ASSERT_TRUE(result.ok());
    EXPECT_TRUE(std::equal(result->begin(), result->end(), before.expected().begin()));
  }
  idle.clear();
  EXPECT_EQ(machine_.counts.violations, 0);
  EXPECT_EQ(machine_.live_blocks(), 0);
}

}  // namespace
}  // namespace fulcrum::executor
