// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Calls with ordinary values meet no number too small for a normal float: on some CPUs an instruction that makes or reads
// one takes a hundred times as long, whether or not anybody wants its result. Lanes past the end of a row are such cases,
// as is memory that was never written.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <cfenv>
#include <vector>

#if defined(__SSE__)
#include <xmmintrin.h>
#endif

#include "support/instances.h"

namespace fulcrum::test {
namespace {

#if defined(__SSE__)
constexpr unsigned kSubnormalOperand = 0x02, kUnderflow = 0x10, kAll = 0x3F;
void clear_flags() { _mm_setcsr(_mm_getcsr() & ~kAll); }
bool met_subnormals() { return (_mm_getcsr() & (kSubnormalOperand | kUnderflow)) != 0; }
#else
void clear_flags() { std::feclearexcept(FE_ALL_EXCEPT); }
bool met_subnormals() { return std::fetestexcept(FE_UNDERFLOW) != 0; }
#endif

/// Leaves subnormal numbers where the next function has its local variables.
[[gnu::noinline]] void spoil_stack() {
  std::array<volatile float, 16384> spoiled;
  for (volatile float& value : spoiled) value = 1e-40F;
}

class Subnormals : public ::testing::TestWithParam<std::string> {
 protected:
  void expect_none(std::string_view op, const std::string& shape) const {
    const auto parsed = parse_shape(shape);
    ASSERT_TRUE(parsed.ok()) << shape;
    auto problem = ops::Problem::make(op_of(op), *parsed);
    ASSERT_TRUE(problem.ok()) << problem.error().message;
    expect_none(op, shape, problem->args());
  }
  void expect_none(std::string_view op, const std::string& shape, const Args& args) const {
    const auto kernel = backends::kernel(op, "simd", "default");
    ASSERT_TRUE(kernel.ok()) << kernel.error().message;
    auto call = backends::Call::make(*kernel, args);
    ASSERT_TRUE(call.ok()) << call.error().message;
    spoil_stack();
    clear_flags();
    ASSERT_EQ(call->run().code, FULCRUM_OK);
    EXPECT_FALSE(met_subnormals()) << op << " " << shape;
  }
  ForcedIsa isa_{GetParam()};
};
INSTANTIATE_TEST_SUITE_P(Isas, Subnormals, ::testing::ValuesIn(backends::isas()),
                         [](const auto& info) { return info.param; });

TEST_P(Subnormals, RowsOfAnyLengthMeetNone) {
  for (const char* op : {"softmax", "log_softmax"}) {
    for (const int n : {1, 3, 8, 15, 16, 17, 42, 63, 64, 65, 80, 301, 5000, 20000})
      expect_none(op, fmt::format("rows=5,n={}", n));
  }
}

TEST_P(Subnormals, AttentionMeetsNone) {
  constexpr int kValues = 2;
  constexpr std::uint16_t kOne = 0x3C00;  // results of other values may be too small for an f16
  for (const char* causal : {"no", "yes"}) {
    for (const char* sizes : {"H=2,Sq=3,Skv=14,D=64", "H=1,Sq=31,Skv=40,D=128", "H=2,Sq=100,Skv=100,D=64"}) {
      const std::string shape = fmt::format("{},causal={}", sizes, causal);
      auto problem = ops::Problem::make(op_of("attention"), *parse_shape(shape));
      ASSERT_TRUE(problem.ok()) << problem.error().message;
      Args args = problem->args();
      std::vector<std::uint16_t> ones(std::size_t{2} * 100 * 128, kOne);
      args.ptr[kValues] = ones.data();
      expect_none("attention", shape, args);
    }
  }
}

TEST_P(Subnormals, DendritesMeetNone) {
  for (const char* type : {"sigmoid", "nmda", "active_bp", "multiplicative"}) {
    for (const char* sizes : {"N=7,D=5,S=9", "N=3,D=15,S=14", "N=2,D=131,S=3", "N=9,D=1,S=1"})
      expect_none("dendritic_integration", fmt::format("{},type={}", sizes, type));
  }
}

TEST_P(Subnormals, ElementsMeetNone) {
  for (const char* op : {"relu", "leaky_relu", "elu", "sigmoid", "tanh", "swish", "gelu", "clip", "dot"}) {
    for (const int n : {1, 13, 100, 1003}) expect_none(op, fmt::format("n={}", n));
  }
}

TEST_P(Subnormals, ProductsAndCellsMeetNone) {
  expect_none("matmul", "M=7,N=37,K=19,epilogue=gelu");
  expect_none("matmul", "M=33,N=5,K=301");
  expect_none("conv2d", "B=1,h=11,w=19,kh=3,kw=3");
  expect_none("lstm_cell", "B=3,I=9,H=21");
  expect_none("lstm_sequence", "T=5,B=2,I=9,H=13");
  expect_none("cosine_similarity", "Q=3,N=7,D=21");
}

}  // namespace
}  // namespace fulcrum::test
