// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// The device's element-wise formulas, compiled for the host, against the reference of their ops: every 65,521st float
// and the special values. The device's own expf, expm1f and tanhf are checked on the device.
#include <fmt/format.h>

#include <bit>

#include "backends/cuda/elu.h"
#include "backends/cuda/functors.h"
#include "support/instances.h"

namespace fulcrum::backends::cuda::streaming {
namespace {

using test::op_of;
using test::shape_of;

constexpr std::uint64_t kStep = 65521;
constexpr std::int64_t kFloats = (std::int64_t{1} << 32) / kStep;

template <class Function>
void expect_right(std::string_view name) {
  static_assert(Function::kInputs == 1);
  const float specials[] = {NAN, INFINITY, -INFINITY, 0.0F, -0.0F, 0x1p-149F, -0x1p-149F, -100, 100, -3e38F};
  const auto special_count = static_cast<std::int64_t>(std::size(specials));
  auto problem = ops::Problem::make(op_of(name), shape_of(fmt::format("n={}", kFloats + special_count)));
  ASSERT_TRUE(problem) << name;
  Args& args = problem->args();
  auto* x = static_cast<float*>(args.ptr[0]);
  for (std::int64_t i = 0; i < kFloats; ++i) {
    x[i] = std::bit_cast<float>(static_cast<std::uint32_t>(static_cast<std::uint64_t>(i) * kStep));
  }
  std::copy_n(specials, special_count, x + kFloats);
  problem->adopt_inputs();
  const Function function = Function::from(args);
  const std::int64_t n = Function::elements(args);
  for (std::int64_t i = 0; i < n; ++i) args.out<float>(Function::kOut)[i] = function(x[i]);
  const Oracle oracle = problem->check();
  EXPECT_TRUE(oracle.passed) << name << ": " << oracle.detail;
}

TEST(CudaFunctors, UnaryFormulasAreThoseOfTheirOps) {
  expect_right<Relu>("relu");
  expect_right<LeakyRelu>("leaky_relu");
  expect_right<Clip>("clip");
  expect_right<Elu>("elu");
  expect_right<FastElu>("elu");
  expect_right<Sigmoid>("sigmoid");
  expect_right<Tanh>("tanh");
  expect_right<Swish>("swish");
  expect_right<Gelu>("gelu");
}

TEST(CudaFunctors, LeakyReluWithoutSlopeIsRelu) {
  const LeakyRelu leaky{{}, 0};
  EXPECT_EQ(leaky(-INFINITY), 0);
  EXPECT_EQ(leaky(-2), 0);
  EXPECT_EQ(leaky(2), 2);
  EXPECT_TRUE(std::isnan(leaky(NAN)));
}

TEST(CudaFunctors, TanhIsOddToTheBit) {
  for (std::uint64_t bits = 0; bits < 0x7F800000U; bits += kStep) {
    const auto x = std::bit_cast<float>(static_cast<std::uint32_t>(bits));
    EXPECT_EQ(std::bit_cast<std::uint32_t>(Tanh()(-x)), std::bit_cast<std::uint32_t>(-Tanh()(x))) << x;
  }
}

TEST(CudaFunctors, SlotsAreThoseOfTheOps) {
  for (const auto& [name, slot] : {std::pair{"vec_add", Sum::kOut}, {"probe_triad", Triad::kOut}}) {
    EXPECT_EQ(op_of(name).slots[static_cast<std::size_t>(slot)].kind, ops::SlotKind::out) << name;
  }
}

}  // namespace
}  // namespace fulcrum::backends::cuda::streaming
