// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// A device that is lost: it is never called again, by no executor of the process, and what was on it alone is reported.
#include "support/virtual_calls.h"

namespace fulcrum::executor {
namespace {

using testing::VirtualCall;
using testing::VirtualFault;

class LostDevice : public testing::VirtualTest {};

TEST_F(LostDevice, ALostDeviceIsNeverCalledAgain) {
  machine_.script = [](std::int64_t launch, std::string_view) {
    return VirtualFault{.wait_code = launch == 5 ? FULCRUM_DEVICE_LOST : FULCRUM_OK};
  };
  {
    const Executor exec = testing::virtual_executor(machine_, on_gpu());
    VirtualCall call("virtual_gelu", "n=5000");
    for (int i = 0; i < 5; ++i) EXPECT_TRUE(runs_on_device(exec, call));
    for (int i = 0; i < 50; ++i) EXPECT_FALSE(runs_on_device(exec, call));
    auto buffer = exec.buffer<float>(100);
    ASSERT_TRUE(buffer.ok()) << "host memory is still to be had";
    EXPECT_TRUE(exec.counters().breaker.starts_with("open: "));
    EXPECT_EQ(exec.counters().fallbacks, 1);
    EXPECT_EQ(exec.counters().kept_off, 49) << "the policy names the device";
    EXPECT_FALSE(exec.has_device());
    EXPECT_EQ(breaker_of(exec).failures(Failure::sticky), 1);
  }
  EXPECT_TRUE(machine_.lost());
  EXPECT_EQ(machine_.counts.called_after_loss, 0);
}

TEST_F(LostDevice, ALostDeviceIsNotCalibrated) {
  machine_.script = [](std::int64_t, std::string_view) {
    return VirtualFault{.wait_code = FULCRUM_DEVICE_LOST};
  };
  const Executor exec = testing::virtual_executor(machine_, on_gpu());
  VirtualCall call("virtual_gelu", "n=1000");
  EXPECT_FALSE(runs_on_device(exec, call));
  CalibrateConfig config;
  config.budget_seconds = 0.1;
  config.ops = {"virtual_gelu"};
  const Status status = exec.calibrate(config);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code, Code::device_lost);
  EXPECT_FALSE(status.error().hint.empty());
  EXPECT_EQ(machine_.counts.called_after_loss, 0);
  EXPECT_FALSE(runs_on_device(exec, call)) << "the table of before is still there";
}

TEST_F(LostDevice, ADeviceThatIsLostInACalibrationGetsNoCallAfterIt) {
  const Executor exec = testing::virtual_executor(machine_, on_gpu());
  machine_.script = [](std::int64_t, std::string_view) {
    return VirtualFault{.wait_code = FULCRUM_DEVICE_LOST};
  };
  CalibrateConfig config;
  config.budget_seconds = 0.1;
  config.ops = {"virtual_gelu"};
  const Status status = exec.calibrate(config);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code, Code::device_lost);
  EXPECT_TRUE(machine_.lost());
  EXPECT_FALSE(exec.has_device());
  const std::int64_t calls = machine_.counts.calls;
  VirtualCall call("virtual_gelu", "n=1000");
  EXPECT_FALSE(runs_on_device(exec, call));
  EXPECT_EQ(machine_.counts.calls, calls);
}

TEST_F(LostDevice, ADeviceThatIsLostWhileItsExecutorEndsIsNotCalledForItsPlans) {
  VirtualCall call("virtual_matmul", "M=8,N=8,K=8"), last("virtual_matmul", "M=9,N=9,K=9");
  Future future;
  {
    const Executor exec = testing::virtual_executor(machine_, on_gpu());
    machine_.script = [engine = exec.engine().weak_from_this()](std::int64_t launch, std::string_view) {
      if (launch == 0) return VirtualFault{};
      while (!engine.expired()) std::this_thread::yield();
      std::this_thread::sleep_for(std::chrono::milliseconds(20));  // for what the end does first
      return VirtualFault{.launch_code = FULCRUM_DEVICE_LOST};
    };
    EXPECT_TRUE(runs_on_device(exec, call));
    EXPECT_EQ(machine_.counts.plans, 1);
    future = exec.run_async(last.op(), last.args(), {});
  }
  EXPECT_TRUE(future.get().ok());
  EXPECT_TRUE(last.is_right());
  EXPECT_TRUE(machine_.lost());
  EXPECT_EQ(machine_.counts.called_after_loss, 0);
}

TEST_F(LostDevice, ALossIsThatOfEveryExecutorOfTheProcess) {
  machine_.script = [](std::int64_t, std::string_view) {
    return VirtualFault{.wait_code = FULCRUM_DEVICE_LOST};
  };
  VirtualCall call("virtual_gelu", "n=1000");
  const Executor other = testing::virtual_executor(machine_, on_gpu());
  {
    const Executor exec = testing::virtual_executor(machine_, on_gpu());
    EXPECT_FALSE(runs_on_device(exec, call));
  }
  const Executor later = testing::virtual_executor(machine_, on_gpu());
  Policy strict = on_gpu();
  strict.strict = true;
  for (const Executor* exec : {&other, &later}) {
    EXPECT_FALSE(exec->has_device());
    EXPECT_TRUE(exec->counters().breaker.starts_with("open: ")) << exec->counters().breaker;
    auto x = exec->buffer<float>(call.values(0)), y = exec->buffer<float>(1000);
    const std::vector<Operand> operands = {*x, *y};
    EXPECT_TRUE(exec->run(call.op(), call.args(), operands).ok());
    EXPECT_FALSE(runs_on_device(*exec, call));
    EXPECT_EQ(exec->counters().fallbacks, 0) << "the device is not tried";
    EXPECT_EQ(exec->counters().kept_off, 2);
    const Status refused = call.run(exec->with(strict));
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.error().code, Code::device_lost);
  }
  EXPECT_EQ(machine_.counts.called_after_loss, 0);
}

TEST_F(LostDevice, DataThatWasOnTheDeviceAloneIsReportedLost) {
  machine_.script = [](std::int64_t launch, std::string_view) {
    return VirtualFault{.wait_code = launch == 1 ? FULCRUM_DEVICE_LOST : FULCRUM_OK};
  };
  const Executor exec = testing::virtual_executor(machine_, on_gpu());
  VirtualCall call("virtual_gelu", "n=1000");
  auto x = exec.buffer<float>(call.values(0));
  auto y = exec.buffer<float>(1000), z = exec.buffer<float>(1000);
  ASSERT_TRUE(x.ok() && y.ok() && z.ok());
  y->stay_on_device();
  const std::vector<Operand> first = {*x, *y}, second = {*x, *z}, third = {*y, *z};
  ASSERT_TRUE(exec.run(call.op(), call.args(), first).ok());
  ASSERT_TRUE(y->on_device());
  ASSERT_FALSE(y->on_host());
  // The device dies in a call whose inputs are here as well: the CPU answers.
  ASSERT_TRUE(exec.run(call.op(), call.args(), second).ok());
  const auto got = z->read();
  ASSERT_TRUE(got.ok());
  EXPECT_TRUE(std::equal(got->begin(), got->end(), call.expected().begin()));
  // What was there alone is gone, and every way to it says so.
  const Status lost = exec.run(call.op(), call.args(), third);
  ASSERT_FALSE(lost.ok());
  EXPECT_EQ(lost.error().code, Code::data_lost);
  const auto read = y->read();
  ASSERT_FALSE(read.ok());
  EXPECT_EQ(read.error().code, Code::data_lost);
  EXPECT_EQ(exec.counters().data_lost, 1);
  // New data makes it usable again.
  ASSERT_TRUE(y->overwrite().ok());
  EXPECT_TRUE(exec.run(call.op(), call.args(), third).ok());
  EXPECT_EQ(machine_.counts.called_after_loss, 0);
}

}  // namespace
}  // namespace fulcrum::executor
