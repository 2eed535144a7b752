// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Where calls belong, stated as a user would state it for their own ops: nothing runs here.
#include <nlohmann/json.hpp>

#include "support/virtual_calls.h"

namespace fulcrum::executor {
namespace {

class Placement : public testing::VirtualTest {
 protected:
  static Shape shape(std::string_view text) { return parse_shape(text).value(); }
};

constexpr const char* kStreaming[] = {"n=100", "n=10000", "n=1000000", "n=16777216", "n=67108864"};

TEST_F(Placement, AStreamingOpNeverGoesOverALinkThatIsSlowerThanTheMemoryOfTheCpu) {
  const Executor exec = testing::virtual_executor(machine_);
  for (const char* op : {"vec_add", "relu", "dot", "virtual_add"}) {
    for (const char* text : kStreaming) {
      const Status status = exec.expect_place(op, shape(text), Place::host, Place::host);
      EXPECT_TRUE(status.ok()) << status.error().message << "\n" << status.error().hint;
    }
  }
}

TEST_F(Placement, TheSameOpFlipsWhenItsOperandsAreOnTheDevice) {
  const Executor exec = testing::virtual_executor(machine_);
  for (const char* op : {"vec_add", "relu", "dot", "virtual_add"}) {
    for (const char* text : {"n=1000000", "n=16777216", "n=67108864"}) {
      const Status status = exec.expect_place(op, shape(text), Place::device, Place::device);
      EXPECT_TRUE(status.ok()) << status.error().message << "\n" << status.error().hint;
    }
  }
}

class PlacementOf : public Placement, public ::testing::WithParamInterface<const char*> {
 protected:
  PlacementOf() {
    const std::filesystem::path file =
        std::filesystem::path(FULCRUM_SOURCE_DIR) / "share/machines" / (std::string(GetParam()) + ".json");
    const auto profile = machine_from_json(json_parse(read_file(file).value(), "profile").value(), "profile");
    EXPECT_TRUE(profile.ok() && profile->gpus.size() == 1);
    machine_.costs = testing::costs_of(profile->gpus.front());
  }
};

TEST_P(PlacementOf, StreamsStayAtHomeAndProductsGo) {
  const Executor exec = testing::virtual_executor(machine_);
  for (const char* text : kStreaming)
    EXPECT_TRUE(exec.expect_place("vec_add", shape(text), Place::host, Place::host).ok()) << text;
  EXPECT_TRUE(exec.expect_place("vec_add", shape("n=16777216"), Place::device, Place::device).ok());
  EXPECT_TRUE(exec.expect_place("matmul", shape("M=4096,N=4096,K=4096"), Place::host, Place::device).ok());
}

INSTANTIATE_TEST_SUITE_P(Cards, PlacementOf,
                         ::testing::Values("a100", "h100", "h200", "l4", "rtx3060", "rtx4090"),
                         [](const auto& test) { return std::string(test.param); });

TEST_F(Placement, ALinkFasterThanTheCpuIsTaken) {
  machine_.costs.cpu_rate = 3e9;
  const Executor exec = testing::virtual_executor(machine_);
  EXPECT_TRUE(exec.expect_place("vec_add", shape("n=16777216"), Place::host, Place::device).ok());
  EXPECT_TRUE(exec.expect_place("vec_add", shape("n=100"), Place::host, Place::host).ok());
}

TEST_F(Placement, MuchArithmeticOnLittleDataGoesToTheDevice) {
  const Executor exec = testing::virtual_executor(machine_);
  EXPECT_TRUE(exec.expect_place("matmul", shape("M=4096,N=4096,K=4096"), Place::host, Place::device).ok());
  EXPECT_TRUE(exec.expect_place("matmul", shape("M=32,N=32,K=32"), Place::host, Place::host).ok());
}

TEST_F(Placement, AWrongExpectationSaysWhereAndWhy) {
  const Executor exec = testing::virtual_executor(machine_);
  const Status status = exec.expect_place("vec_add", shape("n=1000000"), Place::host, Place::device);
  ASSERT_FALSE(status.ok());
  EXPECT_NE(status.error().message.find("runs on the host, not on the device"), std::string::npos)
      << status.error().message;
  EXPECT_FALSE(status.error().hint.empty());
  EXPECT_EQ(machine_.counts.launches, 0) << "nothing ran";
}

TEST_F(Placement, ExplainSaysWhatWouldFlipIt) {
  const Executor exec = testing::virtual_executor(machine_);
  const auto why = exec.explain("virtual_add", shape("n=16777216"));
  ASSERT_TRUE(why.ok());
  ASSERT_FALSE(why->ways.empty());
  EXPECT_EQ(why->ways.front().place, Place::host);
  EXPECT_NE(why->flips.find("resident"), std::string::npos) << why->flips;
  EXPECT_GT(why->margin, 1);
}

TEST_F(Placement, ExplainSaysWhereTypedCallsAskForNoDecision) {
  const Executor exec = testing::virtual_executor(machine_);
  const auto said = [&](const Executor& of, const char* text, Place data) {
    const std::string all = of.explain("relu", shape(text), data)->text();
    return all.find("exec.relu() on vectors of less than ") != std::string::npos &&
           all.find("asks for no decision: relu/simd/default runs at once") != std::string::npos;
  };
  EXPECT_TRUE(said(exec, "n=8", Place::host));
  EXPECT_FALSE(said(exec, "n=67108864", Place::host));
  EXPECT_FALSE(said(exec, "n=8", Place::device));
  EXPECT_FALSE(said(exec.with(on_gpu()), "n=8", Place::host))
      << "no guard decides for a backend that was named";
}

TEST_F(Placement, OperandsThatStayMoveOnceAndTheirCallsFollow) {
  const Executor exec = testing::virtual_executor(machine_);
  testing::VirtualCall call("virtual_add", "n=262144");
  auto a = exec.buffer<float>(call.values(0)), b = exec.buffer<float>(call.values(1));
  auto out = exec.buffer<float>(262144);
  ASSERT_TRUE(a.ok() && b.ok() && out.ok());
  out->stay_on_device();
  const std::vector<Operand> operands = {*a, *b, Operand(), *out};
  for (int i = 0; i < 200; ++i) ASSERT_TRUE(exec.run(call.op(), call.args(), operands).ok());
  const Counters counters = exec.counters();
  EXPECT_GT(counters.on_device, 100) << "what is used again and again belongs there";
  EXPECT_LE(counters.uploads, 8);
  const auto got = out->read();
  ASSERT_TRUE(got.ok());
  EXPECT_TRUE(std::equal(got->begin(), got->end(), call.expected().begin()));
  EXPECT_EQ(machine_.counts.violations, 0);
}

}  // namespace
}  // namespace fulcrum::executor
