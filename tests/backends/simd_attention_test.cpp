// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// attention on every instruction set at numbers of queries where it goes from one by one to blocks: rows that are no
// whole vectors, masks, layouts, NaN and Inf among the inputs, and the logarithm of the sum.
#include <fmt/format.h>
#include <fulcrum/backends.h>
#include <gtest/gtest.h>

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

}  // namespace
}  // namespace fulcrum::test
