// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Types in shapes: buffers and inputs of 16 bits, what a 16-bit or tf32 product may be off, and where calls are cut.
#include <fulcrum/backends/dtypes.h>
#include <fulcrum/ops/half.h>
#include <fulcrum/ops/inputs.h>
#include <gtest/gtest.h>

#include <cmath>

#include "support/instances.h"

namespace fulcrum::ops {
namespace {

using test::op_of;
using test::shape_of;

enum Slots { kA, kB, kBias, kC };

Problem problem_of(std::string_view op, std::string_view shape, const Problem::Options& options = {}) {
  auto problem = Problem::make(op_of(op), shape_of(shape), options);
  FULCRUM_ASSERT(problem.ok());
  return std::move(problem).value();
}

float read(Problem& problem, int slot, std::int64_t index) {
  const DType dtype = dtype_of(problem.op(), slot, problem.shape().dtype);
  const std::byte* data = problem.buffer(slot).data();
  if (dtype == DType::f32) return reinterpret_cast<const float*>(data)[index];
  const std::uint16_t bits = reinterpret_cast<const std::uint16_t*>(data)[index];
  return dtype == DType::f16 ? float_from_half(bits) : float_from_bfloat(bits);
}

void write(Problem& problem, int slot, std::int64_t index, float value) {
  const DType dtype = dtype_of(problem.op(), slot, problem.shape().dtype);
  std::byte* data = problem.buffer(slot).data();
  if (dtype == DType::f32) {
    reinterpret_cast<float*>(data)[index] = value;
  } else {
    reinterpret_cast<std::uint16_t*>(data)[index] =
        dtype == DType::f16 ? half_from_float(value) : bfloat_from_float(value);
  }
}

using Rounding = float (*)(float);
float as_it_is(float value) { return value; }
/// To the nearest with 10 bits of fraction.
float to_tf32(float value) {
  return std::bit_cast<float>((std::bit_cast<std::uint32_t>(value) + 0x1000u) & ~0x1FFFu);
}
float to_bf16(float value) { return float_from_bfloat(bfloat_from_float(value)); }

/// C = A B by hand, inputs rounded first.
void multiply(Problem& problem, Rounding rounding = as_it_is) {
  const Args& args = problem.args();
  const std::int64_t m = args.dim[0], n = args.dim[1], k = args.dim[2];
  for (std::int64_t i = 0; i < m; ++i) {
    for (std::int64_t j = 0; j < n; ++j) {
      double sum = 0;
      for (std::int64_t p = 0; p < k; ++p) {
        sum += static_cast<double>(rounding(read(problem, kA, i * k + p))) *
               rounding(read(problem, kB, p * n + j));
      }
      write(problem, kC, i * n + j, static_cast<float>(sum));
    }
  }
}

class SixteenBits : public ::testing::TestWithParam<DType> {
 protected:
  std::string shape(std::string_view sizes) const {
    return fmt::format("{},dtype={}", sizes, to_string(GetParam()));
  }
};
INSTANTIATE_TEST_SUITE_P(Types, SixteenBits, ::testing::Values(DType::f16, DType::bf16),
                         [](const auto& info) { return std::string(to_string(info.param)); });

TEST_P(SixteenBits, BuffersHaveTwoBytesAnElementAndTheBiasFour) {
  Problem problem = problem_of("matmul", shape("M=3,N=5,K=7"), {.optional_inputs = true});
  EXPECT_EQ(problem.buffer(kA).size(), 2 * 3 * 7);
  EXPECT_EQ(problem.buffer(kB).size(), 2 * 7 * 5);
  EXPECT_EQ(problem.buffer(kBias).size(), 4 * 5);
  EXPECT_EQ(problem.buffer(kC).size(), 2 * 3 * 5);
}

TEST_P(SixteenBits, InputsAreTheDrawnOnesRoundedOnce) {
  Problem problem = problem_of("matmul", shape("M=3,N=5,K=7"));
  Problem wide = problem_of("matmul", "M=3,N=5,K=7");
  for (std::int64_t i = 0; i < 21; ++i) {
    const float drawn = read(wide, kA, i);
    const float expected =
        GetParam() == DType::f16 ? float_from_half(half_from_float(drawn)) : to_bf16(drawn);
    EXPECT_EQ(read(problem, kA, i), expected) << i;
  }
}

TEST_P(SixteenBits, AProductRoundedOncePasses) {
  Problem problem = problem_of("matmul", shape("M=17,N=23,K=64"));
  multiply(problem);
  const Oracle oracle = problem.check(GetParam() == DType::f16 ? "fp16" : "bf16");
  EXPECT_TRUE(oracle.passed) << oracle.detail;
  EXPECT_EQ(oracle.checked, 17 * 23);
}

TEST_P(SixteenBits, AnOutputTwoStepsOffIsFound) {
  Problem problem = problem_of("matmul", shape("M=4,N=4,K=1"));
  multiply(problem);
  auto* bits = reinterpret_cast<std::uint16_t*>(problem.buffer(kC).data());
  bits[5] += 2;
  const Oracle oracle = problem.check(GetParam() == DType::f16 ? "fp16" : "bf16");
  EXPECT_FALSE(oracle.passed);
  EXPECT_EQ(oracle.detail.substr(0, 5), "C[5] ");
}

TEST_P(SixteenBits, InputsOfTheCallerAreTheTruthOnceAdopted) {
  Problem problem = problem_of("matmul", shape("M=4,N=4,K=3"));
  ASSERT_TRUE(fill_inputs(problem, {{"A", "constant 2"}, {"B", "index"}}).ok());
  multiply(problem);
  EXPECT_EQ(read(problem, kC, 1), 2 * (1 + 5 + 9));
  EXPECT_TRUE(problem.check().passed);
  write(problem, kC, 1, 2 * (1 + 5 + 8));
  EXPECT_FALSE(problem.check().passed);
}

TEST_P(SixteenBits, BytesOfTheWorkAreHalved) {
  const Op& op = op_of("matmul");
  const Args args = *resolve(op, shape_of("M=10,N=20,K=30"));
  const Work wide = backends::work_of(op, args, DType::f32);
  const Work work = backends::work_of(op, args, GetParam());
  EXPECT_EQ(wide.read_bytes, 4 * (300 + 600));
  EXPECT_EQ(work.read_bytes, wide.read_bytes / 2);
  EXPECT_EQ(work.link_out_bytes, wide.link_out_bytes / 2);
  EXPECT_EQ(work.flops, wide.flops);
}

TEST(Types, ATypeThatTheOpDoesNotHaveIsRefusedWithAList) {
  const auto refused = [](std::string_view op, std::string_view shape) {
    const auto result = complete(op_of(op), shape_of(shape));
    return result.ok() ? std::string("accepted") : result.error().message + "; " + result.error().hint;
  };
  EXPECT_EQ(refused("matmul", "M=1,N=1,K=1,dtype=u8"),
            "matmul has no operands of type u8; it has f32, f16, bf16");
  EXPECT_EQ(refused("relu", "n=1,dtype=f16"), "relu has no operands of type f16; it has f32");
  EXPECT_EQ(refused("attention", "Sq=1,Skv=1,D=1,dtype=u8"),
            "attention has no operands of type u8; it has f16, bf16");
  EXPECT_EQ(refused("attention", "Sq=1,Skv=1,D=1,dtype=bf16"), "accepted");
  EXPECT_EQ(refused("matmul", "M=1,N=1,K=1,dtype=bf16"), "accepted");
}

TEST(Types, AnOpWithoutF32TakesItsFirstTypeWhereNoneIsNamed) {
  EXPECT_EQ(complete(op_of("attention"), shape_of("Sq=1,Skv=1,D=1"))->dtype, DType::f16);
  EXPECT_EQ(complete(op_of("attention"), shape_of("Sq=1,Skv=1,D=1,dtype=bf16"))->dtype, DType::bf16);
  EXPECT_EQ(complete(op_of("matmul"), shape_of("M=1,N=1,K=1"))->dtype, DType::f32);
  const Args args = *resolve(op_of("attention"), shape_of("Sq=4,Skv=4,D=8"));
  EXPECT_EQ(backends::work_of(op_of("attention"), args, DType::bf16).read_bytes, 2 * 3 * 4 * 8);
}

/// One key: O is V, in every type exactly.
TEST(Types, ABfloatMayBeOffEightTimesWhatAHalfMay) {
  const auto passes = [](std::string_view dtype, float error) {
    Problem problem = problem_of("attention", fmt::format("Sq=1,Skv=1,D=1,dtype={}", dtype));
    EXPECT_TRUE(fill_inputs(problem, {{"V", "constant 1"}}).ok());
    write(problem, 3, 0, 1 + error);
    return problem.check(dtype == "f16" ? "fp16" : "bf16").passed;
  };
  EXPECT_TRUE(passes("f16", 0x1p-10F));
  EXPECT_FALSE(passes("f16", 0x1p-9F));
  EXPECT_TRUE(passes("bf16", 0x1p-7F));
  EXPECT_FALSE(passes("bf16", 0x1p-6F));
}

TEST(Types, KernelsOfTheHostTakeF32ProductsOnly) {
  for (const backends::Kernel& kernel : test::host_kernels("matmul")) {
    EXPECT_TRUE(backends::takes_dtype(kernel, op_of("matmul"), DType::f32)) << kernel.name();
    EXPECT_FALSE(backends::takes_dtype(kernel, op_of("matmul"), DType::bf16)) << kernel.name();
  }
  for (const backends::Kernel& kernel : test::host_kernels("attention"))
    EXPECT_TRUE(backends::takes_dtype(kernel, op_of("attention"), DType::f16)) << kernel.name();
}

TEST(Types, OverlapsAreCountedInBytesOfTheType) {
  Args args = *resolve(op_of("matmul"), shape_of("M=2,N=2,K=2"));
  alignas(float) std::byte memory[48];
  args.ptr[kA] = memory;
  args.ptr[kB] = memory + 8;
  args.ptr[kC] = memory + 16;
  EXPECT_TRUE(check_pointers(op_of("matmul"), args, DType::f16).ok());
  EXPECT_FALSE(check_pointers(op_of("matmul"), args).ok());
}

TEST(Precision, Tf32IsFoundUnlessItIsSaid) {
  Problem problem = problem_of("matmul", "M=33,N=65,K=100");
  multiply(problem, to_tf32);
  EXPECT_FALSE(problem.check().passed);
  const Oracle oracle = problem.check("tf32");
  EXPECT_TRUE(oracle.passed) << oracle.detail;
}

TEST(Precision, InputsRoundedMoreThanSaidAreFound) {
  Problem problem = problem_of("matmul", "M=33,N=65,K=1");
  multiply(problem, to_bf16);
  EXPECT_FALSE(problem.check("tf32").passed);
  EXPECT_FALSE(problem.check("fp16").passed);
  EXPECT_TRUE(problem.check("bf16").passed);
}

TEST(Precision, SixteenBitOperandsAreNotRoundedFurtherByTheirOwnPrecision) {
  Problem problem = problem_of("batched_matmul", "B=1,M=9,N=9,K=1,dtype=bf16");
  const auto product = [&](std::int64_t i, std::int64_t j) {
    return read(problem, kA, i) * read(problem, kB, j);
  };
  for (std::int64_t i = 0; i < 81; ++i) write(problem, 2, i, product(i / 9, i % 9) * (1 + 0x1p-7F));
  EXPECT_FALSE(problem.check("bf16").passed);
  for (std::int64_t i = 0; i < 81; ++i) write(problem, 2, i, product(i / 9, i % 9));
  EXPECT_TRUE(problem.check("bf16").passed);
}

/// Number of a dim, or -1.
int dim_number(const Op& op, std::string_view name) {
  int number = 0;
  for (const Slot& slot : op.slots) {
    if (slot.kind != SlotKind::dim) continue;
    if (slot.name == name) return number;
    ++number;
  }
  return -1;
}

TEST(Slices, OperandsGrowWithTheSlicedSizeInProportionOrNotAtAll) {
  int sliced = 0;
  for (const Op* op : all()) {
    if (op->slice_dim.empty()) continue;
    ++sliced;
    EXPECT_GE(op->slice_unit, 1) << op->name;
    const int dim = dim_number(*op, op->slice_dim);
    ASSERT_GE(dim, 0) << op->name << " has no dim " << op->slice_dim;
    for (const std::string_view size : op->default_sizes) {
      Args args = *resolve(*op, shape_of(size));
      bool grows = false;
      for (int slot = 0; slot < op->pointers(); ++slot) {
        const auto extent = [&](std::int64_t value) {
          args.dim[dim] = value;
          return op->extent(args, slot);
        };
        const std::int64_t one = extent(1);
        const bool constant = extent(2) == one && extent(7) == one && extent(0) == one;
        const bool proportional = extent(2) == 2 * one && extent(7) == 7 * one && extent(0) == 0;
        EXPECT_TRUE(constant || proportional) << op->name << " " << size << " slot " << slot;
        grows |= proportional && one > 0;
      }
      EXPECT_TRUE(grows) << op->name << " " << size;
    }
  }
  EXPECT_GE(sliced, 10);
}

TEST(Slices, ARightSideOfEachEntryIsCutWithTheBatch) {
  const Op& op = op_of("batched_matmul");
  Args args = *resolve(op, shape_of("B=6,M=2,N=3,K=4,Bb=6"));
  args.dim[0] = 2;  // a slice of two entries
  EXPECT_EQ(op.extent(args, 1), 2 * 4 * 3);
  args = *resolve(op, shape_of("B=6,M=2,N=3,K=4,Bb=1"));
  args.dim[0] = 2;
  EXPECT_EQ(op.extent(args, 1), 4 * 3);
}

}  // namespace
}  // namespace fulcrum::ops
