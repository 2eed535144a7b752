// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Calls that are run another way too: the regret says what a wrong choice costs, in both directions, and nobody else
// notices. The times are those of the virtual machine, whose costs change after its table was made.
#include <thread>

#include "executor/host_executor.h"
#include "executor/named_ops.h"
#include "support/fake_clock.h"
#include "support/virtual_calls.h"

namespace fulcrum::executor {
namespace {

using testing::VirtualCall;
using testing::VirtualFault;
using testing::VirtualMachine;

constexpr double kSlow = 1e9, kFast = 70e9;  // bytes a second of the virtual CPU
constexpr const char* kShape = "n=65536";

class Shadows : public testing::VirtualTest {
 protected:
  /// Whatever calls take, the table has the last word.
  static Policy always_shadowed() { return Policy{.frozen = true, .shadow_share = 1, .explore_credit = 0}; }
  /// The table knows one rate of the CPU, the machine has another.
  Executor executor(double said, double real, const Policy& policy = always_shadowed()) {
    machine_.costs.cpu_rate = said;
    Executor made = testing::virtual_executor(machine_, policy);
    machine_.costs.cpu_rate = real;
    return made;
  }
  /// The input of a call and a place for its result.
  static std::pair<Buffer<float>, Buffer<float>> buffers_of(const Executor& exec, VirtualCall& call) {
    return {exec.buffer<float>(call.values(0)).value(), exec.buffer<float>(65536).value()};
  }
  /// Of one call without a shadow.
  double seconds_on(const char* backend, VirtualCall& call, const Executor& exec) {
    const Executor pinned = exec.with({.frozen = true, .backend = backend, .explore_credit = 0});
    const double begin = machine_.now();
    EXPECT_TRUE(call.run(pinned).ok());
    return machine_.now() - begin;
  }
};

TEST_F(Shadows, AWrongStayOnTheCpuIsRegretted) {
  const Executor exec = executor(kFast, kSlow);
  VirtualCall call("virtual_gelu", kShape);
  const double here = seconds_on(VirtualMachine::kCpu, call, exec);
  const double there = seconds_on(VirtualMachine::kGpu, call, exec);
  ASSERT_GT(here, 2 * there);
  for (int i = 0; i < 5; ++i) EXPECT_FALSE(runs_on_device(exec, call));
  const Regret regret = exec.regret();
  EXPECT_EQ(regret.points, 5);
  EXPECT_NEAR(regret.mean, here / there, 1e-4 * regret.mean);
  EXPECT_EQ(exec.counters().shadowed, 5);
  EXPECT_EQ(exec.counters().mismatches, 0);
  EXPECT_EQ(machine_.counts.violations, 0);
}

TEST_F(Shadows, AWrongTripToTheDeviceIsRegretted) {
  const Executor exec = executor(kSlow, kFast);
  VirtualCall call("virtual_gelu", kShape);
  const double here = seconds_on(VirtualMachine::kCpu, call, exec);
  const double there = seconds_on(VirtualMachine::kGpu, call, exec);
  ASSERT_GT(there, 2 * here);
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(runs_on_device(exec, call));
  EXPECT_EQ(exec.regret().points, 5);
  EXPECT_NEAR(exec.regret().mean, there / here, 1e-4 * exec.regret().mean);
}

TEST_F(Shadows, ARightChoiceIsNotRegrettedWhereverItIs) {
  for (const double rate : {kSlow, kFast}) {
    const Executor exec = executor(rate, rate);
    VirtualCall call("virtual_gelu", kShape);
    for (int i = 0; i < 5; ++i) EXPECT_EQ(runs_on_device(exec, call), rate == kSlow);
    EXPECT_EQ(exec.regret().points, 5);
    EXPECT_NEAR(exec.regret().max, 1, 1e-4);
  }
}

TEST_F(Shadows, LongCallsAreHeldAgainstWhatTheyTookThemselves) {
  const Executor exec = executor(kFast, kSlow);
  VirtualCall call("virtual_gelu", "n=1048576");  // predicted to take long enough to be timed each time
  const double here = seconds_on(VirtualMachine::kCpu, call, exec);
  const double there = seconds_on(VirtualMachine::kGpu, call, exec);
  const double begin = machine_.now();
  EXPECT_FALSE(runs_on_device(exec, call));
  EXPECT_NEAR(machine_.now() - begin, here + there, 1e-4 * here) << "the CPU's way is not run again";
  EXPECT_NEAR(exec.regret().mean, here / there, 1e-4 * exec.regret().mean);
}

TEST_F(Shadows, TheShareOfThePolicyIsKept) {
  Policy policy = always_shadowed();
  policy.shadow_share = 0.25;
  const Executor exec = executor(kFast, kSlow, policy);
  VirtualCall call("virtual_gelu", "n=1000");
  for (int i = 0; i < 200; ++i) ASSERT_TRUE(call.run(exec).ok());
  EXPECT_NEAR(static_cast<double>(exec.counters().shadowed), 50, 1);
  policy.shadow_share = 0;
  ASSERT_TRUE(call.run(exec.with(policy)).ok());
  EXPECT_NEAR(static_cast<double>(exec.counters().shadowed), 50, 1);
}

TEST_F(Shadows, ABufferStaysWhereItIs) {
  const Executor exec = executor(kFast, kSlow);
  VirtualCall call("virtual_gelu", kShape);
  auto [x, y] = buffers_of(exec, call);
  const std::vector<Operand> operands = {x, y};
  const std::int64_t blocks = machine_.live_blocks();
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(exec.run(call.op(), call.args(), operands).ok());
  EXPECT_EQ(exec.counters().on_device, 0) << "nothing was booked on the buffers that makes them move";
  EXPECT_EQ(exec.counters().shadowed, 20);
  EXPECT_FALSE(x.on_device());
  EXPECT_FALSE(y.on_device());
  EXPECT_EQ(machine_.live_blocks(), blocks);
  const auto got = y.read();
  ASSERT_TRUE(got.ok());
  EXPECT_TRUE(std::equal(got->begin(), got->end(), call.expected().begin()));
}

TEST_F(Shadows, ADeviceThatHasTheInputsNeedsNoWayIn) {
  const Executor exec = executor(kFast, kSlow);
  VirtualCall call("virtual_gelu", kShape);
  auto [x, y] = buffers_of(exec, call);
  const std::vector<Operand> operands = {x, y};
  ASSERT_TRUE(exec.run(call.op(), call.args(), operands).ok());
  const double with_way_in = exec.regret().mean;
  ASSERT_TRUE(exec.with(on_gpu()).run(call.op(), call.args(), operands).ok());
  ASSERT_TRUE(y.overwrite().ok());
  ASSERT_TRUE(x.on_device() && x.on_host());
  const std::int64_t uploads = exec.counters().uploads;
  ASSERT_TRUE(exec.run(call.op(), call.args(), operands).ok());
  EXPECT_EQ(exec.counters().uploads, uploads);
  EXPECT_GT(exec.regret().max, with_way_in);
}

TEST_F(Shadows, AResultThatWouldStayOnTheDevicePaysNoWayHome) {
  const Executor exec = executor(kFast, kSlow);
  VirtualCall call("virtual_gelu", kShape);
  auto [x, y] = buffers_of(exec, call);
  const std::vector<Operand> operands = {x, y};
  ASSERT_TRUE(exec.run(call.op(), call.args(), operands).ok());
  const double paid = exec.regret().mean;
  y.stay_on_device();
  ASSERT_TRUE(exec.run(call.op(), call.args(), operands).ok());
  EXPECT_EQ(exec.counters().on_device, 0);
  EXPECT_GT(exec.regret().max, 1.1 * paid);
  EXPECT_EQ(exec.counters().mismatches, 0);
}

TEST_F(Shadows, AreNoCallsToThoseWhoCountAndLearn) {
  const Executor exec = executor(kFast, kFast, {.shadow_share = 1, .explore_credit = 0});
  VirtualCall call("virtual_gelu", "n=1048576");
  for (int i = 0; i < 30; ++i) ASSERT_FALSE(runs_on_device(exec, call));
  EXPECT_EQ(exec.counters().calls, 30);
  EXPECT_EQ(exec.counters().device_seconds, 0);
  EXPECT_NEAR(exec.counters().cpu_seconds, 30 * machine_.cpu_seconds(call.op(), call.args()), 1e-6);
  const auto why = exec.explain("virtual_gelu", parse_shape("n=1048576").value());
  ASSERT_TRUE(why.ok());
  for (const Way& way : why->ways) EXPECT_EQ(way.calls, way.place == Place::host ? 30 : 0) << way.name;
}

TEST_F(Shadows, ADeviceThatIsWrongIsFoundOutBeforeItIsUsed) {
  machine_.script = [](std::int64_t, std::string_view) { return VirtualFault{.wrong = true}; };
  Policy policy = always_shadowed();
  policy.strict = true;  // an error of the chosen kernel is the call's error, and that is the CPU's
  const Executor exec = executor(kFast, kSlow, policy);
  VirtualCall call("virtual_gelu", kShape);
  for (int i = 0; i < 5; ++i) EXPECT_FALSE(runs_on_device(exec, call));
  EXPECT_EQ(exec.counters().mismatches, 1);
  EXPECT_EQ(exec.counters().shadowed, 1);
  EXPECT_EQ(exec.counters().fallbacks, 0);
  EXPECT_EQ(breaker_of(exec).failures(Failure::wrong_result), 1);
  EXPECT_EQ(exec.regret().points, 0) << "a way that is wrong is none";
}

TEST_F(Shadows, ThatFailDoNotFailTheCall) {
  for (const std::int32_t code :
       {FULCRUM_OUT_OF_MEMORY, FULCRUM_DEVICE_BUSY, FULCRUM_UNSUPPORTED, FULCRUM_DEVICE_LOST}) {
    machine_.script = [code](std::int64_t, std::string_view) { return VirtualFault{.launch_code = code}; };
    Policy policy = always_shadowed();
    policy.strict = true;
    const Executor exec = executor(kFast, kSlow, policy);
    VirtualCall call("virtual_gelu", kShape);
    for (int i = 0; i < 3; ++i) EXPECT_FALSE(runs_on_device(exec, call)) << code;
    EXPECT_EQ(exec.counters().shadowed, 0) << code;
    EXPECT_EQ(exec.regret().points, 0) << code;
    EXPECT_EQ(exec.counters().evictions, 0);
    const bool backs_off = code == FULCRUM_DEVICE_BUSY || code == FULCRUM_DEVICE_LOST;
    EXPECT_EQ(breaker_of(exec).allows(), !backs_off) << code;
  }
  EXPECT_EQ(machine_.counts.called_after_loss, 0);
}

TEST_F(Shadows, OfABusyDeviceWaitAsCallsDo) {
  machine_.script = [](std::int64_t launch, std::string_view) {
    return VirtualFault{.launch_code = launch == 0 ? FULCRUM_DEVICE_BUSY : FULCRUM_OK};
  };
  const Executor exec = executor(kFast, kSlow);
  VirtualCall call("virtual_gelu", kShape);
  for (int i = 0; i < 3; ++i) EXPECT_FALSE(runs_on_device(exec, call));
  EXPECT_EQ(machine_.counts.launches, 1);
  machine_.advance_all(5);
  EXPECT_FALSE(runs_on_device(exec, call));
  EXPECT_EQ(exec.counters().breaker, "closed") << "the shadow found out that it answers again";
  EXPECT_EQ(exec.regret().points, 1);
}

TEST_F(Shadows, ThatWouldPushBuffersOutDoNotRun) {
  const Executor exec = executor(kFast, kSlow);
  VirtualCall call("virtual_gelu", kShape);
  auto [kept, result] = buffers_of(exec, call);
  const std::vector<Operand> operands = {kept, result};
  ASSERT_TRUE(exec.with(on_gpu()).run(call.op(), call.args(), operands).ok());
  machine_.memory_bytes = 2 * 65536 * 4;  // those two
  EXPECT_FALSE(runs_on_device(exec, call));
  EXPECT_EQ(exec.counters().evictions, 0);
  EXPECT_TRUE(kept.on_device());
  EXPECT_EQ(exec.counters().shadowed, 0);
}

TEST_F(Shadows, LeaveCallsAloneThatOverwriteTheirInputs) {
  const Executor exec = executor(kFast, kSlow);
  VirtualCall call("virtual_gelu", kShape);
  std::vector<float> x(call.values(0).begin(), call.values(0).end());
  const std::vector<Operand> in_place = {x, x};
  ASSERT_TRUE(exec.run(call.op(), call.args(), in_place).ok());
  EXPECT_TRUE(std::equal(x.begin(), x.end(), call.expected().begin()));
  EXPECT_EQ(exec.counters().shadowed, 0);
  EXPECT_EQ(machine_.counts.launches, 0);
}

TEST_F(Shadows, TakeNoWayThatThePolicyForbids) {
  Policy policy = always_shadowed();
  policy.backend = VirtualMachine::kCpu;
  const Executor exec = executor(kFast, kSlow, policy);
  VirtualCall call("virtual_gelu", kShape);
  EXPECT_FALSE(runs_on_device(exec, call));
  EXPECT_EQ(machine_.counts.launches, 0);
  policy.backend = VirtualMachine::kGpu;
  EXPECT_TRUE(runs_on_device(exec.with(policy), call));
  EXPECT_EQ(exec.counters().shadowed, 1) << "the CPU would answer in its place";
  EXPECT_EQ(exec.regret().points, 0) << "the executor had no choice";
}

TEST_F(Shadows, FindClassesOfTheDeviceThatAreWrong) {
  machine_.script = [](std::int64_t, std::string_view op) {
    return VirtualFault{.wrong = op == "virtual_segment"};
  };
  Policy policy = on_gpu();
  policy.shadow_share = 1;
  const Executor exec = testing::virtual_executor(machine_, policy);
  auto problem = ops::Problem::make(op_named("virtual_segment"), parse_shape("h=40,w=50").value());
  ASSERT_TRUE(problem.ok());
  ASSERT_TRUE(exec.run(problem->op(), problem->args(), {}).ok());
  EXPECT_TRUE(problem->check().passed) << problem->check().detail;
  EXPECT_EQ(exec.counters().mismatches, 1);
  EXPECT_EQ(exec.counters().shadowed, 1);
  machine_.script = {};
  EXPECT_EQ(machine_.counts.violations, 0);
}

TEST_F(Shadows, AmongKernelsOfTheCpuSayWhatTheWrongOneCosts) {
  Policy policy = always_shadowed();
  policy.backend = VirtualMachine::kCpu;
  const Executor exec = testing::virtual_executor(machine_, policy);
  auto problem = ops::Problem::make(op_named("virtual_segment"), parse_shape("h=100,w=100").value());
  ASSERT_TRUE(problem.ok());
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(exec.run(problem->op(), problem->args(), {}).ok());
  EXPECT_EQ(exec.regret().points, 3);
  EXPECT_NEAR(exec.regret().max, 1, 1e-4) << "as the table says";
  machine_.second_factor = 0.25;
  ASSERT_TRUE(exec.run(problem->op(), problem->args(), {}).ok());
  EXPECT_NEAR(exec.regret().max, 4, 1e-4);
  EXPECT_EQ(exec.counters().on_device, 0);
  EXPECT_EQ(machine_.counts.launches, 0);
}

TEST_F(Shadows, OfTwoKernelsOfTheCpuThatDifferBothStay) {
  machine_.second_is_wrong = true;
  Policy policy = always_shadowed();
  policy.backend = VirtualMachine::kCpu;
  const Executor exec = testing::virtual_executor(machine_, policy);
  auto problem = ops::Problem::make(op_named("virtual_segment"), parse_shape("h=100,w=100").value());
  ASSERT_TRUE(problem.ok());
  std::vector<std::string> lines;
  set_log_sink([&lines](LogLevel, std::string_view line) { lines.emplace_back(line); });
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(exec.run(problem->op(), problem->args(), {}).ok());
  set_log_sink({});
  EXPECT_TRUE(problem->check().passed) << "the call keeps its result: " << problem->check().detail;
  EXPECT_EQ(exec.counters().shadowed, 3);
  EXPECT_EQ(exec.counters().mismatches, 3);
  EXPECT_EQ(exec.counters().fallbacks, 0);
  EXPECT_EQ(exec.regret().points, 0);
  EXPECT_FALSE(breaker_of(exec).has_quarantine());
  ASSERT_EQ(lines.size(), 1U) << "it is said once";
  EXPECT_NE(lines.front().find("differ on h=100,w=100"), std::string::npos) << lines.front();
}

/// One query, whose best row is the one before the last.
ops::Problem search_for_one(bool twin_row) {
  auto problem = ops::Problem::make(op_named("virtual_topk"), parse_shape("Q=1,N=9,D=4,k=1").value());
  EXPECT_TRUE(problem.ok());
  auto* query = problem->args().out<float>(0);
  auto* rows = problem->args().out<float>(1);
  for (int i = 0; i < 4; ++i) query[i] = 1;
  for (int i = 0; i < 36; ++i) rows[i] = i < 28 || (!twin_row && i >= 32) ? static_cast<float>(i % 4) : 2;
  problem->adopt_inputs();
  problem->reset();
  return std::move(problem).value();
}

TEST_F(Shadows, LetIdsThatTieSwapAndNoOthers) {
  machine_.script = [](std::int64_t, std::string_view) {
    return VirtualFault{.wrong = true, .wrong_slot = 3};  // the row after the best one
  };
  Policy policy = on_gpu();
  policy.shadow_share = 1;
  for (const bool ties : {true, false}) {
    const Executor exec = testing::virtual_executor(machine_, policy);
    ops::Problem problem = search_for_one(ties);
    ASSERT_TRUE(exec.run(problem.op(), problem.args(), {}).ok());
    EXPECT_EQ(exec.counters().shadowed, 1);
    EXPECT_EQ(exec.counters().mismatches, ties ? 0 : 1);
    EXPECT_EQ(problem.args().in<std::int32_t>(3)[0], ties ? 8 : 7);
  }
}

TEST(ShadowsHere, GiveRegretWhereThereIsNoDevice) {
  testing::FakeClock clock(1e-9, 1e-6);
  auto made = Executor::make({.policy = {.frozen = true, .shadow_share = 1, .explore_credit = 0},
                              .load_table = false,
                              .use_device = false,
                              .clock = clock.clock()});
  ASSERT_TRUE(made.ok());
  auto problem = ops::Problem::make(op_named("softmax"), parse_shape("rows=64,n=100").value());
  ASSERT_TRUE(problem.ok());
  const auto why = made->explain("softmax", parse_shape("rows=64,n=100").value());
  ASSERT_TRUE(why.ok());
  const auto eligible = [](const Way& way) { return way.why_not.empty(); };
  if (std::count_if(why->ways.begin(), why->ways.end(), eligible) < 2) GTEST_SKIP() << "one way is no choice";
  for (int i = 0; i < 10; ++i) ASSERT_TRUE(made->run(problem->op(), problem->args(), {}).ok());
  EXPECT_TRUE(problem->check().passed) << problem->check().detail;
  EXPECT_EQ(made->counters().calls, 10);
  EXPECT_EQ(made->counters().shadowed, 10);
  EXPECT_EQ(made->counters().mismatches, 0);
  EXPECT_EQ(made->regret().points, 10);
  EXPECT_NEAR(made->regret().mean, 1, 1e-6) << "by this clock all calls take as long";
}

TEST_F(Shadows, OfManyThreadsAtOnceAreAllCounted) {
  const Executor exec = executor(kFast, kSlow);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&exec] {
      VirtualCall call("virtual_gelu", "n=5000");
      for (int i = 0; i < 50; ++i) EXPECT_TRUE(call.run(exec).ok());
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(exec.counters().shadowed, 200);
  EXPECT_EQ(exec.regret().points, 200);
  EXPECT_EQ(exec.counters().mismatches, 0);
  EXPECT_EQ(machine_.counts.violations, 0);
}

class EveryOpHere : public ::testing::TestWithParam<std::string> {};

TEST_P(EveryOpHere, IsAnsweredAlikeByTwoKernelsOfTheCpu) {
  const Executor exec = cpu_executor({.shadow_share = 1});
  const ops::Op& op = op_named(GetParam());
  for (const auto special : {ops::Problem::Special::none, ops::Problem::Special::mixed}) {
    for (const std::string_view shape : op.edge_shapes) {
      auto problem = ops::Problem::make(op, parse_shape(shape).value(), {.special = special});
      ASSERT_TRUE(problem.ok()) << problem.error().message;
      ASSERT_TRUE(exec.run(op, problem->args(), {}, problem->shape().dtype).ok());
    }
    auto problem =
        ops::Problem::make(op, parse_shape(op.default_sizes.front()).value(), {.special = special});
    ASSERT_TRUE(problem.ok()) << problem.error().message;
    ASSERT_TRUE(exec.run(op, problem->args(), {}, problem->shape().dtype).ok());
    EXPECT_TRUE(problem->check().passed) << problem->check().detail;
  }
  EXPECT_EQ(exec.counters().mismatches, 0);
}

std::vector<std::string> names_of_ops() {
  std::vector<std::string> names;
  for (const ops::Op* op : ops::all()) {
    const bool known = !op->is_probe() && !op->default_sizes.empty();
    if (known && !op->name.starts_with("virtual_")) names.emplace_back(op->name);
  }
  return names;
}
INSTANTIATE_TEST_SUITE_P(Ops, EveryOpHere, ::testing::ValuesIn(names_of_ops()),
                         [](const auto& test) { return test.param; });

TEST(ShadowsHere, LeaveArraysOfPointersAlone) {
  const Executor exec = cpu_executor({.shadow_share = 1});
  auto problem = ops::Problem::make(op_named("vec_add"), parse_shape("n=100,B=3,layout=list").value());
  ASSERT_TRUE(problem.ok()) << problem.error().message;
  ASSERT_TRUE(exec.run(problem->op(), problem->args(), {}).ok());
  EXPECT_TRUE(problem->check().passed);
  EXPECT_EQ(exec.counters().shadowed, 0);
}

TEST(OwnRegret, IsOfTheNewestCalls) {
  OwnRegret regret;
  for (std::size_t i = 0; i < OwnRegret::kMost; ++i) regret.add(2, 1);
  EXPECT_NEAR(regret.summary().mean, 2, 1e-12);
  regret.add(5, 1);
  EXPECT_EQ(regret.summary().points, static_cast<std::int64_t>(OwnRegret::kMost));
  EXPECT_EQ(regret.summary().max, 5);
  for (std::size_t i = 0; i + 1 < OwnRegret::kMost; ++i) regret.add(1, 3);
  EXPECT_EQ(regret.summary().max, 5) << "it is the oldest now";
  regret.add(1, 1);
  EXPECT_EQ(regret.summary().max, 1);
  EXPECT_EQ(regret.summary().points, static_cast<std::int64_t>(OwnRegret::kMost));
}

TEST(OwnRegret, TimesThatNoClockSawSayNothing) {
  OwnRegret regret;
  regret.add(0, 1);
  regret.add(1, 0);
  EXPECT_EQ(regret.summary().points, 0);
}

}  // namespace
}  // namespace fulcrum::executor
