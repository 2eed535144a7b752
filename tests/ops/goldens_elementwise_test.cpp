// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Results of leaky_relu, elu, clip, swish, gelu and log_softmax that are known by heart, and the parameters they refuse.
#include "support/known_results.h"
#include "support/special_values.h"

namespace fulcrum::test {
namespace {

const std::vector<float> kX = {-100, -3, -1, 0, 1, 3, kNan, -kInf, kInf};

void expect_values(std::string_view op, std::string_view shape, const std::vector<double>& expected,
                   double relative, double absolute = 0) {
  expect_known({op, shape, {kX}, {{1, expected}}, relative, absolute});
}

TEST(ElementWiseGoldens, LeakyRelu) {
  expect_values("leaky_relu", "n=9", {-1, -0.03, -0.01, 0, 1, 3, kNan, -kInf, kInf}, 1e-7);
  expect_values("leaky_relu", "n=9,al=0.5", {-50, -1.5, -0.5, 0, 1, 3, kNan, -kInf, kInf}, 0);
}

TEST(ElementWiseGoldens, LeakyReluWithoutASlopeIsRelu) {
  expect_values("leaky_relu", "n=9,al=0", {0, 0, 0, 0, 1, 3, kNan, 0, kInf}, 0);
}

TEST(ElementWiseGoldens, Elu) {
  expect_values("elu", "n=9", {-1, -0.950212932, -0.632120559, 0, 1, 3, kNan, -1, kInf}, 1e-6);
  expect_values("elu", "n=9,al=2", {-2, -1.900425863, -1.264241118, 0, 1, 3, kNan, -2, kInf}, 1e-6);
}

TEST(ElementWiseGoldens, EluKeepsTheDigitsOfSmallNumbers) {
  expect_known({"elu", "n=2", {{-1e-4f, -1e-20f}}, {{1, {-9.9995e-5, -1e-20}}}, 2e-7});
}

TEST(ElementWiseGoldens, Clip) {
  expect_values("clip", "n=9", {-1, -1, -1, 0, 1, 1, kNan, -1, 1}, 0);
  expect_values("clip", "n=9,lo=0.5,hi=0.5", {0.5, 0.5, 0.5, 0.5, 0.5, 0.5, kNan, 0.5, 0.5}, 0);
}

TEST(ElementWiseGoldens, Swish) {
  expect_values("swish", "n=9", {0, -0.142277620, -0.268941421, 0, 0.731058579, 2.85772238, kNan, 0, kInf},
                1e-6, 0x1p-119);
}

TEST(ElementWiseGoldens, Gelu) {
  expect_values("gelu", "n=9", {0, -0.00363739208, -0.158808009, 0, 0.841191991, 2.99636261, kNan, 0, kInf},
                4e-6, 1e-12);
}

TEST(LogSoftmaxGoldens, ShortRows) {
  expect_known({"log_softmax", "n=3", {{1, 2, 3}}, {{1, {-2.40760596, -1.40760596, -0.407605964}}}});
  expect_known({"log_softmax", "n=2", {{-1000, 0}}, {{1, {-1000, 0}}}, 0});
  expect_known({"log_softmax", "n=1", {{-7}}, {{1, {0}}}, 0});
  expect_known({"log_softmax", "n=2", {{5000, 5000}}, {{1, {-0.693147181, -0.693147181}}}, 2e-7});
}

TEST(LogSoftmaxGoldens, NanAndInfinitiesTakeTheirRowsAlone) {
  expect_known(
      {"log_softmax",
       "rows=4,n=3",
       {{0, -kInf, 0, 1, kNan, 2, 1, kInf, 2, -kInf, -kInf, -kInf}},
       {{1, {-0.693147181, -kInf, -0.693147181, kNan, kNan, kNan, kNan, kNan, kNan, kNan, kNan, kNan}}}});
}

/// A row of n numbers that are `low` but for one; a place in another chunk must count as one in the first.
std::vector<float> row_with(std::size_t n, float low, std::size_t place, float value) {
  std::vector<float> x(n, low);
  x[place] = value;
  return x;
}

TEST(LogSoftmaxGoldens, TheLongRampBeginsAndEndsWhereItMust) {
  std::vector<float> ramp(10000);
  for (std::size_t i = 0; i < ramp.size(); ++i)
    ramp[i] = static_cast<float>(0.01 * static_cast<double>(i) - 50);
  for (const backends::Kernel& kernel : host_kernels("log_softmax")) {
    SCOPED_TRACE(kernel.name());
    ops::Problem problem = known_problem({"log_softmax", "n=10000", {ramp}, {}});
    ASSERT_TRUE(run(kernel, problem));
    EXPECT_TRUE(problem.check().passed);
    EXPECT_NEAR(floats(problem, 1)[0], -104.600166, 3e-5);
    EXPECT_NEAR(floats(problem, 1)[9999], -4.61016602, 3e-6);
  }
}

TEST(SoftmaxGoldens, OneElementFarAboveAllOthersTakesTheRowWhereverItStands) {
  for (const std::size_t place : {0, 255, 256, 8191, 8192, 19999}) {
    SCOPED_TRACE(place);
    std::vector<double> one(20000, 0.0), log(20000, -500.0);
    one[place] = 1;
    log[place] = 0;
    for (const float low : {-100.0f, 2500.0f}) {
      const std::vector<float> x = row_with(20000, low, place, low + 500);
      expect_known({"softmax", "n=20000", {x}, {{1, one}}, 0, 0x1p-126});
      expect_known({"log_softmax", "n=20000", {x}, {{1, log}}, 0});
    }
  }
}

TEST(SoftmaxGoldens, ChunksOfMinusInfinityAddNothing) {
  std::vector<float> x(20000, -kInf);
  x[17000] = 3;
  x[17001] = 3;
  std::vector<double> half(20000, 0.0);
  half[17000] = half[17001] = 0.5;
  expect_known({"softmax", "n=20000", {x}, {{1, half}}, 1e-7});
}

TEST(SoftmaxGoldens, ANanOrAnInfinityInALaterChunkReachesTheFirst) {
  for (const float special : {kNan, kInf}) {
    const std::vector<float> x = row_with(20000, 1, 9001, special);
    const std::vector<double> all(20000, kNan);
    expect_known({"softmax", "n=20000", {x}, {{1, all}}});
    expect_known({"log_softmax", "n=20000", {x}, {{1, all}}});
  }
}

TEST(ElementWise, RefusesParametersOutOfRange) {
  expect_refused("leaky_relu", "n=4,al=-0.5", Code::invalid_argument, "al=-0.5");
  expect_refused("leaky_relu", "n=4,al=1", Code::invalid_argument, "al=1");
  expect_refused("elu", "n=4,al=0", Code::invalid_argument, "al=0");
  expect_refused("elu", "n=4,al=-1", Code::invalid_argument, "al=-1");
  expect_refused("clip", "n=4,lo=2,hi=1", Code::invalid_argument, "lo=2");
}

/// What the op says of one parameter that no shape can spell.
Code code_with(std::string_view op, int parameter, double value) {
  Args args = *ops::resolve(op_of(op), shape_of("n=4"));
  args.scalar[parameter].f = value;
  const Status status = ops::check_args(op_of(op), args);
  return status.ok() ? Code::ok : status.error().code;
}

TEST(ElementWise, RefusesParametersThatAreNoNumbers) {
  EXPECT_EQ(code_with("leaky_relu", 0, NAN), Code::invalid_argument);
  EXPECT_EQ(code_with("leaky_relu", 0, INFINITY), Code::invalid_argument);
  EXPECT_EQ(code_with("elu", 0, NAN), Code::invalid_argument);
  EXPECT_EQ(code_with("elu", 0, INFINITY), Code::invalid_argument);
  EXPECT_EQ(code_with("elu", 0, 1e300), Code::invalid_argument);  // infinite as f32
  EXPECT_EQ(code_with("clip", 0, NAN), Code::invalid_argument);
  EXPECT_EQ(code_with("clip", 1, NAN), Code::invalid_argument);
}

TEST(ElementWise, ClipTakesInfiniteBounds) {
  EXPECT_EQ(code_with("clip", 0, -INFINITY), Code::ok);
  for (const backends::Kernel& kernel : host_kernels("clip")) {
    for (const std::string& isa : isas_of(kernel)) {
      SCOPED_TRACE(kernel.name() + " " + isa);
      const ForcedIsa forced(isa);
      ops::Problem problem = known_problem({"clip", "n=9", {kX}, {}});
      problem.args().scalar[0].f = -INFINITY;
      ASSERT_TRUE(run(kernel, problem));
      expect_near(floats(problem, 1), {-100, -3, -1, 0, 1, 1, kNan, -kInf, 1}, 0, 0);
    }
  }
}

}  // namespace
}  // namespace fulcrum::test
