// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Results of batched_matmul that are known by heart, and the promise that an entry does not know its neighbours.
#include "support/known_results.h"
#include "support/special_values.h"

namespace fulcrum::test {
namespace {

const std::vector<float> kTwoLeft = {1, 2, 3, 4, 0, 1, 1, 0};
const std::vector<double> kTwoProducts = {19, 22, 43, 50, 7, 8, 5, 6};

TEST(BatchedMatmulGoldens, TwoEntriesWithTheirOwnRightSides) {
  expect_known({"batched_matmul",
                "B=2,M=2,N=2,K=2,Bb=2",
                {kTwoLeft, {5, 6, 7, 8, 5, 6, 7, 8}},
                {{2, kTwoProducts}},
                0});
}

TEST(BatchedMatmulGoldens, TwoEntriesWithOneRightSide) {
  expect_known({"batched_matmul", "B=2,M=2,N=2,K=2,Bb=1", {kTwoLeft, {5, 6, 7, 8}}, {{2, kTwoProducts}}, 0});
}

TEST(BatchedMatmulGoldens, AWrongBatchStrideWouldShow) {
  std::vector<float> left;
  std::vector<double> expected;
  for (int b = 1; b <= 3; ++b) {
    left.insert(left.end(), 5 * 7, static_cast<float>(b));
    expected.insert(expected.end(), 5 * 11, 7.0 * b);
  }
  expect_known({"batched_matmul", "B=3,M=5,N=11,K=7,Bb=1", {left, repeated(7 * 11, 1)}, {{2, expected}}, 0});
  expect_known(
      {"batched_matmul", "B=3,M=5,N=11,K=7,Bb=3", {left, repeated(3 * 7 * 11, 1)}, {{2, expected}}, 0});
}

TEST(BatchedMatmulGoldens, AnEmptySumIsZeroAndNothingIsSkipped) {
  expect_known({"batched_matmul", "B=2,M=1,N=2,K=0,Bb=2", {}, {{2, {0, 0, 0, 0}}}, 0});
  expect_known(
      {"batched_matmul", "B=2,M=1,N=1,K=2,Bb=2", {{0, 1, 1, 1}, {kInf, 1, kInf, 1}}, {{2, {kNan, kInf}}}, 0});
}

TEST(BatchedMatmulGoldens, OneRightSideForAllOrOneEach) {
  expect_refused("batched_matmul", "B=3,M=2,N=2,K=2,Bb=2", Code::invalid_shape, "Bb=2");
  expect_refused("batched_matmul", "B=3,M=2,N=2,K=2,Bb=0", Code::invalid_shape, "Bb=0");
  expect_refused("batched_matmul", "B=3,M=2,N=-2,K=2", Code::invalid_shape, "N=-2");
  expect_refused("batched_matmul", "B=4000000000,M=4000000000,N=1,K=1", Code::invalid_shape, "64 bits");
}

TEST(BatchedMatmul, AnEntryHasTheBitsThatItHasAlone) {
  for (const backends::Kernel& kernel : host_kernels("batched_matmul")) {
    if (kernel.entry().level < 1) continue;
    for (const std::string& isa : isas_of(kernel)) {
      SCOPED_TRACE(kernel.name() + " " + isa);
      const ForcedIsa forced(isa);
      for (const std::string_view right : {"1", "5"}) {
        auto problem = ops::Problem::make(op_of("batched_matmul"),
                                          shape_of(fmt::format("B=5,M=17,N=33,K=70,Bb={}", right)));
        ASSERT_TRUE(problem.ok());
        ASSERT_TRUE(run(kernel, *problem));
        const auto all = output_bytes(*problem);
        problem->reset();
        Args args = problem->args();
        args.dim[0] = args.dim[4] = 1;
        args.ptr[0] = floats(*problem, 0).data() + 3 * 17 * 70;
        args.ptr[1] = floats(*problem, 1).data() + (right == "1" ? 0 : 3 * 70 * 33);
        args.ptr[2] = floats(*problem, 2).data() + 3 * 17 * 33;
        auto call = backends::Call::make(kernel, args);
        ASSERT_TRUE(call.ok()) << call.error().message;
        ASSERT_EQ(call->run().code, FULCRUM_OK);
        const auto alone = output_bytes(*problem);
        constexpr std::ptrdiff_t kEntry = 17 * 33 * sizeof(float);
        EXPECT_TRUE(
            std::equal(all.begin() + 3 * kEntry, all.begin() + 4 * kEntry, alone.begin() + 3 * kEntry));
      }
    }
  }
}

}  // namespace
}  // namespace fulcrum::test
