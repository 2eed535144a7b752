// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// attention on every instruction set at numbers of queries where it goes from one by one to blocks: rows that are no
// whole vectors, masks, layouts, NaN and Inf among the inputs, and the logarithm of the sum.
#include <fmt/format.h>
#include <fulcrum/backends.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "support/instances.h"

namespace fulcrum::test {
namespace {

using Special = ops::Problem::Special;

class SimdAttention : public ::testing::TestWithParam<std::string> {
 protected:
  void check(const std::string& text, Special special) {
    Shape shape = shape_of(text);
    shape.dtype = DType::f16;
    auto problem =
        ops::Problem::make(op_of("attention"), shape, {.special = special, .optional_inputs = true});
    ASSERT_TRUE(problem.ok()) << problem.error().message;
    ASSERT_TRUE(run(*backends::kernel("attention", "simd"), *problem));
    const Oracle oracle = problem->check("fp32");
    EXPECT_TRUE(oracle.passed) << text << " special=" << static_cast<int>(special) << ": " << oracle.detail;
  }
  ForcedIsa isa_{GetParam()};
};
INSTANTIATE_TEST_SUITE_P(Isas, SimdAttention, ::testing::ValuesIn(backends::isas()),
                         [](const auto& info) { return info.param; });

TEST_P(SimdAttention, IsRightForAnyNumberOfQueriesAndEndOfRows) {
  for (const int queries : {1, 2, 3, 4, 6, 7, 12, 13, 16, 17, 33, 45}) {
    for (const int d : {1, 3, 4, 8, 15, 16, 17, 64, 72, 100, 256}) {
      for (const int keys : {queries, queries + 1, 63 + queries, 131 + queries}) {
        const bool causal = (queries + d + keys) % 2 == 0;
        const auto text = fmt::format("B=2,H=2,Sq={},Skv={},D={},causal={},layout={}", queries, keys, d,
                                      causal ? "yes" : "no", d % 2 == 0 ? "bhsd" : "bshd");
        ASSERT_NO_FATAL_FAILURE(check(text, Special::none));
        ASSERT_NO_FATAL_FAILURE(check(text, Special::mixed));
      }
    }
  }
}

TEST_P(SimdAttention, EffortIsThatOfBlocksAndLoneQueries) {
  const auto effort = [](std::int64_t queries, std::int64_t keys, std::int64_t causal) {
    Args args{};
    const std::int64_t dims[] = {2, 3, queries, keys, 64};
    std::copy(std::begin(dims), std::end(dims), args.dim);
    args.scalar[0].i = causal;
    const fulcrum_kernel& kernel = backends::kernel("attention", "simd")->entry();
    return kernel.effort(&args);
  };
  for (const std::int64_t keys : {1, 50, 1000}) {
    if (GetParam() != "scalar") {  // whose blocks are of two
      EXPECT_NEAR(effort(2, keys, 0), 2 * effort(1, keys, 0), 1e-6) << "one by one";
    }
    EXPECT_NEAR(effort(32, keys, 0) - effort(31, keys, 0), effort(30, keys, 0) - effort(29, keys, 0), 1e-6)
        << "a block is a block, but for the results of its queries";
    EXPECT_NEAR(effort(128, keys, 0), 4 * effort(32, keys, 0), 1e-6);
  }
  EXPECT_LT(effort(512, 512, 1), 0.7 * effort(512, 512, 0)) << "half of the keys are not seen";
  EXPECT_EQ(effort(0, 10, 0), 0);
}

}  // namespace
}  // namespace fulcrum::test
