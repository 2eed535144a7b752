// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// A device that gets slower, recovers, starts slowly or was priced wrongly: the executor leaves it and finds it again,
// and what that costs stays within the credit. All times are the virtual machine's.
#include "support/virtual_calls.h"

namespace fulcrum::executor {
namespace {

using testing::VirtualCall;
using testing::VirtualFault;

class Drift : public testing::VirtualTest {
 protected:
  /// Little arithmetic and long ways: the device takes about 100 us, moves included, and the CPU 180 us.
  Drift() {
    machine_.costs.cpu_call_seconds = kHere;
    machine_.costs.copy_seconds = 47e-6;
  }
  static constexpr double kHere = 180e-6, kThere = 100e-6;
  static constexpr const char* kShape = "n=100";
  VirtualCall call_{"virtual_gelu", kShape};

  struct Run {
    int on_device = 0;
    double seconds = 0;
  };
  Run run(const Executor& exec, int calls) {
    Run result;
    const double begin = machine_.now();
    for (int i = 0; i < calls; ++i) result.on_device += on_device_unchecked(exec) ? 1 : 0;
    result.seconds = machine_.now() - begin;
    return result;
  }
  bool on_device_unchecked(const Executor& exec) {
    const std::int64_t before = exec.counters().on_device;
    EXPECT_TRUE(exec.run(call_.op(), call_.args(), {}).ok());
    return exec.counters().on_device > before;
  }
};

TEST_F(Drift, TheVirtualMachineIsAsItSays) {
  const Executor exec = testing::virtual_executor(machine_);
  const Run here = run(exec.with({.backend = "virtualcpu"}), 10), there = run(exec.with(on_gpu()), 10);
  EXPECT_EQ(here.on_device, 0);
  EXPECT_EQ(there.on_device, 10);
  EXPECT_NEAR(here.seconds / 10, kHere, 1e-6);
  EXPECT_NEAR(there.seconds / 10, kThere, 3e-6);
}

TEST_F(Drift, ADeviceThatIsFasterAsPricedGetsAllCalls) {
  const Executor exec = testing::virtual_executor(machine_);
  EXPECT_GE(run(exec, 200).on_device, 198) << "but for exploration";
}

TEST_F(Drift, ADeviceThreeTimesSlowerIsLeftWithinThirtyTwoCallsAndFoundAgain) {
  const Executor exec = testing::virtual_executor(machine_);
  run(exec, 300);

  machine_.slowdown = 3;
  const Run noticing = run(exec, 32);
  const Run away = run(exec, 3000);
  EXPECT_LT(noticing.on_device, 16);
  EXPECT_LE(noticing.seconds, 32 * kHere + 16 * (3 * kThere - kHere));
  const double one_trial = 3 * kThere - kHere;
  EXPECT_LE(away.seconds, 1.01 * 3000 * kHere + 0.01 * 332 * kHere + one_trial)
      << "trials cost at most the credit, that of before included, and the last of them";

  machine_.slowdown = 1;
  int until_back = 0;
  while (until_back < 3000) {
    const Run block = run(exec, 20);
    until_back += 20;
    if (block.on_device >= 19) break;
  }
  EXPECT_LT(until_back, 3000);
  EXPECT_GE(run(exec, 200).on_device, 196);
  EXPECT_LE(exec.counters().explore_seconds,
            0.01 * (exec.counters().cpu_seconds + exec.counters().device_seconds) + one_trial);
}

TEST_F(Drift, ADeviceThatHungForAWhileIsFoundAgain) {
  const Executor exec = testing::virtual_executor(machine_);
  run(exec, 300);
  machine_.slowdown = 20;
  run(exec, 500);
  machine_.slowdown = 1;
  int until_back = 0;
  for (; until_back < 40000 && run(exec, 20).on_device < 19; until_back += 20) {
  }
  EXPECT_LT(until_back, 40000);
}

TEST_F(Drift, FirstCallsFourHundredTimesTooSlowHaveNoLastingEffect) {
  machine_.script = [](std::int64_t launch, std::string_view) {
    return VirtualFault{.extra_seconds = launch < 3 ? 400 * kThere : 0};
  };
  const Executor exec = testing::virtual_executor(machine_);
  run(exec, 13);
  EXPECT_GE(run(exec, 100).on_device, 98);
}

TEST_F(Drift, LoneSpikesChangeNothing) {
  machine_.script = [](std::int64_t launch, std::string_view) {
    return VirtualFault{.extra_seconds = launch % 24 == 23 ? 5 * kThere : 0};
  };
  const Executor exec = testing::virtual_executor(machine_);
  run(exec, 50);
  EXPECT_GE(run(exec, 300).on_device, 294);
}

TEST_F(Drift, AWronglyPricedDeviceIsTriedWithinTheCredit) {
  // The table thinks that the device takes 220 us; it takes 100.
  testing::VirtualCosts truth = machine_.costs;
  machine_.costs.kernel_seconds += 120e-6;
  const Executor exec = testing::virtual_executor(machine_);
  machine_.costs = truth;
  EXPECT_LT(run(exec, 10).on_device, 3);
  run(exec, 3000);
  EXPECT_GE(run(exec, 200).on_device, 190);
}

TEST_F(Drift, NothingIsTriedWithoutCreditAndNothingLearnedWhenFrozen) {
  Policy no_credit;
  no_credit.explore_credit = 0;
  testing::VirtualCosts truth = machine_.costs;
  machine_.costs.kernel_seconds += 120e-6;
  const Executor exec = testing::virtual_executor(machine_, no_credit);
  machine_.costs = truth;
  EXPECT_EQ(run(exec, 3000).on_device, 0);

  Policy frozen;
  frozen.frozen = true;
  const Executor still = testing::virtual_executor(machine_, frozen);
  machine_.slowdown = 10;
  EXPECT_EQ(run(still, 300).on_device, 300) << "the table alone decides";
}

TEST_F(Drift, TimeOnTheDeviceIsNeverBookedAsTimeOfTheCpu) {
  const Executor exec = testing::virtual_executor(machine_);
  const Run there = run(exec, 50);
  ASSERT_EQ(there.on_device, 50);
  EXPECT_EQ(exec.counters().cpu_seconds, 0);
  EXPECT_NEAR(exec.counters().device_seconds, there.seconds, 1e-6);
  const auto why = exec.explain("virtual_gelu", parse_shape(kShape).value());
  ASSERT_TRUE(why.ok());
  for (const Way& way : why->ways) {
    if (way.place != Place::host) continue;
    EXPECT_EQ(way.calls, 0) << way.name;
    EXPECT_EQ(way.correction, 1) << way.name;
  }
}

TEST_F(Drift, ACalibrationForgetsHowFarOffTheTableOfBeforeWas) {
  const Executor exec = testing::virtual_executor(machine_);
  machine_.slowdown = 1.5;  // still the faster way
  run(exec, 100);
  const auto there = [&] {
    const auto why = exec.explain("virtual_gelu", parse_shape(kShape).value());
    EXPECT_EQ(why->ways.front().place, Place::device) << why->text();
    return why->ways.front();
  };
  EXPECT_GT(there().correction, 1.3);
  EXPECT_GT(there().calls, 50);
  const double explored = exec.counters().explore_seconds;
  CalibrateConfig config;
  config.budget_seconds = 0.1;
  config.ops = {"virtual_gelu"};
  ASSERT_TRUE(exec.calibrate(config).ok());
  EXPECT_EQ(there().correction, 1) << "the table knows how slow it is";
  EXPECT_EQ(there().calls, 0);
  EXPECT_EQ(exec.counters().explore_seconds, explored) << "the credit is what it was";
}

}  // namespace
}  // namespace fulcrum::executor
