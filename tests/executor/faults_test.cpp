// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// A device that fails in every way but being lost (lost_device_test.cpp): results stay right, inputs stay as they were, and
// counters and breaker say what happened. Many threads at once are in faults_at_once_test.cpp.
#include <thread>

#include "support/no_memory.h"
#include "support/virtual_calls.h"

namespace fulcrum::executor {
namespace {

using testing::VirtualCall;
using testing::VirtualFault;

class Faults : public testing::VirtualTest {};

TEST_F(Faults, ACallOnTheDeviceGivesTheRightResult) {
  const Executor exec = testing::virtual_executor(machine_, on_gpu());
  for (const char* op : {"virtual_add", "virtual_gelu"}) {
    VirtualCall call(op, "n=1000");
    EXPECT_TRUE(runs_on_device(exec, call));
  }
  VirtualCall matmul("virtual_matmul", "M=17,N=23,K=19");
  EXPECT_TRUE(runs_on_device(exec, matmul));
  EXPECT_EQ(machine_.counts.violations, 0);
  EXPECT_EQ(exec.counters().launches, 3);
  EXPECT_EQ(exec.counters().downloads, 3);
}

TEST_F(Faults, MemoryOfATenthOfTheNeedIsEnough) {
  machine_.memory_bytes = 12 * (std::int64_t{1} << 22) / 10;
  const Executor exec = testing::virtual_executor(machine_, on_gpu());
  VirtualCall call("virtual_add", "n=4194304");
  EXPECT_TRUE(call.run(exec).ok());
  const Counters counters = exec.counters();
  EXPECT_EQ(counters.calls, 1);
  EXPECT_EQ(counters.fallbacks, 1);
  EXPECT_EQ(counters.splits, 1);
  EXPECT_EQ(counters.on_device, 1);
  EXPECT_EQ(breaker_of(exec).failures(Failure::capacity), 1);
  EXPECT_EQ(counters.breaker, "closed");
  EXPECT_EQ(machine_.live_blocks(), 0) << "what a call took it gave back";
}

TEST_F(Faults, CallsInPiecesAreTimeOfTheDevice) {
  machine_.memory_bytes = 12 * (std::int64_t{1} << 22) / 10;
  const Executor exec = testing::virtual_executor(machine_, on_gpu());
  VirtualCall call("virtual_add", "n=4194304");
  const double begin = machine_.now();
  EXPECT_TRUE(call.run(exec).ok());
  EXPECT_EQ(exec.counters().splits, 1);
  EXPECT_GT(exec.counters().device_seconds, 0.5 * (machine_.now() - begin));
  EXPECT_EQ(exec.counters().cpu_seconds, 0);
}

TEST_F(Faults, AKernelOfTheCpuThatCannotDoACallLeavesItToOthers) {
  machine_.cpu_script = [](std::string_view) { return FULCRUM_UNSUPPORTED; };
  const Executor exec = testing::virtual_executor(machine_);
  VirtualCall call("virtual_add", "n=1000");
  EXPECT_TRUE(runs_on_device(exec, call)) << "of a size that belongs on the CPU";
  EXPECT_EQ(exec.counters().fallbacks, 1);
  const auto why = exec.explain("virtual_add", parse_shape("n=1000").value());
  EXPECT_NE(why->text().find("fall-backs of virtual_add: 1, the last one: configuration"), std::string::npos)
      << why->text();
  Policy strict;
  strict.strict = true;
  EXPECT_EQ(call.run(exec.with(strict)).error().code, Code::unsupported);
  // A result over an input: what the first kernel may have written is nobody's input any more.
  call.reset();
  Args in_place = call.args();
  in_place.ptr[3] = in_place.ptr[0];
  EXPECT_EQ(exec.run(call.op(), in_place, {}).error().code, Code::unsupported);
  machine_.cpu_script = [](std::string_view) { return FULCRUM_INVALID_ARGUMENT; };
  EXPECT_FALSE(call.run(exec).ok()) << "another kernel would say the same";
  machine_.cpu_script = [](std::string_view) { return FULCRUM_UNSUPPORTED; };
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(runs_on_device(exec, call));
  EXPECT_LT(exec.counters().fallbacks, 30) << "it is not asked first for ever";
}

TEST_F(Faults, BuffersThatNoCallUsesMakeRoomForOneThatNeedsIt) {
  constexpr std::int64_t kCount = 1 << 20;
  machine_.memory_bytes = 4 * 4 * kCount + (1 << 16);  // four buffers
  const Executor exec = testing::virtual_executor(machine_, on_gpu());
  VirtualCall call("virtual_gelu", "n=1048576");
  const auto buffer = [&] { return exec.buffer<float>(kCount).value(); };
  auto x = buffer(), first = buffer(), second = buffer(), third = buffer(), fourth = buffer();
  const auto values = x.overwrite().value();
  std::copy_n(call.values(0).begin(), kCount, values.begin());
  for (auto* y : {&first, &second, &third}) {
    const std::vector<Operand> operands = {x, *y};
    ASSERT_TRUE(exec.run(call.op(), call.args(), operands).ok());
    EXPECT_TRUE(y->on_device());
  }
  const std::vector<Operand> operands = {x, fourth};
  ASSERT_TRUE(exec.run(call.op(), call.args(), operands).ok());
  const Counters counters = exec.counters();
  EXPECT_EQ(counters.on_device, 4);
  EXPECT_EQ(counters.fallbacks, 0) << "making room is no failure";
  EXPECT_EQ(counters.evictions, 1);
  EXPECT_FALSE(first.on_device()) << "the one that was used longest ago";
  EXPECT_TRUE(x.on_device()) << "not one that the call itself needs";
  EXPECT_TRUE(second.on_device() && third.on_device() && fourth.on_device());
  for (auto* y : {&first, &second, &third, &fourth}) {
    const auto result = y->read().value();
    EXPECT_TRUE(std::equal(result.begin(), result.end(), call.expected().begin()));
  }
  EXPECT_EQ(machine_.counts.violations, 0);
}

TEST_F(Faults, WithoutBuffersToGiveUpMemoryIsStillShort) {
  constexpr std::int64_t kCount = 1 << 20;
  machine_.memory_bytes = 4 * kCount + (1 << 16);  // one buffer
  const Executor exec = testing::virtual_executor(machine_, on_gpu());
  VirtualCall call("virtual_gelu", "n=1048576");
  auto x = exec.buffer<float>(kCount).value(), y = exec.buffer<float>(kCount).value();
  const auto values = x.overwrite().value();
  std::copy_n(call.values(0).begin(), kCount, values.begin());
  const std::vector<Operand> operands = {x, y};
  ASSERT_TRUE(exec.run(call.op(), call.args(), operands).ok());
  EXPECT_EQ(exec.counters().on_device, 0);
  EXPECT_EQ(exec.counters().evictions, 0);
  EXPECT_EQ(exec.counters().fallbacks, 1);
  const auto result = y.read().value();
  EXPECT_TRUE(std::equal(result.begin(), result.end(), call.expected().begin()));
}

TEST_F(Faults, ACallInPlaceIsNeverLeftHalfDone) {
  // Room for one piece, and then for none: what the first piece has overwritten could not be computed again.
  machine_.allocation_script = [](std::int64_t allocation, std::size_t bytes) {
    return bytes > (3u << 19) || allocation > 4 ? FULCRUM_OUT_OF_MEMORY : FULCRUM_OK;
  };
  const Executor exec = testing::virtual_executor(machine_, on_gpu());
  VirtualCall call("virtual_gelu", "n=1048576");
  std::vector<float> x(call.values(0).begin(), call.values(0).end());
  const std::vector<Operand> in_place = {x, x};
  ASSERT_TRUE(exec.run(call.op(), call.args(), in_place).ok());
  EXPECT_TRUE(std::equal(x.begin(), x.end(), call.expected().begin()));
}

TEST_F(Faults, ACallInPlaceTakesItsMemoryBeforeItsKernelRuns) {
  if (!testing::NoMoreMemory::kPossible) GTEST_SKIP() << "not under a sanitizer";
  std::optional<testing::NoMoreMemory> none;
  machine_.script = [&none](std::int64_t, std::string_view) {
    none.emplace();
    return VirtualFault{};
  };
  const Executor exec = testing::virtual_executor(machine_, on_gpu());
  VirtualCall call("virtual_gelu", "n=16777216");  // more than the heap keeps
  std::vector<float> x(call.values(0).begin(), call.values(0).end());
  const std::vector<Operand> in_place = {x, x};
  EXPECT_NO_THROW({
    const Status status = exec.run(call.op(), call.args(), in_place);
    none.reset();
    EXPECT_TRUE(status.ok());
  });
  none.reset();
  EXPECT_EQ(exec.counters().on_device, 1);
  EXPECT_TRUE(std::equal(x.begin(), x.end(), call.expected().begin()));
}

TEST_F(Faults, APieceThatFailsForGoodIsHeardOf) {
  machine_.memory_bytes = 12 * (std::int64_t{1} << 22) / 10;
  machine_.script = [](std::int64_t launch, std::string_view) {
    return VirtualFault{.wait_code = launch == 1 ? FULCRUM_DEVICE_LOST : FULCRUM_OK};
  };
  const Executor exec = testing::virtual_executor(machine_, on_gpu());
  VirtualCall call("virtual_add", "n=4194304");
  EXPECT_FALSE(runs_on_device(exec, call));
  EXPECT_TRUE(breaker_of(exec).open_for_good());
  EXPECT_EQ(machine_.counts.called_after_loss, 0);
}

TEST_F(Faults, AWholeThatCannotBeCutRunsOnTheCpu) {
  machine_.memory_bytes = 64 << 10;
  const Executor exec = testing::virtual_executor(machine_, on_gpu());
  VirtualCall call("virtual_matmul", "M=128,N=128,K=128");
  EXPECT_FALSE(runs_on_device(exec, call));
  EXPECT_EQ(exec.counters().fallbacks, 1);
}

TEST_F(Faults, ALaunchThatIsRefusedRunsElsewhereAndTheDeviceStaysInUse) {
  machine_.script = [](std::int64_t launch, std::string_view) {
    return VirtualFault{.launch_code = launch == 0 ? FULCRUM_INVALID_ARGUMENT : FULCRUM_OK};
  };
  const Executor exec = testing::virtual_executor(machine_, on_gpu());
  VirtualCall call("virtual_add", "n=1000");
  EXPECT_FALSE(runs_on_device(exec, call));
  EXPECT_TRUE(runs_on_device(exec, call));
  EXPECT_EQ(breaker_of(exec).failures(Failure::configuration), 1);
  EXPECT_EQ(machine_.live_blocks(), 0);
}

TEST_F(Faults, ABusyDeviceIsLeftAloneAndFoundAgain) {
  bool busy = true;
  machine_.script = [&busy](std::int64_t, std::string_view) {
    return VirtualFault{.launch_code = busy ? FULCRUM_DEVICE_BUSY : FULCRUM_OK};
  };
  const Executor exec = testing::virtual_executor(machine_, on_gpu());
  VirtualCall call("virtual_add", "n=1000");
  for (int i = 0; i < 100; ++i) EXPECT_FALSE(runs_on_device(exec, call));
  EXPECT_EQ(machine_.counts.launches, 1) << "one try, and no more before its time";
  EXPECT_TRUE(exec.counters().breaker.starts_with("open"));
  machine_.advance_all(1.1);
  EXPECT_FALSE(runs_on_device(exec, call));
  EXPECT_EQ(machine_.counts.launches, 2);
  busy = false;
  machine_.advance_all(1.1);
  EXPECT_FALSE(runs_on_device(exec, call)) << "the second wait is two seconds";
  machine_.advance_all(1.1);
  EXPECT_TRUE(runs_on_device(exec, call));
  EXPECT_EQ(exec.counters().breaker, "closed");
}

TEST_F(Faults, ExplanationsSayWhyAWayIsOutOfUse) {
  std::int32_t code = FULCRUM_DEVICE_BUSY;
  machine_.script = [&code](std::int64_t, std::string_view) { return VirtualFault{.launch_code = code}; };
  const Executor exec = testing::virtual_executor(machine_);
  const auto why_not = [&](std::string_view op) {
    const auto why = exec.explain(op, parse_shape("n=1000").value(), Place::device);
    EXPECT_EQ(why->ways.front().place, Place::host) << why->text();
    for (const Way& way : why->ways) {
      if (way.place == Place::device) return way.why_not;
    }
    return std::string("there is no such way");
  };
  VirtualCall call("virtual_add", "n=1000");
  EXPECT_FALSE(runs_on_device(exec.with(on_gpu()), call));
  EXPECT_NE(why_not("virtual_add").find("not in use, open: "), std::string::npos) << why_not("virtual_add");
  const Status expected = exec.with(on_gpu()).expect_place("virtual_add", parse_shape("n=1000").value(),
                                                           Place::device, Place::device);
  EXPECT_FALSE(expected.ok());
  machine_.advance_all(1.1);
  code = FULCRUM_INVALID_ARGUMENT;
  for (int i = 0; i < 3; ++i) EXPECT_FALSE(runs_on_device(exec.with(on_gpu()), call));
  machine_.advance_all(1.1);
  EXPECT_TRUE(why_not("virtual_add").starts_with("in quarantine: ")) << why_not("virtual_add");
  EXPECT_EQ(why_not("virtual_add").find("wrong result"), std::string::npos) << "it refused";
}

TEST_F(Faults, CallsOfTheCpuLeaveTheOneTryToThoseForTheDevice) {
  machine_.costs.cpu_flops = 1e9;  // the device by far for large ones
  bool busy = true;
  machine_.script = [&busy](std::int64_t, std::string_view) {
    return VirtualFault{.launch_code = busy ? FULCRUM_DEVICE_BUSY : FULCRUM_OK};
  };
  const Executor exec = testing::virtual_executor(machine_);
  VirtualCall large("virtual_matmul", "M=64,N=64,K=64"), small("virtual_add", "n=10");
  EXPECT_FALSE(runs_on_device(exec, large));
  busy = false;
  machine_.advance_all(1.1);
  EXPECT_FALSE(runs_on_device(exec, small));
  std::thread([&] { EXPECT_TRUE(runs_on_device(exec, large)); }).join();
  EXPECT_EQ(exec.counters().breaker, "closed");
}

TEST_F(Faults, ExplanationsLeaveTheOneTryToCalls) {
  bool busy = true;
  machine_.script = [&busy](std::int64_t, std::string_view) {
    return VirtualFault{.launch_code = busy ? FULCRUM_DEVICE_BUSY : FULCRUM_OK};
  };
  const Executor exec = testing::virtual_executor(machine_, on_gpu());
  VirtualCall call("virtual_gelu", "n=1000");
  EXPECT_FALSE(runs_on_device(exec, call));
  busy = false;
  machine_.advance_all(1.1);
  const auto why = exec.explain("virtual_gelu", parse_shape("n=1000").value());
  ASSERT_TRUE(why.ok());
  EXPECT_EQ(why->ways.front().place, Place::device);
  std::thread([&] { EXPECT_TRUE(runs_on_device(exec, call)); }).join();
}

TEST_F(Faults, ATryThatFailsForAnotherReasonLetsSomebodyElseTry) {
  std::int32_t code = FULCRUM_DEVICE_BUSY;
  machine_.script = [&code](std::int64_t, std::string_view) { return VirtualFault{.launch_code = code}; };
  const Executor exec = testing::virtual_executor(machine_, on_gpu());
  VirtualCall call("virtual_gelu", "n=1000");
  EXPECT_FALSE(runs_on_device(exec, call));
  machine_.advance_all(1.1);
  code = FULCRUM_INVALID_ARGUMENT;
  EXPECT_FALSE(runs_on_device(exec, call));
  code = FULCRUM_OK;
  std::thread([&] { EXPECT_TRUE(runs_on_device(exec, call)); }).join();
}

TEST_F(Faults, StrictReturnsTheErrorInsteadOfFallingBack) {
  std::int32_t code = FULCRUM_INVALID_ARGUMENT;
  machine_.script = [&code](std::int64_t, std::string_view) { return VirtualFault{.launch_code = code}; };
  Policy strict = on_gpu();
  strict.strict = true;
  const Executor exec = testing::virtual_executor(machine_, strict);
  VirtualCall call("virtual_add", "n=1000");
  for (const std::int32_t next : {FULCRUM_INVALID_ARGUMENT, FULCRUM_OUT_OF_MEMORY, FULCRUM_DEVICE_LOST}) {
    code = next;
    const Status status = call.run(exec);
    ASSERT_FALSE(status.ok());
    EXPECT_EQ(static_cast<std::int32_t>(status.error().code), next);
  }
  const Status later = call.run(exec);
  ASSERT_FALSE(later.ok()) << "not in silence on the CPU either";
  EXPECT_EQ(later.error().code, Code::device_lost);
  EXPECT_EQ(exec.counters().fallbacks, 0);
  EXPECT_EQ(machine_.counts.called_after_loss, 0);
}

TEST_F(Faults, StrictMindsADeviceThatIsGoneWhereTheCallBelongsThere) {
  machine_.costs.cpu_flops = 1e9;  // the device by far
  machine_.script = [](std::int64_t launch, std::string_view) {
    return VirtualFault{.wait_code = launch == 1 ? FULCRUM_DEVICE_LOST : FULCRUM_OK};
  };
  Policy strict;
  strict.strict = true;
  const Executor exec = testing::virtual_executor(machine_, strict);
  VirtualCall call("virtual_matmul", "M=64,N=64,K=64"), small("virtual_add", "n=10");
  EXPECT_TRUE(runs_on_device(exec, call));
  EXPECT_EQ(call.run(exec).error().code, Code::device_lost);
  const Status later = call.run(exec);
  ASSERT_FALSE(later.ok());
  EXPECT_EQ(later.error().code, Code::device_lost);
  EXPECT_TRUE(small.run(exec).ok()) << "the CPU's own calls go on";
}

TEST_F(Faults, AFailedCallLeavesItsInputsAsTheyWere) {
  machine_.script = [](std::int64_t, std::string_view) {
    return VirtualFault{.wait_code = FULCRUM_DEVICE_ERROR};
  };
  Policy strict = on_gpu();
  strict.strict = true;
  const Executor exec = testing::virtual_executor(machine_, strict);
  VirtualCall call("virtual_gelu", "n=1000");
  std::vector<float> x(call.values(0).begin(), call.values(0).end());
  const std::vector<float> before = x;
  const std::vector<Operand> in_place = {x, x};
  ASSERT_FALSE(exec.run(call.op(), call.args(), in_place).ok());
  EXPECT_EQ(x, before);
  auto buffer = exec.buffer<float>(std::span<const float>(before));
  ASSERT_TRUE(buffer.ok());
  const std::vector<Operand> same_buffer = {*buffer, *buffer};
  ASSERT_FALSE(exec.run(call.op(), call.args(), same_buffer).ok());
  const auto after = buffer->read();
  ASSERT_TRUE(after.ok());
  EXPECT_TRUE(std::equal(before.begin(), before.end(), after->begin()));

  const Executor lenient = exec.with(on_gpu());
  ASSERT_TRUE(lenient.run(call.op(), call.args(), in_place).ok());
  EXPECT_TRUE(std::equal(x.begin(), x.end(), call.expected().begin()));
  ASSERT_TRUE(lenient.run(call.op(), call.args(), same_buffer).ok());
  const auto result = buffer->read();
  ASSERT_TRUE(result.ok());
  EXPECT_TRUE(std::equal(result->begin(), result->end(), call.expected().begin()));
}

TEST_F(Faults, ShadowsFindAKernelThatIsWrongAndItIsNotUsedAgain) {
  machine_.script = [](std::int64_t, std::string_view op) {
    return VirtualFault{.wrong = op == "virtual_add"};
  };
  Policy policy = on_gpu();
  policy.shadow_share = 1;
  const Executor exec = testing::virtual_executor(machine_, policy);
  VirtualCall add("virtual_add", "n=1000"), gelu("virtual_gelu", "n=1000");
  ASSERT_TRUE(add.run(exec).ok()) << "the CPU's result is handed out";
  EXPECT_EQ(exec.counters().mismatches, 1);
  EXPECT_EQ(breaker_of(exec).failures(Failure::wrong_result), 1);
  for (int i = 0; i < 10; ++i) EXPECT_FALSE(runs_on_device(exec, add));
  EXPECT_TRUE(runs_on_device(exec, gelu));
  EXPECT_EQ(exec.counters().shadowed, 2);
  EXPECT_EQ(exec.counters().breaker, "closed");
}

TEST_F(Faults, AWrongResultInABufferIsReplacedToo) {
  machine_.script = [](std::int64_t, std::string_view) { return VirtualFault{.wrong = true}; };
  Policy policy = on_gpu();
  policy.shadow_share = 1;
  const Executor exec = testing::virtual_executor(machine_, policy);
  VirtualCall call("virtual_gelu", "n=1000");
  auto x = exec.buffer<float>(call.values(0));
  auto y = exec.buffer<float>(1000);
  const std::vector<Operand> operands = {*x, *y};
  ASSERT_TRUE(exec.run(call.op(), call.args(), operands).ok());
  const auto got = y->read();
  ASSERT_TRUE(got.ok());
  EXPECT_TRUE(std::equal(got->begin(), got->end(), call.expected().begin()));
}

TEST_F(Faults, AShadowThatCannotRunSaysNothingOfTheCall) {
  machine_.cpu_script = [](std::string_view) { return FULCRUM_OUT_OF_MEMORY; };
  Policy policy = on_gpu();
  policy.shadow_share = 1;
  const Executor exec = testing::virtual_executor(machine_, policy);
  VirtualCall call("virtual_gelu", "n=1000");
  EXPECT_TRUE(runs_on_device(exec, call));
  EXPECT_EQ(exec.counters().shadowed, 0);
  EXPECT_EQ(exec.counters().mismatches, 0);
  EXPECT_EQ(exec.regret().points, 0);
  machine_.cpu_script = {};
  EXPECT_TRUE(runs_on_device(exec, call));
  EXPECT_EQ(exec.counters().shadowed, 1);
}

TEST_F(Faults, ExplainShowsThatTheDeviceIsOut) {
  machine_.script = [](std::int64_t, std::string_view) {
    return VirtualFault{.wait_code = FULCRUM_DEVICE_LOST};
  };
  const Executor exec = testing::virtual_executor(machine_, on_gpu());
  VirtualCall call("virtual_gelu", "n=1000");
  ASSERT_TRUE(call.run(exec).ok());
  const auto why = exec.explain("virtual_gelu", parse_shape("n=1000").value());
  ASSERT_TRUE(why.ok());
  EXPECT_NE(why->text().find("illegal memory access"), std::string::npos) << why->text();
}

TEST_F(Faults, EveryKindOfFallBackIsLoggedOnce) {
  std::vector<std::string> lines;
  set_log_sink([&lines](LogLevel level, std::string_view line) {
    if (level >= LogLevel::warning) lines.emplace_back(line);
  });
  machine_.script = [](std::int64_t, std::string_view) {
    return VirtualFault{.launch_code = FULCRUM_OUT_OF_MEMORY};
  };
  const Executor exec = testing::virtual_executor(machine_, on_gpu());
  VirtualCall call("virtual_gelu", "n=1000");
  for (int i = 0; i < 100; ++i) EXPECT_FALSE(runs_on_device(exec, call));
  set_log_sink({});
  EXPECT_EQ(exec.counters().fallbacks, 100);
  EXPECT_GE(lines.size(), 1u);
  EXPECT_LE(lines.size(), 2u);
}

}  // namespace
}  // namespace fulcrum::executor
