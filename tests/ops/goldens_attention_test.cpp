// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// attention: results that are known by heart on every kernel and instruction set, and the logarithm of the sum.
#include <fulcrum/ops/half.h>
#include <gtest/gtest.h>

#include <cmath>

#include "support/instances.h"
#include "support/special_values.h"

namespace fulcrum::test {
namespace {

enum Pointer { kQ, kK, kV, kO, kLse };

std::span<std::uint16_t> halves(ops::Problem& problem, int slot) {
  const auto bytes = problem.buffer(slot);
  return {reinterpret_cast<std::uint16_t*>(bytes.data()), bytes.size() / sizeof(std::uint16_t)};
}

void set_halves(ops::Problem& problem, int slot, const std::vector<float>& values) {
  const auto target = halves(problem, slot);
  ASSERT_EQ(target.size(), values.size());
  std::transform(values.begin(), values.end(), target.begin(), ops::half_from_float);
}

/// Runs body(kernel) for each kernel on each instruction set it follows.
template <class Body>
void on_attention_kernels(const Body& body) {
  int ran = 0;
  for (const backends::Kernel& kernel : host_kernels("attention")) {
    for (const std::string& isa : isas_of(kernel)) {
      SCOPED_TRACE(kernel.name() + " " + isa);
      const ForcedIsa forced(isa);
      ASSERT_NO_FATAL_FAILURE(body(kernel));
      ++ran;
    }
  }
  EXPECT_GE(ran, 2);
}

/// O on every kernel; NaN means NaN, all else is exact once rounded to f16.
void expect(std::string_view shape, const std::vector<float>& q, const std::vector<float>& k,
            const std::vector<float>& v, const std::vector<float>& expected) {
  on_attention_kernels([&](const backends::Kernel& kernel) {
    auto problem = ops::Problem::make(op_of("attention"), shape_of(shape));
    ASSERT_TRUE(problem.ok()) << problem.error().message;
    set_halves(*problem, kQ, q);
    set_halves(*problem, kK, k);
    set_halves(*problem, kV, v);
    problem->adopt_inputs();
    ASSERT_TRUE(run(kernel, *problem));
    const Oracle oracle = problem->check();
    EXPECT_TRUE(oracle.passed) << oracle.detail;
    const auto o = halves(*problem, kO);
    ASSERT_EQ(o.size(), expected.size());
    for (std::size_t i = 0; i < o.size(); ++i) {
      const float got = ops::float_from_half(o[i]);
      const float want = ops::float_from_half(ops::half_from_float(expected[i]));
      EXPECT_TRUE(std::isnan(want) ? std::isnan(got) : got == want) << i << ": " << got;
    }
  });
}

TEST(Attention, WithOneKeyIsItsValue) {
  expect("Sq=3,Skv=1,D=2", {1, 2, -3, 4, 100, 0}, {5, -6}, {0.1F, -7}, {0.1F, -7, 0.1F, -7, 0.1F, -7});
}

TEST(Attention, OfZeroQueriesIsTheMeanOfTheValuesTheySee) {
  const std::vector<float> zeros(4, 0), keys = {1, -2, 3, -4}, values = {0, 1, 2, 3};
  expect("Sq=4,Skv=4,D=1", zeros, keys, values, {1.5F, 1.5F, 1.5F, 1.5F});
  expect("Sq=4,Skv=4,D=1,causal=yes", zeros, keys, values, {0, 0.5F, 1, 1.5F});
}

TEST(Attention, CountsTheCausalMaskFromTheEnd) {
  expect("Sq=2,Skv=4,D=1,causal=yes", {0, 0}, {1, 1, 1, 1}, {0, 3, 6, 9}, {3, 4.5F});
}

TEST(Attention, WeighsAKeyTwiceWhoseScoreIsLogTwoHigher) {
  expect("Sq=1,Skv=3,D=1,scale=0.6931471805599453", {1}, {0, 0, 1}, {1, 1, 5}, {3});
}

TEST(Attention, OfScoresFarApartIsTheValueOfTheHighest) {
  constexpr std::size_t kD = 64;
  std::vector<float> q(kD), k(3 * kD), v(3 * kD), expected(kD);
  for (std::size_t i = 0; i < kD; ++i) {
    q[i] = i % 2 == 0 ? 30.0F : -30.0F;
    k[i] = q[i];
    k[kD + i] = k[2 * kD + i] = -q[i];
    v[i] = expected[i] = static_cast<float>(i) - 20;
    v[kD + i] = v[2 * kD + i] = 1000;
  }
  expect("Sq=1,Skv=3,D=64", q, k, v, expected);
}

TEST(Attention, LaysHeadsInsideSequencesWhenAskedTo) {
  // One key: O is V, wherever the head stands. B=1, S=1, H=2 and S=2, H=1 would look alike in memory.
  expect("B=2,H=2,Sq=1,Skv=1,D=1,layout=bshd", {1, 1, 1, 1}, {1, 1, 1, 1}, {1, 2, 3, 4}, {1, 2, 3, 4});
  // Two keys of weight one half: head 0 has the values 1 and 3, head 1 has 2 and 8.
  expect("H=2,Sq=1,Skv=2,D=1,layout=bshd", {0, 0}, {1, 1, 1, 1}, {1, 2, 3, 8}, {2, 5});
  expect("H=2,Sq=1,Skv=2,D=1,layout=bhsd", {0, 0}, {1, 1, 1, 1}, {1, 3, 2, 8}, {2, 5});
}

TEST(Attention, GivesNanToWholeRowsThatSeeSomethingNotFinite) {
  expect("Sq=3,Skv=3,D=2,causal=yes", {0, 0, 0, 0, 0, 0}, {1, 1, 1, 1, 1, -kInf}, {1, 2, 3, 4, 5, 6},
         {1, 2, 2, 3, kNan, kNan});
  expect("Sq=2,Skv=1,D=2", {0, kInf, 0, 0}, {1, 1}, {3, 4}, {kNan, kNan, 3, 4});
  expect("Sq=1,Skv=2,D=2", {0, 0}, {1, 1, 1, 1}, {1, 2, kInf, 4}, {kNan, kNan});
}

TEST(Attention, WritesTheLogarithmOfTheSumWhenAskedTo) {
  for (const char* shape : {"B=2,H=3,Sq=37,Skv=70,D=20,causal=yes", "H=2,Sq=33,Skv=129,D=64,layout=bshd"}) {
    on_attention_kernels([&](const backends::Kernel& kernel) {
      auto problem = ops::Problem::make(op_of("attention"), shape_of(shape), {.optional_inputs = true});
      ASSERT_TRUE(problem.ok());
      ASSERT_TRUE(run(kernel, *problem));
      const Oracle oracle = problem->check();
      EXPECT_TRUE(oracle.passed) << oracle.detail;
      EXPECT_EQ(oracle.checked, ops::outputs(op_of("attention"), problem->args()));
      floats(*problem, kLse)[5] += 1e-3F;
      EXPECT_FALSE(problem->check().passed);
    });
  }
}

TEST(Attention, OfEqualScoresHasTheLogarithmOfTheirNumber) {
  on_attention_kernels([&](const backends::Kernel& kernel) {
    auto problem =
        ops::Problem::make(op_of("attention"), shape_of("Sq=1,Skv=100,D=3"), {.optional_inputs = true});
    ASSERT_TRUE(problem.ok());
    set_halves(*problem, kQ, {0, 0, 0});
    problem->adopt_inputs();
    ASSERT_TRUE(run(kernel, *problem));
    EXPECT_NEAR(floats(*problem, kLse)[0], std::log(100.0), 1e-5);
  });
}

TEST(Attention, RefusesWhatItCannotMean) {
  const auto code = [](std::string_view shape) {
    const auto args = ops::resolve(op_of("attention"), shape_of(shape));
    return args.ok() ? Code::ok : args.error().code;
  };
  EXPECT_EQ(code("Sq=2,Skv=2,D=257"), Code::invalid_shape);
  EXPECT_EQ(code("Sq=2,Skv=2,D=0"), Code::invalid_shape);
  EXPECT_EQ(code("Sq=2,Skv=0,D=4"), Code::invalid_shape);
  EXPECT_EQ(code("Sq=3,Skv=2,D=4,causal=yes"), Code::invalid_shape);
  EXPECT_EQ(code("Sq=3,Skv=2,D=4,causal=no"), Code::ok);
  EXPECT_EQ(code("Sq=2,Skv=2,D=4,scale=-1"), Code::invalid_argument);
  EXPECT_EQ(code("B=0,Sq=2,Skv=2,D=4"), Code::ok);
  EXPECT_EQ(code("Sq=0,Skv=2,D=4"), Code::ok);
}

}  // namespace
}  // namespace fulcrum::test
