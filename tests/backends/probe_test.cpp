// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Probe kernels do what they are counted for: every pass, every step, every hop, on every instruction set.
#include <fulcrum/ops/probes.h>

#include <fulcrum/backends.h>
#include <gtest/gtest.h>

#include <set>

namespace fulcrum::backends {
namespace {

constexpr const char* kProbes[] = {"probe_fma", "probe_read", "probe_copy", "probe_triad", "probe_latency"};

/// Runs the op's kernels of one backend on a shape, on every instruction set, and checks the results.
void check_everywhere(const std::string& op_name, const std::string& backend, const std::string& shape_text) {
  const auto op = ops::find(op_name);
  ASSERT_TRUE(op.ok());
  const auto shape = parse_shape(shape_text);
  ASSERT_TRUE(shape.ok());
  const auto found = kernels(op_name, backend);
  ASSERT_TRUE(found.ok()) << found.error().message;
  for (const std::string& isa : isas()) {
    ASSERT_TRUE(force_isa(isa).ok());
    for (const Kernel& kernel : *found) {
      auto problem = ops::Problem::make(**op, *shape);
      ASSERT_TRUE(problem.ok()) << problem.error().message;
      auto call = Call::make(kernel, problem->args());
      ASSERT_TRUE(call.ok()) << call.error().message;
      EXPECT_EQ(call->run(2).code, FULCRUM_OK);
      const Oracle oracle = problem->check();
      EXPECT_TRUE(oracle.passed) << kernel.name() << " " << isa << " " << shape_text << ": " << oracle.detail;
    }
  }
  ASSERT_TRUE(force_isa("").ok());
}

TEST(Probes, CountEveryStepOfEveryChain) {
  for (const char* backend : {"scalar", "simd", "threads"}) {
    for (const char* shape : {"n=0,steps=5", "n=1,steps=0", "n=1,steps=1", "n=767,steps=1001",
                              "n=769,steps=7", "n=5000,steps=33"}) {
      check_everywhere("probe_fma", backend, shape);
    }
  }
}

TEST(Probes, StandStillWhereCountingByOnesIsNoLongerExact) {
  const ops::Op& op = **ops::find("probe_fma");
  const Args args = *ops::resolve(op, *parse_shape("n=3,steps=16777300"));
  const std::vector<std::int64_t> index = {1};
  ops::Truth truth;
  op.reference(args, 0, index, &truth);
  EXPECT_EQ(truth.value, 16777216);
  EXPECT_EQ(0x1p24F * 1.0F + 1.0F, 0x1p24F);
}

TEST(Probes, ReadEveryElementInEveryPass) {
  for (const char* backend : {"scalar", "simd", "threads"}) {
    for (const char* shape : {"n=0,passes=3", "n=1,passes=1", "n=17,passes=3", "n=1023,passes=5",
                              "n=1025,passes=2", "n=12345,passes=7"}) {
      check_everywhere("probe_read", backend, shape);
    }
  }
}

TEST(Probes, CopyAndTriadWriteEveryElement) {
  for (const char* op : {"probe_copy", "probe_triad"}) {
    for (const char* backend : {"scalar", "simd", "threads"}) {
      for (const char* shape :
           {"n=0", "n=1,passes=2", "n=15", "n=1023,passes=3", "n=1025", "n=12345,passes=2"}) {
        check_everywhere(op, backend, shape);
      }
    }
  }
}

TEST(Probes, FollowTheCycle) {
  for (const char* shape :
       {"n=0", "n=1,hops=5", "n=2,hops=3", "n=1000,hops=999", "n=1000,hops=12345", "n=1000"}) {
    check_everywhere("probe_latency", "scalar", shape);
  }
}

TEST(Probes, ChaseThroughAllNodesBeforeTheFirstComesBack) {
  // More nodes than one block of the shuffle, so that the seams between blocks are walked too.
  constexpr std::int64_t kNodes = 100'003;
  Shape shape;
  shape.set("n", kNodes);
  auto problem = ops::Problem::make(**ops::find("probe_latency"), shape);
  ASSERT_TRUE(problem.ok());
  const auto* next = problem->args().in<std::int64_t>(0);
  std::set<std::int64_t> seen;
  std::int64_t at = *problem->args().in<std::int64_t>(1);
  std::int64_t neighbours = 0;
  for (std::int64_t i = 0; i < kNodes; ++i) {
    ASSERT_EQ(at % ops::kProbeNode, 0);
    ASSERT_TRUE(seen.insert(at).second) << "node " << at << " after " << i << " hops";
    neighbours += next[at] == at + ops::kProbeNode ? 1 : 0;
    at = next[at];
  }
  EXPECT_EQ(at, *problem->args().in<std::int64_t>(1));
  EXPECT_LT(neighbours, 50) << "an order that a prefetcher could guess";
}

TEST(Probes, RefuseCountsThatMeanNothing) {
  for (const char* text : {"n=10,passes=0", "n=10,passes=-1"}) {
    EXPECT_FALSE(ops::resolve(**ops::find("probe_read"), *parse_shape(text)).ok()) << text;
  }
  EXPECT_FALSE(ops::resolve(**ops::find("probe_fma"), *parse_shape("n=10,steps=-1")).ok());
  EXPECT_FALSE(ops::resolve(**ops::find("probe_latency"), *parse_shape("n=10,hops=-1")).ok());
}

TEST(Probes, CountTheirWorkByThePass) {
  const auto work = [](const char* op, const char* text) {
    const ops::Op& found = **ops::find(op);
    return found.work(*ops::resolve(found, *parse_shape(text)));
  };
  EXPECT_EQ(work("probe_read", "n=1000,passes=3").bytes(), 12004);
  EXPECT_EQ(work("probe_copy", "n=1000,passes=3").bytes(), 24000);
  EXPECT_EQ(work("probe_triad", "n=1000,passes=3").bytes(), 36000);
  EXPECT_EQ(work("probe_triad", "n=1000,passes=3").flops, 6000);
  EXPECT_EQ(work("probe_fma", "n=1000,steps=3").flops, 6000);
  EXPECT_EQ(work("probe_latency", "n=1000,hops=3").issue_slots, 3);
}

TEST(Probes, AreMarkedAsSuch) {
  for (const char* name : kProbes) {
    const auto op = ops::find(name);
    ASSERT_TRUE(op.ok()) << name;
    EXPECT_TRUE(op.value()->is_probe()) << name;
  }
}

}  // namespace
}  // namespace fulcrum::backends
