// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Results of dendritic_integration that are known by heart, on every kernel and instruction set of this machine.
#include "support/known_results.h"
#include "support/special_values.h"

namespace fulcrum::test {
namespace {

constexpr const char* kTypes[] = {"sigmoid", "nmda", "active_bp", "multiplicative"};

/// One dendrite without synapses a neuron: x is half the state.
void expect_values(int type, const std::vector<float>& x, const std::vector<double>& expected,
                   double absolute = 0) {
  std::vector<float> state;
  for (const float value : x) state.push_back(2 * value);
  const std::string shape = fmt::format("N={},D=1,S=0,type={}", x.size(), kTypes[type]);
  expect_known({"dendritic_integration", shape, {{}, {}, state}, {{3, expected}}, 1e-6, absolute});
}

TEST(DendriticIntegrationGoldens, SixteenEqualSynapses) {
  const double expected[] = {0.952574127, -0.409917967, 0.670320046, 0.664036770};
  for (int type = 0; type < 4; ++type) {
    const std::string shape = fmt::format("N=10,D=8,S=16,type={}", kTypes[type]);
    expect_known({"dendritic_integration",
                  shape,
                  {repeated(1280, 0.5f), repeated(1280, 0.1f), repeated(10, 0)},
                  {{3, std::vector<double>(10, expected[type])}},
                  3e-6});
  }
}

TEST(DendriticIntegrationGoldens, EachBranchAtZeroAndOne) {
  // x = -1, 0, 1.
  expect_values(0, {-1, 0, 1}, {3.05902e-7, 0.00669285092, 0.993307149}, 1e-12);
  expect_values(1, {-1, 0, 1}, {0.484504963, 0, -0.515495037});
  expect_values(2, {-1, 0, 1}, {-0.1, 0, 0.849142924});
  expect_values(3, {-1, 0, 1}, {-0.761594156, 0, 0.761594156});
}

TEST(DendriticIntegrationGoldens, LimitsAtInfinityAndNan) {
  const std::vector<float> x = {-kInf, kInf, kNan, -1e30f, 1e30f};
  expect_values(0, x, {0, 1, kNan, 0, 1});
  expect_values(1, x, {0, -kInf, kNan, 0, -1e30});
  expect_values(2, x, {-kInf, 0, kNan, -1e29, 0});
  expect_values(3, x, {-1, 1, kNan, -1, 1});
}

TEST(DendriticIntegrationGoldens, EitherBranchIsRightAtTheThreshold) {
  // 0.3 in f32 is above 0.3: the fp64 reference takes the upper branch, fp32 the lower one.
  for (const backends::Kernel& kernel : host_kernels("dendritic_integration")) {
    ops::Problem problem =
        known_problem({"dendritic_integration", "N=1,D=1,S=1,type=active_bp", {{0.3f}, {1}, {0}}, {}});
    ASSERT_TRUE(run(kernel, problem));
    const Oracle oracle = problem.check();
    EXPECT_TRUE(oracle.passed) << kernel.name() << ": " << oracle.detail;
  }
}

TEST(DendriticIntegrationGoldens, TheMeanIsOverDendritesNotOverSynapses) {
  // tanh of 1, 0 and -1 and of 0.5 three times.
  expect_known({"dendritic_integration",
                "N=2,D=3,S=2,type=multiplicative",
                {{1, 0, 0, 0, -1, 0, 0.25f, 0.25f, 0.5f, 0, 0, 0.5f}, repeated(12, 1), {0, 0}},
                {{3, {0, 0.46211715726}}},
                1e-6,
                1e-8});
}

TEST(DendriticIntegration, RefusesTypesAndShapesWithoutMeaning) {
  expect_refused("dendritic_integration", "N=1,D=0,S=4", Code::invalid_shape, "D=0");
  expect_refused("dendritic_integration", "N=1,D=-2,S=4", Code::invalid_shape, "D=-2");
  Args args = *ops::resolve(op_of("dendritic_integration"), shape_of("N=1,D=1,S=0"));
  for (const std::int64_t code : {-1, 4}) {
    args.scalar[0].i = code;
    const Status status = ops::check_args(op_of("dendritic_integration"), args);
    ASSERT_FALSE(status.ok());
    EXPECT_EQ(status.error().code, Code::invalid_argument);
  }
}

}  // namespace
}  // namespace fulcrum::test
