// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// activation_spreading on graphs small enough to follow by hand, and the order in which it adds, on every kernel and
// instruction set of this machine.
#include <fulcrum/ops/activation_spreading.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "support/instances.h"
#include "support/special_values.h"

namespace fulcrum::test {
namespace {

using ops::EdgeLists;
using Graph = std::shared_ptr<const ops::SpreadingGraph>;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

struct Rule {
  std::int64_t hops = 1;
  double lambda = 1, theta = 0, cap = kInfinity;
  bool include_source = false;
};

Graph graph_of(std::int64_t nodes, const std::vector<std::int32_t>& begin,
               const std::vector<std::int32_t>& ends, const std::vector<float>& weights, EdgeLists lists) {
  auto graph = ops::make_graph(nodes, begin, ends, weights, lists);
  FULCRUM_ASSERT(graph.ok());
  return *graph;
}

std::vector<float> spread(const backends::Kernel& kernel, const Graph& graph, std::vector<float> x,
                          const Rule& rule) {
  std::vector<float> out(x.size(), -1);
  Args args{};
  args.ptr[0] = x.data();
  args.ptr[1] = out.data();
  args.dim[0] = graph->nodes;
  args.dim[1] = graph->edges;
  args.scalar[0].i = rule.hops;
  args.scalar[1].f = rule.lambda;
  args.scalar[2].f = rule.theta;
  args.scalar[3].f = rule.cap;
  args.scalar[4].i = rule.include_source ? 0 : 1;
  args.prepared = graph.get();
  auto call = backends::Call::make(kernel, args);
  if (!call.ok()) {
    ADD_FAILURE() << call.error().message;
  } else {
    EXPECT_EQ(call->run().code, FULCRUM_OK);
  }
  return out;
}

template <class Body>
void on_every_kernel(const Body& body) {
  for (const backends::Kernel& kernel : host_kernels("activation_spreading")) {
    for (const std::string& isa : isas_of(kernel)) {
      SCOPED_TRACE(kernel.name() + " " + isa);
      const ForcedIsa forced(isa);
      body(kernel);
    }
  }
}

void expect_golden(const Graph& graph, const std::vector<float>& x, const Rule& rule,
                   const std::vector<double>& expected) {
  on_every_kernel([&](const backends::Kernel& kernel) {
    const std::vector<float> out = spread(kernel, graph, x, rule);
    ASSERT_EQ(out.size(), expected.size());
    for (std::size_t i = 0; i < out.size(); ++i)
      EXPECT_NEAR(out[i], expected[i], 1e-7 * (1 + std::abs(expected[i]))) << i;
  });
}

Graph chain() { return graph_of(4, {0, 1, 2, 3, 3}, {1, 2, 3}, {0.5f, 0.5f, 0.5f}, EdgeLists::outgoing); }
Graph two_cycle() { return graph_of(2, {0, 1, 2}, {1, 0}, {1, 1}, EdgeLists::incoming); }

TEST(SpreadingGoldens, OneHopWithoutRulesIsAMatrixTimesAVector) {
  const Graph graph =
      graph_of(3, {0, 2, 3, 5}, {1, 2, 0, 0, 1}, {0.3f, 0.2f, 1, 0.5f, 0.25f}, EdgeLists::incoming);
  expect_golden(graph, {1, 2, 4}, {}, {1.4, 1, 1});
}

TEST(SpreadingGoldens, AlongAChainEachHopTakesItsFactorOnce) {
  expect_golden(chain(), {1, 0, 0, 0}, {.hops = 3}, {0, 0.5, 0.25, 0.125});
  expect_golden(chain(), {1, 0, 0, 0}, {.hops = 3, .lambda = 0.5, .include_source = true},
                {1, 0.25, 0.0625, 0.015625});
  expect_golden(chain(), {1, 0, 0, 0},
                {.hops = 3, .lambda = 0.5, .theta = 0.1, .cap = 1, .include_source = true}, {1, 0.25, 0, 0});
}

TEST(SpreadingGoldens, ACycleStopsAtTheCap) {
  expect_golden(two_cycle(), {1, 0}, {.hops = 3, .cap = 1, .include_source = true}, {1, 1});
  expect_golden(two_cycle(), {1, 0}, {.hops = 3, .include_source = true}, {2, 2});
}

TEST(SpreadingGoldens, NoHopsLeaveTheSource) {
  expect_golden(chain(), {1, 0, 3, 0}, {.hops = 0, .include_source = true}, {1, 0, 3, 0});
  expect_golden(chain(), {1, 0, 3, 0}, {.hops = 0}, {0, 0, 0, 0});
}

TEST(SpreadingGoldens, AStartBeyondTheCapComesBackToItThoughNobodyTellsTheNode) {
  expect_golden(chain(), {0, 0, 0, 5}, {.hops = 1, .cap = 1, .include_source = true}, {0, 0, 0, 1});
  expect_golden(chain(), {-5, 0, 0, 0}, {.hops = 1, .cap = 1, .include_source = true}, {-5, -1, 0, 0});
}

TEST(SpreadingGoldens, NanReachesWhoHearsOfItAndNobodyElse) {
  on_every_kernel([](const backends::Kernel& kernel) {
    const auto out = spread(kernel, chain(), {0, kNan, 0, 1}, {.hops = 1, .theta = 0.1, .cap = 1});
    EXPECT_EQ(out[0], 0);
    EXPECT_EQ(out[1], 0);
    EXPECT_TRUE(std::isnan(out[2]));
    EXPECT_EQ(out[3], 0);
  });
}

/// The order of the definition, written out once more: 32 running sums and their tree, 4096 terms at a time.
float sum_by_definition(const std::vector<float>& terms) {
  float sum = 0;
  if (terms.size() <= 32) {
    for (const float term : terms) sum = sum + term;
    return sum;
  }
  for (std::size_t segment = 0; segment < terms.size(); segment += 4096) {
    std::vector<float> lane(32, 0.0f);
    for (std::size_t i = segment; i < std::min(segment + 4096, terms.size()); ++i) {
      lane[(i - segment) % 32] = lane[(i - segment) % 32] + terms[i];
    }
    for (const std::size_t width : {16, 8, 4, 2, 1}) {
      for (std::size_t i = 0; i < width; ++i) lane[i] = lane[i] + lane[i + width];
    }
    sum = terms.size() <= 4096 ? lane[0] : sum + lane[0];
  }
  return sum;
}

TEST(SpreadingGoldens, RowsOfEveryLengthAreAddedInTheOrderOfTheDefinition) {
  constexpr std::int32_t kSources = 50;
  for (const std::int32_t degree : {1, 5, 31, 32, 33, 64, 95, 1000, 4095, 4096, 4097, 8192, 8200, 13000}) {
    std::vector<float> x(kSources + 1), weights(static_cast<std::size_t>(degree)), terms;
    std::vector<std::int32_t> sources(static_cast<std::size_t>(degree)), begin(kSources + 2, 0);
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = ops::random_normal(1, i);
    for (std::size_t e = 0; e < weights.size(); ++e) {
      weights[e] = ops::random_normal(2, e);
      sources[e] = static_cast<std::int32_t>(ops::random_bits(3, e) % kSources);
      terms.push_back(weights[e] * x[static_cast<std::size_t>(sources[e])]);
    }
    begin.back() = degree;  // all edges lead to the last node
    const Graph graph = graph_of(kSources + 1, begin, sources, weights, EdgeLists::incoming);
    on_every_kernel([&](const backends::Kernel& kernel) {
      EXPECT_EQ(spread(kernel, graph, x, {}).back(), sum_by_definition(terms)) << degree;
    });
  }
}

TEST(SpreadingGoldens, FewActiveNodesGiveTheBitsOfManyHopsThroughEveryRow) {
  // Two active nodes of 3,000 at first, nearly all of them after some hops.
  auto problem =
      ops::Problem::make(op_of("activation_spreading"), shape_of("n=3000,nnz=15000,hops=8,theta=0"));
  ASSERT_TRUE(problem.ok());
  std::vector<float> x(3000, 0.0f);
  x[17] = 0.5f;
  x[2999] = -0.25f;
  set(*problem, 0, x);
  problem->adopt_inputs();
  std::vector<std::byte> expected;
  on_every_kernel([&](const backends::Kernel& kernel) {
    problem->reset();
    ASSERT_TRUE(run(kernel, *problem));
    const Oracle oracle = problem->check();
    EXPECT_TRUE(oracle.passed) << oracle.detail;
    const auto bytes = output_bytes(*problem);
    if (expected.empty()) expected = bytes;
    EXPECT_EQ(bytes, expected);
  });
  const auto out = floats(*problem, 1);
  EXPECT_GT(std::count_if(out.begin(), out.end(), [](float v) { return v != 0; }), 1000);
}

TEST(SpreadingGoldens, ParametersOutsideTheirRangeAreRefused) {
  for (const std::string_view wrong : {"hops=-1", "lambda=0", "lambda=1.5", "theta=-0.5", "cap=0", "n=0"}) {
    const std::string text = (wrong == "n=0" ? "" : "n=4,") + std::string("nnz=3,") + std::string(wrong);
    EXPECT_FALSE(ops::resolve(op_of("activation_spreading"), shape_of(text)).ok()) << text;
  }
}

TEST(SpreadingGoldens, SizesThatAreNotTheGraphsAreRefused) {
  const Graph graph = chain();
  float x[5] = {}, out[5] = {};
  Args args = *ops::resolve(op_of("activation_spreading"), shape_of("n=5,nnz=3"));
  args.ptr[0] = x;
  args.ptr[1] = out;
  const auto kernel = backends::kernel("activation_spreading", "scalar");
  ASSERT_TRUE(kernel.ok());
  EXPECT_FALSE(backends::Call::make(*kernel, args).ok()) << "without a graph";
  args.prepared = graph.get();
  EXPECT_FALSE(backends::Call::make(*kernel, args).ok()) << "with four nodes";
}

}  // namespace
}  // namespace fulcrum::test
