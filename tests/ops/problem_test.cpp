// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// A Problem must find every way in which a kernel can be wrong. Each test plays one such kernel.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>

#include "conformance/shapes.h"
#include "support/instances.h"

namespace fulcrum::ops {
namespace {

using test::floats;
using test::op_of;
using test::shape_of;

Problem make(std::string_view op, std::string_view shape, const Problem::Options& options = {}) {
  auto problem = Problem::make(op_of(op), shape_of(shape), options);
  FULCRUM_ASSERT(problem.ok());
  return std::move(problem).value();
}

void run_scalar(Problem& problem) {
  const auto kernel = backends::kernel(problem.op().name, "scalar");
  ASSERT_TRUE(kernel.ok());
  ASSERT_TRUE(test::run(*kernel, problem));
}

TEST(Problem, ARightResultPasses) {
  Problem problem = make("relu", "n=1000");
  run_scalar(problem);
  const Oracle oracle = problem.check();
  EXPECT_TRUE(oracle.passed) << oracle.detail;
  EXPECT_EQ(oracle.checked, 1000);
  EXPECT_EQ(oracle.max_error_ulp, 0);
}

TEST(Problem, InputsAreTheDrawnOnes) {
  Problem problem = make("dot", "n=3");
  EXPECT_EQ(floats(problem, 0)[2], random_uniform(tensor_key(0), 2, -1, 1));
  EXPECT_EQ(floats(problem, 1)[0], random_uniform(tensor_key(1), 0, -1, 1));
  Problem other = make("dot", "n=3", {.seed = 43});
  EXPECT_EQ(floats(other, 0)[2], random_uniform(tensor_key(0, 43), 2, -1, 1));
}

TEST(Problem, AnOutputThatIsNotWrittenIsFound) {
  Problem problem = make("relu", "n=100");
  run_scalar(problem);
  std::memset(&floats(problem, 1)[57], 0xFF, sizeof(float));
  const Oracle oracle = problem.check();
  EXPECT_FALSE(oracle.passed);
  EXPECT_EQ(oracle.detail, "out[57] was never written");
}

TEST(Problem, AWrongValueIsNamed) {
  Problem problem = make("sigmoid", "n=100");
  run_scalar(problem);
  floats(problem, 1)[99] *= 1.00001f;
  const Oracle oracle = problem.check();
  EXPECT_FALSE(oracle.passed);
  EXPECT_EQ(oracle.detail.find("out[99] is "), 0u) << oracle.detail;
  EXPECT_NE(oracle.detail.find("1 of 100"), std::string::npos) << oracle.detail;
  EXPECT_GT(oracle.max_error_share, 1);
}

TEST(Problem, WritingOneElementTooFarIsFound) {
  for (const std::int64_t where : {std::int64_t{-1}, std::int64_t{100}}) {
    Problem problem = make("relu", "n=100");
    run_scalar(problem);
    problem.args().out<float>(1)[where] = 0;
    EXPECT_EQ(problem.check().detail, "bytes outside of out were written") << where;
  }
}

TEST(Problem, ChangingAnInputIsFoundAndUndone) {
  Problem problem = make("dot", "n=100");
  run_scalar(problem);
  const float before = floats(problem, 1)[50];
  floats(problem, 1)[50] += 1;
  EXPECT_EQ(problem.check().detail, "the input b was changed");
  problem.reset();
  EXPECT_EQ(floats(problem, 1)[50], before);
}

TEST(Problem, NanInTheWrongPlaceIsFoundBothWays) {
  Problem problem = make("relu", "n=10", {.special = Problem::Special::nan});
  run_scalar(problem);
  EXPECT_TRUE(problem.check().passed);
  EXPECT_TRUE(std::isnan(floats(problem, 1)[0]));
  floats(problem, 1)[0] = 0;  // a relu that drops NaN
  EXPECT_FALSE(problem.check().passed);
  Problem clean = make("relu", "n=10");
  run_scalar(clean);
  floats(clean, 1)[3] = NAN;
  EXPECT_FALSE(clean.check().passed);
}

TEST(Problem, InfinityOfTheWrongSignIsFound) {
  Problem problem = make("vec_add", "n=1");
  test::set(problem, 0, {INFINITY});
  test::set(problem, 1, {1});
  problem.adopt_inputs();
  floats(problem, 3)[0] = -INFINITY;
  EXPECT_FALSE(problem.check().passed);
  floats(problem, 3)[0] = INFINITY;
  EXPECT_TRUE(problem.check().passed);
}

TEST(Problem, InPlaceCallsAreCheckedAgainstTheInputsAsTheyWere) {
  Problem problem = make("sigmoid", "n=100", {.in_place = true});
  EXPECT_EQ(problem.args().ptr[0], problem.args().ptr[1]);
  const float x = floats(problem, 0)[10];
  run_scalar(problem);
  EXPECT_NE(floats(problem, 0)[10], x);
  EXPECT_TRUE(problem.check().passed);
  problem.reset();
  EXPECT_EQ(floats(problem, 0)[10], x);
  EXPECT_FALSE(problem.check().passed) << "the input is not the result";
}

TEST(Problem, OnlyElementWiseOpsWorkInPlace) {
  EXPECT_EQ(Problem::make(op_of("softmax"), shape_of("n=10"), {.in_place = true}).error().code,
            Code::unsupported);
}

TEST(Problem, LossOfPrecisionInMatmulIsFoundByTheNormGate) {
  constexpr std::size_t kSize = 4, kDepth = 4096;
  Problem problem = make("matmul", "M=4,N=4,K=4096");
  // TF32 keeps 10 bits of the mantissa of each operand: at this depth the bound per element does not see it.
  const auto cut = [](float value) {
    const std::uint32_t bits = (std::bit_cast<std::uint32_t>(value) + 0x1000) & ~0x1FFFu;
    return static_cast<double>(std::bit_cast<float>(bits));
  };
  for (std::size_t i = 0; i < kSize; ++i) {
    for (std::size_t j = 0; j < kSize; ++j) {
      double sum = 0;
      for (std::size_t k = 0; k < kDepth; ++k) {
        sum += cut(floats(problem, 0)[i * kDepth + k]) * cut(floats(problem, 1)[k * kSize + j]);
      }
      floats(problem, 3)[i * kSize + j] = static_cast<float>(sum);
    }
  }
  const Oracle oracle = problem.check();
  EXPECT_FALSE(oracle.passed);
  EXPECT_LT(oracle.max_error_share, 1) << "the bound per element";
  EXPECT_NE(oracle.detail.find("this is not fp32 arithmetic"), std::string::npos) << oracle.detail;
}

TEST(Problem, ASoftmaxRowThatDoesNotAddUpIsFound) {
  Problem problem = make("softmax", "rows=2,n=3");
  const Args args = problem.args();
  const auto row = [](double each) {
    std::vector<Checked> checked;
    for (std::int64_t i = 0; i < 3; ++i) checked.push_back(Checked{1, 3 + i, Truth{}, each});
    return checked;
  };
  EXPECT_EQ(problem.op().check_all(args, row(1.0 / 3)), "");
  EXPECT_NE(problem.op().check_all(args, row(1.00001 / 3)), "");
  auto part = row(0.1);
  part.pop_back();
  EXPECT_EQ(problem.op().check_all(args, part), "") << "half a row says nothing";
}

TEST(Problem, LargeProblemsAreCheckedInPartAndStillFindPoison) {
  Problem problem = make("cosine_similarity", "Q=64,N=4096,D=1024");
  const auto out = floats(problem, 3);
  const Oracle untouched = problem.check();
  EXPECT_FALSE(untouched.passed);
  EXPECT_GE(untouched.checked, 1024);
  EXPECT_LT(untouched.checked, static_cast<std::int64_t>(out.size()));
}

TEST(Problem, ListsHaveUnequalLengthsThatAddUp) {
  Problem problem = make("vec_add", "n=1000,B=7,layout=list");
  const auto* lengths = problem.args().in<std::int64_t>(2);
  std::int64_t sum = 0;
  bool differ = false;
  for (int v = 0; v < 7; ++v) {
    sum += lengths[v];
    differ |= lengths[v] != lengths[0];
  }
  EXPECT_EQ(sum, 1000);
  EXPECT_TRUE(differ);
  run_scalar(problem);
  const Oracle oracle = problem.check();
  EXPECT_TRUE(oracle.passed) << oracle.detail;
  EXPECT_EQ(oracle.checked, 1000);
}

TEST(Problem, MoreThanHalfOfMemoryIsRefused) {
  const auto problem = Problem::make(op_of("relu"), shape_of("n=1e13"));
  ASSERT_FALSE(problem.ok());
  EXPECT_EQ(problem.error().code, Code::out_of_memory);
}

TEST(Problem, EmptyProblemsPass) {
  for (const Op* op : all()) {
    if (op->is_probe()) continue;
    for (const Shape& shape : test::edge_shapes(*op)) {
      if (outputs(*op, *resolve(*op, shape)) > 0) continue;
      auto problem = Problem::make(*op, shape);
      ASSERT_TRUE(problem.ok()) << op->name << ": " << problem.error().message;
      run_scalar(*problem);
      const Oracle oracle = problem->check();
      EXPECT_TRUE(oracle.passed) << op->name << " with " << shape.text() << ": " << oracle.detail;
    }
  }
}

}  // namespace
}  // namespace fulcrum::ops
