// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Lazy expressions: one call for all of it, the bits of the ops one by one, what is common computed once, and more than
// a tape holds in several passes.
#include <fulcrum/executor/expression.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "executor/expression_graph.h"

namespace fulcrum::executor {
namespace {

constexpr std::int64_t kSize = 1000;

/// One thread and one backend, so that bits may be compared.
Executor simd_executor() {
  Options options;
  options.policy.backend = "simd";
  options.policy.explore_credit = 0;
  options.use_device = false;
  options.load_table = false;
  auto made = Executor::make(options);
  EXPECT_TRUE(made.ok()) << made.error().message;
  return made.value();
}

Buffer<float> drawn(const Executor& exec, int tensor, std::int64_t n = kSize) {
  std::vector<float> values(static_cast<std::size_t>(n));
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = ops::random_uniform(ops::tensor_key(tensor), i, -3, 3);
  return exec.buffer<float>(std::span<const float>(values)).value();
}

std::vector<float> read(const Buffer<float>& buffer) {
  const auto values = buffer.read();
  EXPECT_TRUE(values.ok());
  return {values->begin(), values->end()};
}

std::vector<float> evaluated(const Expression& expression, const Executor& exec) {
  auto result = expression.eval(exec);
  EXPECT_TRUE(result.ok()) << result.error().message;
  return result.ok() ? read(*result) : std::vector<float>{};
}

int steps(const Expression& expression) {
  auto graph = graph_of(expression.node());
  EXPECT_TRUE(graph.ok());
  const auto passes = passes_of(*graph);
  EXPECT_TRUE(passes.ok());
  int computed = 0;
  for (const Pass& pass : *passes) {
    for (int i = 0; i < pass.tape.length; ++i)
      computed +=
          pass.tape.step[i].code != ops::TapeCode::load && pass.tape.step[i].code != ops::TapeCode::store;
  }
  return computed;
}

TEST(ExpressionApi, IsOneCallForAllOfIt) {
  const Executor exec = simd_executor();
  const auto a = drawn(exec, 0), b = drawn(exec, 1), c = drawn(exec, 2);
  const Expression e = (a + b) * c;
  EXPECT_EQ(exec.counters().calls, 0) << "operators compute nothing";
  const auto got = evaluated(e, exec);
  EXPECT_EQ(exec.counters().calls, 1);
  const auto x = read(a), y = read(b), z = read(c);
  for (std::size_t i = 0; i < got.size(); ++i) ASSERT_EQ(got[i], (x[i] + y[i]) * z[i]) << i;
}

TEST(ExpressionApi, TakesScalarsOnEitherSide) {
  const Executor exec = simd_executor();
  const auto a = drawn(exec, 0);
  const auto x = read(a);
  const auto difference = evaluated(1 - a, exec), quotient = evaluated(2.0 / a, exec);
  const auto other = evaluated(a - 1, exec), half = evaluated(a / 2.0F, exec);
  const auto both = evaluated(fma(a, 2, -0.5), exec);
  for (std::size_t i = 0; i < x.size(); ++i) {
    ASSERT_EQ(difference[i], 1 - x[i]);
    ASSERT_EQ(quotient[i], 2 / x[i]);
    ASSERT_EQ(other[i], x[i] - 1);
    ASSERT_EQ(half[i], x[i] / 2);
    ASSERT_EQ(both[i], std::fma(x[i], 2.0F, -0.5F));
  }
}

TEST(ExpressionApi, FunctionsGiveTheBitsOfTheOps) {
  const Executor exec = simd_executor();
  const auto a = drawn(exec, 0);
  auto out = exec.buffer<float>(kSize).value();
  ASSERT_TRUE(exec.gelu(a, out).ok());
  EXPECT_EQ(evaluated(gelu(a), exec), read(out));
  ASSERT_TRUE(exec.clip(a, out, -0.5, 1.5).ok());
  EXPECT_EQ(evaluated(clip(a, -0.5, 1.5), exec), read(out));
  ASSERT_TRUE(exec.elu(a, out, 0.5).ok());
  EXPECT_EQ(evaluated(elu(a, 0.5), exec), read(out));
  ASSERT_TRUE(exec.leaky_relu(a, out, 0.25).ok());
  EXPECT_EQ(evaluated(leaky_relu(a, 0.25), exec), read(out));
  const auto x = read(a);
  const auto roots = evaluated(sqrt(abs(-a)), exec);
  for (std::size_t i = 0; i < x.size(); ++i) ASSERT_EQ(roots[i], std::sqrt(std::abs(x[i])));
}

TEST(ExpressionApi, WhatIsCommonIsComputedOnce) {
  const Executor exec = simd_executor();
  const auto a = drawn(exec, 0), b = drawn(exec, 1);
  // The same sum, written twice and named once.
  const Expression sum = a + b;
  EXPECT_EQ(steps((a + b) * (a + b)), 2);
  EXPECT_EQ(steps(gelu(sum) + gelu(a + b)), 3);
  EXPECT_EQ(steps((a + b) * (b + a)), 3) << "the order of a sum is part of its bits";
  const auto got = evaluated(gelu(sum) * sum + sigmoid(sum), exec);
  const auto s = evaluated(sum, exec);
  const auto g = evaluated(gelu(sum), exec), t = evaluated(sigmoid(sum), exec);
  for (std::size_t i = 0; i < got.size(); ++i) ASSERT_EQ(got[i], g[i] * s[i] + t[i]);
}

TEST(ExpressionApi, ConstantsThatChangeKeepTheTape) {
  const Executor exec = simd_executor();
  const auto w = drawn(exec, 0), g = drawn(exec, 1);
  const auto tape = [&](double rate) {
    auto graph = graph_of((w - rate * g).node());
    const auto known = known_tape(passes_of(*graph)->front().tape);
    EXPECT_TRUE(known.ok());
    return *known;
  };
  EXPECT_EQ(tape(0.1).tape, tape(0.2).tape);
  EXPECT_EQ(tape(0.1).number, tape(0.2).number);
  auto other = graph_of((w + 0.1 * g).node());
  EXPECT_NE(known_tape(passes_of(*other)->front().tape)->number, tape(0.1).number);
  const auto x = read(w), y = read(g), got = evaluated(w - 0.3 * g, exec);
  for (std::size_t i = 0; i < got.size(); ++i) ASSERT_EQ(got[i], x[i] - 0.3F * y[i]);
}

TEST(ExpressionApi, MoreThanSevenLeavesTakeSeveralPasses) {
  const Executor exec = simd_executor();
  std::vector<Buffer<float>> leaves;
  for (int k = 0; k < 12; ++k) leaves.push_back(drawn(exec, k));
  Expression sum = leaves[0];
  for (std::size_t k = 1; k < 7; ++k) sum = sum + leaves[k];
  EXPECT_EQ(sum.passes().value(), 1);
  for (std::size_t k = 7; k < leaves.size(); ++k) sum = sum + leaves[k];
  EXPECT_EQ(sum.passes().value(), 2);
  const auto before = exec.counters().calls;
  const auto got = evaluated(sum, exec);
  EXPECT_EQ(exec.counters().calls - before, 2);
  std::vector<float> expected = read(leaves[0]);
  for (std::size_t k = 1; k < leaves.size(); ++k) {
    const auto leaf = read(leaves[k]);
    for (std::size_t i = 0; i < expected.size(); ++i) expected[i] += leaf[i];
  }
  EXPECT_EQ(got, expected);
}

TEST(ExpressionApi, AChainLongerThanATapeTakesSeveralPasses) {
  const Executor exec = simd_executor();
  const auto a = drawn(exec, 0);
  Expression chain = a;
  for (int k = 0; k < 150; ++k) chain = chain + 0.25;
  EXPECT_EQ(chain.passes().value(), 3);
  const auto got = evaluated(chain, exec);
  auto expected = read(a);
  for (float& x : expected) {
    for (int k = 0; k < 150; ++k) x += 0.25F;
  }
  EXPECT_EQ(got, expected);
}

TEST(ExpressionApi, AnExpressionThatALoopGrewIsAnErrorAndNoCrash) {
  const Executor exec = simd_executor();
  const auto a = drawn(exec, 0, 4);
  Expression chain = a;
  for (int k = 0; k < 300000; ++k) chain = relu(chain);
  const auto result = chain.eval(exec);
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code, Code::invalid_argument);
  EXPECT_EQ(exec.counters().calls, 0);
}

TEST(ExpressionApi, MistakesAreErrorsThatSayWhatToDo) {
  const Executor exec = simd_executor();
  const auto a = drawn(exec, 0), shorter = drawn(exec, 1, 10);
  const auto differing = (a + shorter).eval(exec);
  ASSERT_FALSE(differing.ok());
  EXPECT_EQ(differing.error().code, Code::invalid_shape);
  EXPECT_NE(differing.error().message.find("1000"), std::string::npos);
  EXPECT_NE(differing.error().message.find("10 "), std::string::npos);
  EXPECT_EQ((Expression(1) + 2).eval(exec).error().code, Code::invalid_argument) << "constants alone";
  EXPECT_EQ((a + 1).eval().error().code, Code::invalid_argument) << "no executor";
  EXPECT_EQ(clip(a, 1, -1).eval(exec).error().code, Code::invalid_argument);
  auto small = exec.buffer<float>(5).value();
  EXPECT_EQ((a + 1).eval_into(exec, small).error().code, Code::invalid_shape);
}

TEST(ExpressionApi, ALazyLeafBringsItsExecutor) {
  const Executor exec = simd_executor();
  const auto a = drawn(exec, 0), b = drawn(exec, 1), c = drawn(exec, 2);
  const auto result = ((lazy(exec, a) + b) * c).eval();
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(read(*result), evaluated((a + b) * c, exec));
  const auto right = (2 * (b + lazy(exec, c))).eval();
  ASSERT_TRUE(right.ok());
  EXPECT_EQ(right->size(), kSize);
}

TEST(ExpressionApi, TheResultMayBeALeaf) {
  const Executor exec = simd_executor();
  auto a = drawn(exec, 0);
  const auto b = drawn(exec, 1);
  const auto expected = evaluated(swish(a * b) - a, exec);
  ASSERT_TRUE((swish(a * b) - a).eval_into(exec, a).ok());
  EXPECT_EQ(read(a), expected);
}

TEST(ExpressionApi, EmptyBuffersGiveAnEmptyResult) {
  const Executor exec = simd_executor();
  const auto a = exec.buffer<float>(0).value();
  const auto result = (a + 1).eval(exec);
  ASSERT_TRUE(result.ok()) << result.error().message;
  EXPECT_EQ(result->size(), 0);
}

TEST(ExpressionApi, ALeafAloneIsCopied) {
  const Executor exec = simd_executor();
  const auto a = drawn(exec, 0);
  EXPECT_EQ(evaluated(Expression(a), exec), read(a));
}

TEST(ExpressionApi, ExplainsTheOneDecision) {
  const Executor exec = simd_executor();
  const auto a = drawn(exec, 0), b = drawn(exec, 1);
  const auto why = gelu(a + b).explain(exec);
  ASSERT_TRUE(why.ok()) << why.error().message;
  EXPECT_EQ(why->op, "expression");
  ASSERT_FALSE(why->ways.empty());
  EXPECT_EQ(why->ways.front().name.substr(0, 16), "expression/simd/");
  EXPECT_EQ(exec.counters().calls, 0);
}

/// A random graph of 60 operations; `fused` as one expression, or each one evaluated before the next is built.
std::vector<float> random_graph(const Executor& exec, std::uint64_t key, bool fused) {
  std::uint64_t drawn_so_far = 0;
  const auto draw = [&](std::uint64_t below) { return ops::random_bits(key, drawn_so_far++) % below; };
  std::vector<Expression> made;
  for (int leaf = 0; leaf < 9; ++leaf) made.emplace_back(drawn(exec, leaf, 100));
  const auto pick = [&]() -> const Expression& {
    return made[made.size() - 1 - draw(std::min<std::uint64_t>(made.size(), 12))];
  };
  for (int k = 0; k < 60; ++k) {
    const std::uint64_t kind = draw(8);
    const Expression &a = pick(), &b = pick(), &c = pick();
    Expression next = kind == 0   ? a + b
                      : kind == 1 ? a - b
                      : kind == 2 ? a * b
                      : kind == 3 ? max(a, 0.5 * b)
                      : kind == 4 ? fma(a, b, c)
                      : kind == 5 ? sigmoid(a)
                      : kind == 6 ? fma(sigmoid(b), 0.75, a)
                                  : clip(a / (1 + abs(b)), -4, 4);
    if (!fused) next = next.eval(exec).value();
    made.push_back(next);
  }
  Expression root = made.back();
  for (std::size_t k = made.size() - 5; k < made.size(); ++k)
    root = fused ? root + made[k] : Expression((root + made[k]).eval(exec).value());
  return evaluated(root, exec);
}

TEST(ExpressionApi, RandomGraphsGiveTheBitsOfTheirOpsOneByOne) {
  const Executor exec = simd_executor();
  const auto bits = [](const std::vector<float>& values) {
    std::vector<std::uint32_t> result(values.size());
    for (std::size_t i = 0; i < values.size(); ++i) {
      std::memcpy(&result[i], &values[i], sizeof(float));
      if (std::isnan(values[i])) result[i] = 1;
    }
    return result;
  };
  for (std::uint64_t key = 1; key <= 40; ++key) {
    ASSERT_EQ(bits(random_graph(exec, key, true)), bits(random_graph(exec, key, false))) << key;
  }
}

}  // namespace
}  // namespace fulcrum::executor
