// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Plans over buffers that change or end, and over graphs, indexes and other resources, whose addresses come back.
#include <fulcrum/executor.h>
#include <fulcrum/ops/activation_spreading.h>
#include <gtest/gtest.h>

#include "executor/engine.h"
#include "executor/host_executor.h"
#include "executor/plans.h"
#include "support/instances.h"

namespace fulcrum::executor {
namespace {

TEST(KeptPlans, DoNotOutliveTheBuffersTheyWereMadeFrom) {
  const Executor exec = cpu_executor();
  const ops::Op& op = test::op_of("lstm_cell");
  const Executor pinned = exec.with({.strict = true, .backend = "simd"});
  for (const std::uint64_t seed : {42U, 7U, 8U, 9U}) {  // weights of one size, often at one address
    auto problem = ops::Problem::make(op, test::shape_of("B=65,I=64,H=128"), {.seed = seed});
    ASSERT_TRUE(problem.ok());
    problem->reset();
    std::vector<Buffer<float>> weights;
    std::vector<Operand> operands;
    weights.reserve(3);
    for (int slot = 0; slot < op.pointers(); ++slot) {
      const auto values = test::floats(*problem, slot);
      if (slot < 3 || slot > 5) {
        operands.emplace_back(values);
        continue;
      }
      weights.push_back(exec.buffer<float>(std::span<const float>(values)).value());
      operands.emplace_back(weights.back());
    }
    ASSERT_TRUE(pinned.run(op, problem->args(), operands).ok());
    EXPECT_TRUE(problem->check().passed) << "seed " << seed;
  }
}

TEST(KeptPlans, OverDataThatChangedOrEndedAreDropped) {
  static int dropped = 0;
  dropped = 0;
  fulcrum_kernel kernel{};
  kernel.plan_reads = 1;
  kernel.plan = [](const fulcrum_kernel*, const fulcrum_args*, void** made) {
    *made = &dropped;
    return fulcrum_status{};
  };
  kernel.drop = [](void*) { ++dropped; };
  PlanCache cache;
  PlanKey key{.kernel = &kernel};
  const auto use = [&](Residence& home) {
    key.args.ptr[0] = home.identity();
    key.versions[0] = home.version();
    key.ended = home.ended();
    cache.give(key, cache.take(key, key.args).value());
  };
  auto home = std::make_unique<Residence>(64, nullptr, Residence::Memory::plain);
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(home->host(true, true).ok());
    use(*home);
    use(*home);
    EXPECT_EQ(dropped, i) << "one plan of earlier versions at a time";
  }
  Residence next(64, nullptr, Residence::Memory::plain);
  use(next);
  EXPECT_EQ(dropped, 2) << "two blocks, two plans";
  EXPECT_NE(next.version(), home->version());
  home.reset();
  use(next);
  EXPECT_EQ(dropped, 3);
}

/// An op whose plans take a number from what was prepared.
struct Filling {
  static inline int plans = 0;
  static void add(const char* name, std::uint64_t (*id)(const void*)) {
    if (ops::find(name).ok()) return;  // the test is repeated
    ops::Op op = test::op_of("relu");
    op.name = name;
    op.needs_prepared = true;
    op.prepared_bytes = [](const Args&) { return 4.0; };
    op.prepare = [](const Args&) -> Result<std::shared_ptr<const void>> {
      return std::shared_ptr<const void>(std::make_shared<const float>(1.0F));
    };
    op.prepared_id = id;
    ASSERT_TRUE(ops::add(op).ok());
    fulcrum_kernel kernel{};
    kernel.op = name;
    kernel.variant = "default";
    kernel.plan = [](const fulcrum_kernel*, const fulcrum_args* a, void** made) {
      ++plans;
      *made = new float(*static_cast<const float*>(a->prepared));
      return fulcrum_status{};
    };
    kernel.drop = [](void* plan) { delete static_cast<float*>(plan); };
    kernel.run = [](const fulcrum_args* a, void*, std::int64_t) {
      std::fill_n(a->out<float>(1), a->dim[0], *static_cast<float*>(a->plan));
      return fulcrum_status{};
    };
    ASSERT_TRUE(backends::add("filling", kernel).ok());
  }
  static float filled(const Executor& exec, const char* name, const float& prepared) {
    Args args{};
    args.dim[0] = 4;
    args.prepared = &prepared;
    std::vector<float> x(4), y(4);
    EXPECT_TRUE(exec.run(test::op_of(name), args, std::array{Operand(x), Operand(y)}).ok());
    return y[3];
  }
};

TEST(KeptPlans, OverAPreparedResourceAreKeptByItsNameNotByItsAddress) {
  Filling::add("fill_unnamed", nullptr);
  Filling::add("fill_named", [](const void* prepared) {
    return static_cast<std::uint64_t>(*static_cast<const float*>(prepared));
  });
  const Executor exec = cpu_executor();
  for (const char* name : {"fill_unnamed", "fill_named"}) {
    Filling::plans = 0;
    float prepared = 0;  // one address for three resources
    for (const float value : {1.0F, 2.0F, 3.0F}) {
      prepared = value;
      EXPECT_EQ(Filling::filled(exec, name, prepared), value) << name;
      EXPECT_EQ(Filling::filled(exec, name, prepared), value) << name;
    }
    EXPECT_EQ(Filling::plans, std::string_view(name) == "fill_named" ? 3 : 6) << name;
  }
}

TEST(KeptPlans, OverAGraphGoWithIt) {
  static int dropped = 0;
  dropped = 0;
  fulcrum_kernel kernel{};
  kernel.plan = [](const fulcrum_kernel*, const fulcrum_args*, void** made) {
    *made = &dropped;
    return fulcrum_status{};
  };
  kernel.drop = [](void*) { ++dropped; };
  const std::vector<std::int32_t> begin{0, 1, 2}, sources{1, 0};
  const std::vector<float> weights{0.5F, 0.25F};
  const auto made = [&] {
    return ops::make_graph(2, begin, sources, weights, ops::EdgeLists::incoming).value();
  };
  PlanCache cache;
  const ops::PreparedWatch watch([&cache](const void* prepared) { cache.drop_over(prepared); });
  auto first = made(), second = made();
  for (const auto& graph : {first, second}) {
    PlanKey key{.kernel = &kernel};
    key.args.prepared = graph.get();
    cache.give(key, cache.take(key, key.args).value());
  }
  first.reset();
  EXPECT_EQ(dropped, 1);
  second.reset();
  EXPECT_EQ(dropped, 2);
}

TEST(Prepared, GraphsAndIndexesHaveNamesOfTheirOwn) {
  const std::vector<std::int32_t> begin{0, 1, 2}, sources{1, 0};
  const std::vector<float> weights{0.5F, 0.25F};
  std::uint64_t before = 0;
  for (int i = 0; i < 3; ++i) {
    const auto graph = ops::make_graph(2, begin, sources, weights, ops::EdgeLists::incoming).value();
    EXPECT_GT(graph->id, before);
    before = graph->id;
    EXPECT_EQ(test::op_of("activation_spreading").prepared_id(graph.get()), before);
  }
}

TEST(Prepared, WhatStandsReachesKernelsOfCallsThatBringNothing) {
  const Executor exec = cpu_executor();
  for (const char* name : {"pixel_entropy", "conv_entropy_segment"}) {
    const ops::Op& op = test::op_of(name);
    const auto problem = ops::Problem::make(op, test::shape_of(std::string(op.default_sizes.front())));
    ASSERT_TRUE(problem.ok());
    Args args = problem->args();
    args.prepared = nullptr;
    const auto request = exec.engine().request(op, args, {}, DType::f32);
    ASSERT_TRUE(request.ok()) << request.error().message;
    EXPECT_EQ(request->args.prepared, problem->args().prepared) << name;
  }
}

}  // namespace
}  // namespace fulcrum::executor
