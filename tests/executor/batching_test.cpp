// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Asynchronous and batched calls through a whole executor with a virtual device: what is launched, what comes back when
// the device fails, and how an executor ends.
#include <algorithm>

#include "executor/batch_queue.h"
#include "support/virtual_calls.h"

namespace fulcrum::executor {
namespace {

/// Many additions, each on memory of its own.
struct Additions {
  std::vector<std::vector<float>> a, b, out;
  std::vector<Future> futures;
  explicit Additions(std::size_t calls, std::size_t n = 1000) {
    for (std::size_t i = 0; i < calls; ++i) {
      a.emplace_back(n, static_cast<float>(i));
      b.emplace_back(n, 0.5F);
      out.emplace_back(n, -1.0F);
    }
  }
  void start(const Executor& exec) {
    const auto later = exec.async();
    for (std::size_t i = 0; i < a.size(); ++i) futures.push_back(later.vec_add(a[i], b[i], out[i]));
  }
  std::size_t right() const {
    std::size_t count = 0;
    for (std::size_t i = 0; i < a.size(); ++i) {
      if (!futures[i].get().ok()) continue;
      const float sum = static_cast<float>(i) + 0.5F;
      count += std::all_of(out[i].begin(), out[i].end(), [sum](float value) { return value == sum; }) ? 1 : 0;
    }
    return count;
  }
};

class Batching : public testing::VirtualTest {
 protected:
  Executor patient(bool strict = false) {
    Policy policy = on_gpu();
    policy.batch_latency_seconds = 2e-3;
    policy.strict = strict;
    return testing::virtual_executor(machine_, policy);
  }
};

TEST_F(Batching, AHundredSmallCallsAreAFewLaunches) {
  const Executor exec = patient();
  Additions additions(100);
  additions.start(exec);
  exec.async().flush();
  EXPECT_EQ(additions.right(), 100u);
  EXPECT_LE(machine_.counts.launches, 4);
  EXPECT_EQ(exec.counters().batched, 100);
  EXPECT_EQ(machine_.counts.violations, 0);
}

TEST_F(Batching, IsOffByDefault) {
  const Executor exec = testing::virtual_executor(machine_, on_gpu());
  Additions additions(20);
  additions.start(exec);
  EXPECT_EQ(additions.right(), 20u);
  EXPECT_EQ(machine_.counts.launches, 20);
  EXPECT_EQ(exec.counters().batched, 0);
}

TEST_F(Batching, CallsThatGainNothingTogetherDoNotWait) {
  Policy policy;
  policy.batch_latency_seconds = 2e-3;
  const Executor exec = testing::virtual_executor(machine_, policy);
  Additions additions(20, 8);
  additions.start(exec);
  for (const Future& future : additions.futures)
    EXPECT_TRUE(future.ready()) << "done before a thread could begin";
  EXPECT_EQ(additions.right(), 20u);
  EXPECT_EQ(exec.counters().batched, 0);
}

TEST_F(Batching, ADeviceThatIsLostInABatchCostsNoResult) {
  machine_.script = [](std::int64_t launch, std::string_view) {
    return testing::VirtualFault{.launch_code = launch == 0 ? FULCRUM_DEVICE_LOST : FULCRUM_OK};
  };
  const Executor exec = patient();
  Additions additions(40);
  additions.start(exec);
  exec.async().flush();
  EXPECT_EQ(additions.right(), 40u);
  EXPECT_FALSE(exec.has_device());
  EXPECT_EQ(machine_.counts.called_after_loss, 0);
}

TEST_F(Batching, AStrictPolicyDeliversTheErrorToEveryCaller) {
  machine_.script = [](std::int64_t, std::string_view) {
    return testing::VirtualFault{.launch_code = FULCRUM_DEVICE_ERROR};
  };
  const Executor exec = patient(true);
  Additions additions(10);
  additions.start(exec);
  exec.async().flush();
  for (std::size_t i = 0; i < 10; ++i) {
    EXPECT_FALSE(additions.futures[i].get().ok());
    EXPECT_EQ(additions.out[i][0], -1.0F) << "outputs of a call that failed stay as they were";
  }
}

TEST_F(Batching, CallsOnBuffersComeHomeToThem) {
  const Executor exec = patient();
  std::vector<Buffer<float>> in, out;
  std::vector<Future> futures;
  for (int i = 0; i < 12; ++i) {
    in.push_back(
        exec.buffer<float>(std::span<const float>(std::vector<float>(500, static_cast<float>(i - 6))))
            .value());
    out.push_back(exec.buffer<float>(500).value());
  }
  const auto later = exec.async();
  for (std::size_t i = 0; i < in.size(); ++i) futures.push_back(later.relu(in[i], out[i]));
  later.flush();
  for (std::size_t i = 0; i < in.size(); ++i) {
    ASSERT_TRUE(futures[i].get().ok());
    EXPECT_EQ(out[i].read().value()[499], std::max(0.0F, static_cast<float>(i) - 6)) << i;
  }
  EXPECT_EQ(exec.counters().batched, 12);
}

TEST_F(Batching, AnExecutorThatEndsAnswersEverybodyFirst) {
  Additions waiting(10), running(10);
  {
    const Executor exec = patient();
    waiting.start(exec);
    running.start(exec.with(on_gpu()));
  }
  for (const Future& future : waiting.futures) EXPECT_TRUE(future.ready());
  EXPECT_EQ(waiting.right(), 10u);
  EXPECT_EQ(running.right(), 10u);
}

TEST_F(Batching, AsynchronousCallsRefuseWhatSynchronousOnesRefuse) {
  const Executor exec = patient();
  std::vector<float> x(10), y(11);
  const Future wrong = exec.async().sigmoid(x, y);
  EXPECT_TRUE(wrong.ready());
  EXPECT_EQ(wrong.get().error().message, exec.sigmoid(x, y).error().message);
}

TEST_F(Batching, NoGuardDecidesForAPinnedBackend) {
  const Executor exec = testing::virtual_executor(machine_, on_gpu());
  std::vector<float> x(8, -1.0F), y(8);
  EXPECT_TRUE(exec.relu(x, y).ok());
  EXPECT_EQ(machine_.counts.launches, 1);
}

TEST_F(Batching, IsPricedAsWhatItMovesFrom) {
  machine_.costs.pageable_rate = 1e9;  // fifty times slower than the page-locked memory of a batch
  machine_.costs.cpu_rate = 2e9;
  const Executor exec =
      testing::virtual_executor(machine_, {.explore_credit = 0, .batch_latency_seconds = 2e-3});
  for (int round = 0; round < 20; ++round) {
    Additions additions(64, 16384);
    additions.start(exec);
    exec.async().flush();
    ASSERT_EQ(additions.right(), 64u);
  }
  EXPECT_EQ(exec.counters().batched, 20 * 64);
  EXPECT_GT(exec.counters().on_device, 0);
  // What a batch took says nothing against what was predicted of calls on other memory.
  std::int64_t calls = 0;
  for (const char* shape : {"n=65536", "n=131072", "n=262144", "n=524288", "n=1048576"}) {
    const auto why = exec.explain("vec_add", parse_shape(shape).value());
    for (const Way& way : why->ways) {
      calls += way.place == Place::device ? way.calls : 0;
      EXPECT_NEAR(way.correction, 1, 0.1) << why->text();
    }
  }
  EXPECT_GT(calls, 0);
}

}  // namespace
}  // namespace fulcrum::executor
