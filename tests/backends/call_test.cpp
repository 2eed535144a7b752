// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Calls that have nothing to do, and calls that follow others.
#include "support/instances.h"

namespace fulcrum::backends {
namespace {

TEST(Call, WithoutOutputsReturnsAtOnceHoweverLargeTheOtherDims) {
  Args args{};
  args.dim[0] = std::int64_t{1} << 60;  // rows, of no pixel each
  for (const Kernel& kernel : test::host_kernels("image_segmentation")) {
    auto call = Call::make(kernel, args);
    ASSERT_TRUE(call.ok()) << kernel.name() << ": " << call.error().message;
    EXPECT_EQ(call->run(3).code, FULCRUM_OK) << kernel.name();
  }
}

/// A thread keeps its memory between searches: what a longer query left behind must not count as part of a shorter one.
TEST(Call, OfASearchIsRightAfterOneInLongerVectors) {
  const ops::Op& op = test::op_of("hnsw_search");
  for (const Kernel& kernel : test::host_kernels("hnsw_search")) {
    for (const char* shape : {"Q=9,N=44,D=47,k=44", "Q=9,N=44,D=35,k=44"}) {
      auto problem = ops::Problem::make(op, test::shape_of(shape));
      ASSERT_TRUE(problem.ok()) << problem.error().message;
      if (!test::run(kernel, *problem)) continue;
      const Oracle oracle = problem->check();
      EXPECT_TRUE(oracle.passed) << kernel.name() << " with " << shape << ": " << oracle.detail;
    }
  }
}

}  // namespace
}  // namespace fulcrum::backends
