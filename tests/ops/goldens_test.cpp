// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Results that are known by heart, on every kernel and instruction set of this machine.
#include <gtest/gtest.h>

#include <cmath>

#include "support/instances.h"
#include "support/special_values.h"

namespace fulcrum::test {
namespace {

struct Golden {
  std::string_view op, shape;
  std::vector<std::vector<float>> inputs;  // by pointer slot; an empty one stays as it is
  std::vector<double> expected;            // the first outputs; NaN means NaN
  double relative = 1e-6;                  // 0: exact
  double absolute = 0;
};

std::vector<float> repeated(std::size_t n, float value) { return std::vector<float>(n, value); }

template <class Value>
std::vector<float> ramp(std::size_t n, const Value& value) {
  std::vector<float> result(n);
  for (std::size_t i = 0; i < n; ++i) result[i] = static_cast<float>(value(static_cast<double>(i)));
  return result;
}

std::vector<Golden> element_wise() {
  const std::vector<float> x = {-100, -3, -1, 0, 1, 3, kNan, -kInf, kInf};
  return {
      {"relu", "n=9", {x}, {0, 0, 0, 0, 1, 3, kNan, 0, kInf}, 0},
      {"sigmoid",
       "n=9",
       {x},
       {0, 0.0474258732, 0.268941421, 0.5, 0.731058579, 0.952574127, kNan, 0, 1},
       1e-6,
       0x1p-126},
      {"tanh", "n=9", {x}, {-1, -0.995054754, -0.761594156, 0, 0.761594156, 0.995054754, kNan, -1, 1}},
      {"vec_add", "n=2", {{1e8f, kInf}, {1, -kInf}}, {1e8, kNan}, 0},
  };
}

std::vector<Golden> reductions() {
  const auto identity = [](double i) { return i; };
  const auto successor = [](double i) { return i + 1; };
  const auto half = [](double i) { return 0.5 * i; };
  std::vector<float> ones_768 = repeated(768, 1), alternating = repeated(768, 1);
  for (std::size_t i = 1; i < 768; i += 2) alternating[i] = -1;
  return {
      {"dot", "n=0", {}, {0}, 0},
      {"dot", "n=257", {repeated(257, 1), repeated(257, 1)}, {257}, 0},
      {"dot", "n=100000", {ramp(100000, identity), ramp(100000, successor)}, {333333333300000.0}, 2e-6},
      {"dot", "n=1000", {ramp(1000, half), ramp(1000, half)}, {83208375}, 2e-6},
      {"dot", "n=1000000", {ramp(1000000, half), ramp(1000000, half)}, {8.3333208333375e16}, 3e-6},
      {"softmax", "n=3", {{1, 2, 3}}, {0.0900305732, 0.244728471, 0.665240956}},
      {"softmax", "n=2", {{0, std::log(3.0f)}}, {0.25, 0.75}},
      {"softmax", "n=2", {{1000, 1000}}, {0.5, 0.5}, 0},
      {"softmax", "n=2", {{-1000, 0}}, {0, 1}, 0, 0x1p-126},
      {"softmax", "n=1", {{-7}}, {1}, 0},
      {"softmax",
       "rows=4,n=3",
       {{0, -kInf, 0, 1, kNan, 2, 1, kInf, 2, -kInf, -kInf, -kInf}},
       {0.5, 0, 0.5, kNan, kNan, kNan, kNan, kNan, kNan, kNan, kNan, kNan}},
      {"cosine_similarity", "Q=1,N=1,D=2", {{3, 4}, {4, 3}}, {0.96}},
      {"cosine_similarity", "Q=1,N=1,D=3", {{1, 2, 3}, {4, 5, 6}}, {0.9746318462}},
      {"cosine_similarity", "Q=1,N=1,D=768", {ones_768, ramp(768, successor)}, {0.8663070839}, 3e-6},
      {"cosine_similarity", "Q=1,N=1,D=768", {ones_768, alternating}, {0}, 0, 1e-7},
      {"cosine_similarity",
       "Q=1,N=6,D=2",
       {{1, 0}, {1, 0, 0, 1, 1, 1, -1, 0, 2, 0, 0, 0}},
       {1, 0, 0.70710678, -1, 1, 0}},
      {"cosine_similarity", "Q=2,N=2,D=2", {{3e30f, 4e30f, 0, 0}, {4e-30f, 3e-30f, 0, 0}}, {0.96, 0, 0, 0}},
      {"cosine_similarity", "Q=2,N=2,D=2", {{1, kInf, 0, 0}, {4, 3, kNan, 0}}, {kNan, kNan, 0, kNan}},
  };
}

std::vector<Golden> products() {
  std::vector<float> rows(32 * 16);
  for (std::size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<float>(i / 16);
  std::vector<double> expected;
  for (int i = 0; i < 32 * 64; ++i) expected.push_back(16.0 * (i / 64));
  return {
      {"matmul", "M=2,N=2,K=2", {{1, 2, 3, 4}, {5, 6, 7, 8}}, {19, 22, 43, 50}, 0},
      {"matmul",
       "M=17,N=23,K=19",
       {repeated(17 * 19, 1), repeated(19 * 23, 1)},
       std::vector<double>(17 * 23, 19),
       0},
      {"matmul", "M=32,N=64,K=16", {rows, repeated(16 * 64, 1)}, expected, 0},
      {"matmul", "M=256,N=256,K=256", {repeated(65536, 0.1f), repeated(65536, 0.1f)}, {2.56, 2.56}, 3e-6},
      {"matmul", "M=3,N=2,K=0", {}, {0, 0, 0, 0, 0, 0}, 0},
      {"matmul", "M=1,N=2,K=2", {{0, 1}, {kInf, 1, 2, 3}}, {kNan, 3}, 0},
      {"matmul", "M=2,N=1,K=2", {{0, 1, 1, 1}, {-kInf, 2}}, {kNan, -kInf}, 0},
  };
}

void expect_golden(const Golden& golden, const backends::Kernel& kernel) {
  auto problem = ops::Problem::make(op_of(golden.op), shape_of(golden.shape));
  ASSERT_TRUE(problem.ok()) << problem.error().message;
  for (std::size_t slot = 0; slot < golden.inputs.size(); ++slot) {
    if (!golden.inputs[slot].empty()) set(*problem, static_cast<int>(slot), golden.inputs[slot]);
  }
  problem->adopt_inputs();
  if (!run(kernel, *problem)) return;
  const Oracle oracle = problem->check();
  EXPECT_TRUE(oracle.passed) << oracle.detail;
  const auto got = floats(*problem, op_of(golden.op).pointers() - 1);
  ASSERT_GE(got.size(), golden.expected.size());
  for (std::size_t i = 0; i < golden.expected.size(); ++i) {
    const double expected = golden.expected[i];
    if (std::isnan(expected)) {
      EXPECT_TRUE(std::isnan(got[i])) << i << ": " << got[i];
    } else if (std::isinf(expected)) {
      EXPECT_EQ(got[i], expected) << i;
    } else {
      EXPECT_LE(std::abs(got[i] - expected), golden.relative * std::abs(expected) + golden.absolute)
          << i << ": " << got[i] << " is not " << expected;
    }
  }
}

void expect_goldens(const std::vector<Golden>& goldens) {
  for (const Golden& golden : goldens) {
    int ran = 0;
    for (const backends::Kernel& kernel : host_kernels(golden.op)) {
      for (const std::string& isa : isas_of(kernel)) {
        SCOPED_TRACE(fmt::format("{} {} {}", kernel.name(), isa, golden.shape));
        const ForcedIsa forced(isa);
        expect_golden(golden, kernel);
        ++ran;
      }
    }
    EXPECT_GE(ran, 1) << golden.op;
  }
}

TEST(Goldens, OfElementWiseOpsHoldOnEveryKernel) { expect_goldens(element_wise()); }
TEST(Goldens, OfReductionsHoldOnEveryKernel) { expect_goldens(reductions()); }
TEST(Goldens, OfMatmulHoldOnEveryKernel) { expect_goldens(products()); }

TEST(Goldens, VecAddOfConsecutiveNumbersIsExact) {
  std::vector<double> expected;
  for (int i = 0; i < 100000; ++i) expected.push_back(2.0 * i + 1);
  expect_goldens({{"vec_add",
                   "n=100000",
                   {ramp(100000, [](double i) { return i; }), ramp(100000, [](double i) { return i + 1; })},
                   expected,
                   0}});
}

TEST(Goldens, SoftmaxOfTheLongRampEndsWhereItMust) {
  for (const backends::Kernel& kernel : host_kernels("softmax")) {
    SCOPED_TRACE(kernel.name());
    auto problem = ops::Problem::make(op_of("softmax"), shape_of("n=10000"));
    ASSERT_TRUE(problem.ok());
    set(*problem, 0, ramp(10000, [](double i) { return 0.01 * i - 50; }));
    problem->adopt_inputs();
    ASSERT_TRUE(run(kernel, *problem));
    EXPECT_TRUE(problem->check().passed);
    EXPECT_NEAR(floats(*problem, 1)[9999], 0.00995016625, 1e-7);
  }
}

TEST(Goldens, TanhIsOddBitByBit) {
  for (const backends::Kernel& kernel : host_kernels("tanh")) {
    for (const std::string& isa : isas_of(kernel)) {
      SCOPED_TRACE(kernel.name() + " " + isa);
      const ForcedIsa forced(isa);
      auto problem = ops::Problem::make(op_of("tanh"), shape_of("n=4000"));
      ASSERT_TRUE(problem.ok());
      const auto x = floats(*problem, 0);
      for (std::size_t i = 0; i < 2000; ++i) x[i + 2000] = -x[i];
      problem->adopt_inputs();
      ASSERT_TRUE(run(kernel, *problem));
      const auto y = floats(*problem, 1);
      for (std::size_t i = 0; i < 2000; ++i) ASSERT_EQ(y[i + 2000], -y[i]) << x[i];
    }
  }
}

TEST(Goldens, VecAddOfAListIsTheSumOfEachVector) {
  float a0[] = {1, 2, 3}, a2[] = {4}, b0[] = {10, 20, 30}, b2[] = {40}, out0[3] = {}, out2[1] = {};
  float* a[] = {a0, nullptr, a2};
  float* b[] = {b0, nullptr, b2};
  float* out[] = {out0, nullptr, out2};
  std::int64_t lengths[] = {3, 0, 1};
  for (const backends::Kernel& kernel : host_kernels("vec_add")) {
    SCOPED_TRACE(kernel.name());
    Args args = *ops::resolve(op_of("vec_add"), shape_of("n=4,B=3,layout=list"));
    args.ptr[0] = a;
    args.ptr[1] = b;
    args.ptr[2] = lengths;
    args.ptr[3] = out;
    auto call = backends::Call::make(kernel, args);
    if (!call.ok() && call.error().code == Code::unsupported) continue;
    ASSERT_TRUE(call.ok()) << call.error().message;
    ASSERT_EQ(call->run().code, FULCRUM_OK);
    EXPECT_EQ(std::vector<float>(out0, out0 + 3), (std::vector<float>{11, 22, 33}));
    EXPECT_EQ(out2[0], 44);
    out0[0] = out0[1] = out0[2] = out2[0] = 0;
  }
}

}  // namespace
}  // namespace fulcrum::test
