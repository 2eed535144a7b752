// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Results of ar_forecast that are known by heart, and its bits, which are those of the plain chain on every kernel
// and instruction set.
#include "support/known_results.h"
#include "support/special_values.h"

namespace fulcrum::test {
namespace {

TEST(ArForecastGoldens, FibonacciNumbers) {
  expect_known({"ar_forecast", "S=1,H=2,p=2,T=5", {{1, 1}, {1, 1}}, {{2, {2, 3, 5, 8, 13}}}, 0});
}

TEST(ArForecastGoldens, HalvesOfTheLastValue) {
  expect_known({"ar_forecast", "S=1,H=3,p=1,T=4", {{5, 6, 8}, {0.5f}}, {{2, {4, 2, 1, 0.5}}}, 0});
}

TEST(ArForecastGoldens, StepsFeedLaterSteps) {
  // A kernel that ran steps side by side over unwritten zeros would say 36.45, -15.73, 15.62, -5.24, 5.20, 0, ...
  std::vector<float> history;
  for (int i = 0; i < 1000; ++i)
    history.push_back(static_cast<float>(100 + 0.01 * i + 10 * std::sin(0.1 * i)));
  expect_known(
      {"ar_forecast",
       "S=1,H=1000,p=5,T=10",
       {history, {0.5f, -0.3f, 0.2f, -0.1f, 0.05f}},
       {{2, {36.44578, 2.49497, 5.93070, 4.26214, 2.41082, 2.68570, 1.00371, 0.04863, 0.23237, 0.15431}}},
       0,
       2e-5});
}

TEST(ArForecastGoldens, SeriesHaveTheirOwnModelsOrShareOne) {
  expect_known({"ar_forecast", "S=2,H=1,p=1,T=2,C=2", {{1, 10}, {2, 3}}, {{2, {2, 4, 30, 90}}}, 0});
  expect_known({"ar_forecast", "S=2,H=1,p=1,T=2", {{1, 10}, {2}}, {{2, {2, 4, 20, 40}}}, 0});
}

TEST(ArForecastGoldens, NanAndInfReachTheStepsWhoseLagsHoldThem) {
  expect_known(
      {"ar_forecast", "S=2,H=3,p=2,T=2", {{kNan, 1, 1, 1, kInf, 1}, {1, 1}}, {{2, {2, 3, kInf, kInf}}}, 0});
  expect_known({"ar_forecast", "S=1,H=2,p=2,T=2", {{1, kNan}, {1, 0}}, {{2, {kNan, kNan}}}, 0});
}

TEST(ArForecast, RefusesOrdersAndShapesWithoutMeaning) {
  expect_refused("ar_forecast", "S=1,H=5,p=0,T=1", Code::invalid_argument, "p=0");
  expect_refused("ar_forecast", "S=1,H=2000,p=1025,T=1", Code::invalid_argument, "p=1025");
  expect_refused("ar_forecast", "S=1,H=4,p=5,T=1", Code::invalid_shape, "H=4");
  expect_refused("ar_forecast", "S=3,H=5,p=5,T=1,C=2", Code::invalid_shape, "C=2");
}

TEST(ArForecast, HasTheBitsOfThePlainChainOnEveryKernel) {
  const auto plain = backends::kernel("ar_forecast", "scalar");
  ASSERT_TRUE(plain.ok());
  int compared = 0;
  for (const std::string_view shape :
       {"S=1,H=600,p=512,T=300", "S=1,H=9,p=5,T=50", "S=1,H=90,p=33,T=70", "S=1,H=90,p=70,T=200",
        "S=97,H=40,p=7,T=33", "S=66,H=40,p=33,T=20,C=66", "S=65,H=1030,p=1024,T=65"}) {
    auto problem = ops::Problem::make(op_of("ar_forecast"), shape_of(shape));
    ASSERT_TRUE(problem.ok());
    ASSERT_TRUE(run(*plain, *problem));
    const auto bits = output_bytes(*problem);
    for (const backends::Kernel& kernel : host_kernels("ar_forecast")) {
      for (const std::string& isa : isas_of(kernel)) {
        const ForcedIsa forced(isa);
        problem->reset();
        ASSERT_TRUE(run(kernel, *problem));
        EXPECT_EQ(bits, output_bytes(*problem)) << kernel.name() << " " << isa << " " << shape;
        ++compared;
      }
    }
  }
  EXPECT_GT(compared, 0);
}

TEST(ArForecast, AStepIsAChainOfFmasFromTheOldestLagOn) {
  for (const backends::Kernel& kernel : host_kernels("ar_forecast")) {
    for (const std::string& isa : isas_of(kernel)) {
      SCOPED_TRACE(kernel.name() + " " + isa);
      const ForcedIsa forced(isa);
      auto problem = ops::Problem::make(op_of("ar_forecast"), shape_of("S=3,H=40,p=33,T=1"));
      ASSERT_TRUE(problem.ok());
      ASSERT_TRUE(run(kernel, *problem));
      const auto history = floats(*problem, 0), c = floats(*problem, 1), y = floats(*problem, 2);
      for (std::size_t s = 0; s < 3; ++s) {
        float sum = 0;
        for (std::size_t lag = 33; lag-- > 0;) sum = std::fma(c[lag], history[(s + 1) * 40 - 1 - lag], sum);
        EXPECT_EQ(y[s], sum);
      }
    }
  }
}

}  // namespace
}  // namespace fulcrum::test
